import {
  grantsMax,
  inputMembers,
  isAmong,
  memberText,
  sessionName,
  type Approval,
  type Grant,
  type GrantBody,
  type GrantOffer,
} from "../../approvals/mod.ts";
import { grantRows, parseLeaf, type StoredRow } from "../../ledger/entry/mod.ts";
import { bad, good, quote, refuse, type Refusal, type Result } from "../../wire/mod.ts";

/** What a person asks a grant to be. */
export interface AskedGrant {
  /** Milliseconds since the epoch; undefined means as long as the rules let it. */
  readonly until: number | undefined;
  /** Undefined means as many as the rules let it. */
  readonly uses: number | undefined;
  /** True for every session of the key. */
  readonly anySession: boolean;
  /** Members besides those that the rules pin. */
  readonly pins: readonly string[];
  /** Members of the input that the call lacks, and that later calls may have. */
  readonly free: readonly string[];
  /** The most that all uses may add, by the name of the number; decimals. */
  readonly amounts: Readonly<Record<string, string>>;
}

type Digest = (text: string) => string;

/**
 * What may differ in a call of a grant: members of the source's input that nothing binds, members that the person freed,
 * and facts that the rules or their reasons read.
 */
export function freeMembers(
  { input }: ReturnType<typeof grantRows.recordedCall>,
  { pins = [], sums = [], most = [], least = [], free = [] }: Partial<GrantOffer>,
): readonly string[] {
  const bound = [...pins, ...sums, ...most, ...least];
  const members = input === undefined ? [] : inputMembers(input);
  const found = members.filter(({ isObject, path }) => !isObject && !isAmong(path, bound)).map(({ path }) => path);
  return [...new Set([...found, ...free])].toSorted();
}

/**
 * Makes the body of a grant from a call that a person was asked about.
 *
 * @param contract SHA-256 of the contract in force, in hex
 */
export function grantBody(
  { approval, row }: { readonly approval: Approval; readonly row: StoredRow },
  asked: AskedGrant,
  {
    person,
    at,
    contract,
    digest,
  }: { readonly person: string; readonly at: number; readonly contract: string; readonly digest: Digest },
): Result<GrantBody, Refusal> {
  const { asking, key, session, tool } = approval;
  const offer = asking.grants;
  if (offer === undefined)
    return bad(
      refuse("grant-refused", "a rule that asked for this call has no `grants`, so each call needs its own decision"),
    );
  if (parseLeaf(row.leaf)?.contract !== `sha256:${contract}`)
    return bad(
      refuse("grant-refused", "the contract has changed since the call was asked: make the grant from a later call"),
    );
  const [until, uses] = [asked.until ?? at + offer.at_most, asked.uses ?? offer.uses];
  if (until <= at || until > at + offer.at_most)
    return bad(
      invalid(
        `"until" must be within ${offer.at_most / 1000} seconds from now, the longest time that the rules permit`,
      ),
    );
  if (uses > offer.uses) return bad(invalid(`"uses" must be at most ${offer.uses}, which the rules permit`));
  const source = grantRows.recordedCall(row);
  const members = [...new Set([...offer.pins, ...asked.pins])].toSorted();
  const pins = members.map(
    (member) => [member, grantRows.pinDigest(member, memberText(source, member), digest)] as const,
  );
  const { most = [], least = [], free: offered = [] } = offer;
  const bound = [...members, ...offer.sums, ...most, ...least];
  const wrong = asked.free.map((member) => freeProblem(member, source, bound)).find((problem) => problem !== undefined);
  if (wrong !== undefined) return bad(refuse("grant-refused", wrong));
  if (grantRows.sourceNumbers(offer.sums, source) === undefined)
    return bad(refuse("grant-refused", `the call does not have each of these numbers: ${offer.sums.join(", ")}`));
  const amounts = amountsFor(offer.sums, asked.amounts);
  if (!amounts.ok) return amounts;
  return good({
    amounts: amounts.value,
    causes: asking.causes,
    free: [...new Set(asked.free), ...offered.filter((member) => !members.includes(member))].toSorted(),
    key,
    least,
    most,
    needs: asking.needs,
    person,
    pins: Object.fromEntries(pins),
    place: asked.anySession ? null : digest(sessionName(key, session)),
    source: approval.row,
    tool,
    until,
    uses,
  });
}

/** Why a person cannot free a member. */
function freeProblem(
  member: string,
  source: ReturnType<typeof grantRows.recordedCall>,
  bound: readonly string[],
): string | undefined {
  const name = quote(member);
  if (bound.some((each) => isAmong(each, [member]) || isAmong(member, [each])))
    return `a grant cannot free ${name}: it is bound, or it holds a member that is`;
  const isThere = source.input !== undefined && inputMembers(source.input).some(({ path }) => path === member);
  return isThere ? `the call has ${name}, and a grant frees only members that the call lacks` : undefined;
}

function amountsFor(
  sums: readonly string[],
  asked: AskedGrant["amounts"],
): Result<Readonly<Record<string, string>>, Refusal> {
  const stranger = Object.keys(asked).find((member) => !sums.includes(member));
  if (stranger !== undefined)
    return bad(invalid(`"amounts" has ${quote(stranger)}, which no counter of the tool adds up`));
  const missing = sums.find((member) => asked[member] === undefined);
  if (missing !== undefined)
    return bad(invalid(`"amounts" must have ${quote(missing)}: how much all calls of the grant may add together`));
  return good(Object.fromEntries(sums.map((member) => [member, asked[member] ?? "0"])));
}

function invalid(sentence: string): Refusal {
  return refuse("invalid-request", sentence);
}

/** Refuses a grant if too many are in force. */
export function requireRoom(grants: readonly Grant[], at: number): Result<void, Refusal> {
  const inForce = grants.filter(({ until }) => at < until).length;
  return inForce < grantsMax
    ? good(undefined)
    : bad(refuse("grant-refused", `${grantsMax} grants are in force: revoke some of them`));
}
