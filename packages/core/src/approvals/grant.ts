import { addDecimals, isAmong } from "../wire/mod.ts";
import type { FormDigests, GrantUse, Need, Vote } from "./approval.ts";
import type { InputMember } from "./binding.ts";
import { isAbove, isNegative } from "./decimals.ts";
import type { StopScope } from "./stop.ts";

/** A grant: a person's yes to later calls that resemble one call. The fold of its rows. */
export interface Grant {
  /** The row that made it, of act `grant.create`. */
  readonly row: number;
  readonly hash: string;
  readonly at: number;
  /** The row that asked for the call that it was made from. */
  readonly source: number;
  /** When that row asked; absent in old grants. */
  readonly asked?: number;
  readonly key: string;
  readonly tool: string;
  /** A keyed digest of the key and the session, in hex; null for every session of the key. */
  readonly place: string | null;
  /** The rules that it lifts, each with the SHA-256 of its meaning. */
  readonly causes: Readonly<Record<string, string>>;
  readonly needs: readonly Need[];
  /** Present if the person may make it whose agent asks. */
  readonly self?: true;
  /** Keyed digests of members, in hex. */
  readonly pins: Readonly<Record<string, string>>;
  /** How much all uses may add together, by the name of the number; decimals. */
  readonly amounts: Readonly<Record<string, string>>;
  /** Numbers that are at most, and at least, what they are in the source; absent in old grants. */
  readonly most?: readonly string[];
  readonly least?: readonly string[];
  /**
   * Members of the input that the source lacks and that a call may have all the same, with all that is in them; members that
   * the contract does not bind; and facts that may differ. Undefined in an old grant, whose calls may have any such member.
   */
  readonly free?: readonly string[];
  /** The form that the command line of each call has; absent if the rules have no grants by form. */
  readonly form?: GrantForm;
  readonly uses: number;
  /** Milliseconds since the epoch. */
  readonly until: number;
  readonly votes: readonly Vote[];
  readonly used: number;
  /** How much the uses have added, by the name of the number. */
  readonly spent: Readonly<Record<string, string>>;
}

/** A form in place of the pin of one member. All else in the call is the same, but what is free. */
export interface GrantForm {
  readonly member: string;
  readonly width: string;
  /** A keyed digest of the form, in hex. */
  readonly digest: string;
  /** A keyed digest of all else in the input and the facts, in hex. */
  readonly rest: string;
}

/** The body of the row that makes a grant. It contains no value of a call. */
export interface GrantBody extends Pick<
  Grant,
  | "amounts"
  | "asked"
  | "causes"
  | "form"
  | "free"
  | "key"
  | "least"
  | "most"
  | "needs"
  | "pins"
  | "place"
  | "self"
  | "source"
  | "tool"
  | "until"
  | "uses"
> {
  readonly person: string;
}

/** A call that a grant may cover. */
export interface GrantableCall {
  readonly at: number;
  readonly key: string;
  readonly tool: string;
  /** A keyed digest of its key and session, in hex. */
  readonly session: string;
  readonly causes: Readonly<Record<string, string>>;
  /** Returns the keyed digest of a member, also of one that the call does not have. */
  readonly pin: (member: string) => string;
  /** Returns a number of the call as a decimal; undefined if the call has no number there. */
  readonly number: (member: string) => string | undefined;
  /** The members of its input. */
  readonly members: () => readonly InputMember[];
  /** Returns the keyed digest of its input and its facts without some members. */
  readonly rest: (without: readonly string[]) => string;
  readonly forms: FormDigests;
}

/** The call that a grant was made from, as it bounds others. */
export type SourceCall = Pick<GrantableCall, "members" | "number" | "pin" | "rest">;

/** The most grants that can be in force on one ledger. */
export const grantsMax = 100;

/** Returns what a call would add to a grant's amounts; undefined if the grant does not cover the call. */
export function coveredAmounts(
  grant: Grant,
  call: GrantableCall,
  source: SourceCall,
): Readonly<Record<string, string>> | undefined {
  const isInForce = call.at < grant.until && grant.used < grant.uses;
  const isSameCaller = call.key === grant.key && call.tool === grant.tool;
  const isSameSession = grant.place === null || call.session === grant.place;
  if (!isInForce || !isSameCaller || !isSameSession) return undefined;
  const rules = Object.entries(call.causes);
  if (rules.length === 0 || rules.some(([rule, meaning]) => grant.causes[rule] !== meaning)) return undefined;
  if (Object.entries(grant.pins).some(([member, digest]) => call.pin(member) !== digest)) return undefined;
  if (grant.form !== undefined && !isOfForm(grant.form, grant.free, call)) return undefined;
  if (!isBounded(grant, call, source) || hasNewMember(grant, call, source)) return undefined;
  const found: Record<string, string> = {};
  for (const [member, amount] of Object.entries(grant.amounts)) {
    const [value, top] = [call.number(member), source.number(member)];
    if (value === undefined || top === undefined || isNegative(value) || isAbove(value, top)) return undefined;
    if (isAbove(addDecimals(grant.spent[member] ?? "0", value), amount)) return undefined;
    found[member] = value;
  }
  return found;
}

/** Does only the command line differ, and is it of the same form? */
function isOfForm(
  { member, width, digest, rest }: GrantForm,
  free: readonly string[] = [],
  call: GrantableCall,
): boolean {
  return call.forms[width] === digest && call.rest([...free, member]) === rest;
}

/** Are the numbers that decided the rules no worse than in the source? A negative number binds all to be the same. */
function isBounded({ most = [], least = [], pins }: Grant, call: GrantableCall, source: SourceCall): boolean {
  const members = [...most, ...least];
  const isFirm = [...members, ...Object.keys(pins)].some((member) => isNegative(source.number(member) ?? "0"));
  return members.every((member, index) => {
    const [value, before] = [call.number(member), source.number(member)];
    if (value === undefined || before === undefined) return call.pin(member) === source.pin(member);
    if (isFirm || isNegative(value)) return !isAbove(value, before) && !isAbove(before, value);
    return index < most.length ? !isAbove(value, before) : !isAbove(before, value);
  });
}

/** Does the call have a member that the source lacks, at any depth, and that the person did not free? */
function hasNewMember({ free }: Grant, call: GrantableCall, source: SourceCall): boolean {
  if (free === undefined) return false;
  const known = new Map(source.members().map(({ path, isObject }) => [path, isObject]));
  const isNew = ({ path, isObject }: InputMember): boolean => known.get(path) !== isObject && !isAmong(path, free);
  return call.members().some(isNew);
}

export function withUse(grant: Grant, amounts: GrantUse["amounts"]): Grant {
  const spent = Object.entries(amounts).map(([member, amount]) => [
    member,
    addDecimals(grant.spent[member] ?? "0", amount),
  ]);
  return { ...grant, used: grant.used + 1, spent: { ...grant.spent, ...Object.fromEntries(spent) } };
}

/** Does a stop end a grant? A stop of one session also ends a grant for every session of its key. */
export function endsGrant(
  scope: StopScope,
  { key, place: session, tool }: Pick<Grant, "key" | "place" | "tool">,
  digestSession: (key: string, session: string) => string,
): boolean {
  if (scope === "all") return true;
  if ("tools" in scope) return scope.tools.includes(tool);
  if ("key" in scope) return scope.key === key;
  const { key: of, id } = scope.session;
  return of === key && (session === null || session === digestSession(of, id));
}

/** A grant's id: `grt_`, the row that made it, and the first 32 digits of its hash. */
export function grantId({ row, hash }: Pick<Grant, "hash" | "row">): string {
  return `grt_${row}_${hash.slice(0, 32)}`;
}
