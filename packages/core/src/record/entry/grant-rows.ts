import {
  endsGrant,
  inputMembers,
  memberNumber,
  memberText,
  allElseText,
  sessionName,
  withUse,
  withVote,
  type ComparedCall,
  type Grant,
  type GrantableCall,
  type GrantBody,
  type SourceCall,
  wholeScope,
} from "../../approvals/mod.ts";
import { canonical, readJson, type Canonical, type JsonObject } from "../../wire/mod.ts";
import { actOf, endedBy, isLoss, readGrantable, type GrantableAsking } from "./approval-rows.ts";
import { eraseAct } from "./erasure.ts";
import { partText, wholeText } from "./evidence.ts";
import { leafHash, parseLeaf, type Leaf } from "./leaf.ts";
import type { StoredRow } from "./row.ts";
import { stopActIn } from "./stop-rows.ts";
import { readCall } from "./verifier.ts";

/** A text that the leaf of each row about grants has, except uses, stops and erasures. */
export const grantMark = '"act":"grant.';

/** Texts of which the leaf of each row has one that changes a grant that exists. */
export const changeMarks: readonly string[] = ['"act":"approval.use"', `"act":"${eraseAct}"`];

/** The acts about grants. */
export type GrantAct =
  | ({ readonly act: "grant.create" } & GrantBody)
  /** Another person's yes. */
  | { readonly act: "grant.approve"; readonly grant: number; readonly person: string }
  | { readonly act: "grant.revoke"; readonly grant: number; readonly person: string };

/** Reads an act about grants; undefined for another act, or if the body is not JSON. */
export function grantActOf({ act, kind }: Pick<Leaf, "act" | "kind">, evidence: string): GrantAct | undefined {
  if (kind !== "change" || act?.startsWith("grant.") !== true) return undefined;
  try {
    return { ...(JSON.parse(partText(evidence, "input") ?? "null") as object), act } as GrantAct;
  } catch {
    return undefined;
  }
}

/**
 * The grants in force after one more row. A grant ends at its time, by its last use, by its revocation, by a stop, and
 * with a part of the row that it was made from.
 */
export function withGrantRow(grants: readonly Grant[], row: StoredRow, digest: Digester): readonly Grant[] {
  const leaf = parseLeaf(row.leaf);
  if (leaf === undefined || leaf.kind !== "change") return grants;
  const { at, seq } = leaf;
  const act = grantActOf(leaf, row.evidence);
  if (act?.act === "grant.create") return [...grants.filter(({ until }) => at < until), createdBy(leaf, row, act)];
  if (act !== undefined)
    return grants.flatMap((grant) => (grant.row === act.grant ? afterAct(grant, act, leaf) : grant));
  if (grants.length === 0) return grants;
  const stop = stopActIn(row)?.act;
  if (stop?.act === "stop.set") {
    const digestSession = (key: string, session: string): string => digest(sessionName(key, session));
    return grants.filter((grant) => !endsGrant(wholeScope(stop.scope, stop.also), grant, digestSession));
  }
  if (leaf.act === eraseAct || isLoss(leaf, row.evidence)) {
    const erased = endedBy(leaf, row.evidence);
    return grants.filter(({ source }) => !erased.some(([from, to]) => from <= source && source <= to && source < seq));
  }
  const used = actOf(leaf, row.evidence);
  const uses = used?.act === "approval.use" ? (used.grants ?? []) : [];
  return uses.reduce(
    (left, use) =>
      left.flatMap((grant) => {
        const after = grant.row === use.grant ? withUse(grant, use.amounts) : grant;
        return after.used < after.uses ? [after] : [];
      }),
    grants,
  );
}

function createdBy(
  { at, key, seq }: Leaf,
  { leaf }: StoredRow,
  { act: _act, person, ...body }: Extract<GrantAct, { readonly act: "grant.create" }>,
): Grant {
  const vote = { row: seq, at, key: key ?? "", person, comment: "" };
  return { ...body, row: seq, hash: leafHash(leaf), at, votes: [vote], used: 0, spent: {} };
}

function afterAct(
  grant: Grant,
  act: Exclude<GrantAct, { readonly act: "grant.create" }>,
  { at, key, seq }: Leaf,
): readonly Grant[] {
  if (act.act === "grant.revoke") return [];
  const vote = { row: seq, at, key: key ?? "", person: act.person, comment: "" };
  return [{ ...grant, votes: withVote(grant.votes, vote) }];
}

/** True if the rows that made a grant still say the same. Its uses are not compared. */
export function isMadeBy(grant: Grant, rows: readonly StoredRow[], digest: Digester): boolean {
  const own = new Set(grant.votes.map(({ row }) => row));
  const made = rows
    .filter(({ seq }) => own.has(seq) || seq === grant.row)
    .toSorted((one, other) => one.seq - other.seq);
  const [found] = made.reduce((grants: readonly Grant[], row) => withGrantRow(grants, row, digest), []);
  const text = ({ used: _used, spent: _spent, votes, ...rest }: Grant): string =>
    canonical({ ...rest, votes: votes.toSorted((one, other) => one.row - other.row) } as unknown as Canonical);
  return found !== undefined && text(found) === text(grant);
}

export type Digester = (text: string) => string;

/** The keyed digest by which a grant knows a member. A member that was absent must stay absent. */
export function pinDigest(member: string, text: string | undefined, digest: Digester): string {
  return digest(`svc-gate/pin/1\n${JSON.stringify([member, text ?? null])}`);
}

/** Reads the call of a row; members of erased parts are undefined. */
export function recordedCall({ evidence }: Pick<StoredRow, "evidence">): ComparedCall {
  const platform = wholeText(evidence, "platform");
  return {
    input: objectIn(wholeText(evidence, "input")),
    platform: platform === "null" ? null : objectIn(platform),
    session: readCall({ tool: null }, evidence)?.session_id,
  };
}

function objectIn(text: string | undefined): JsonObject | undefined {
  const read = text === undefined ? undefined : readJson(text);
  return read?.ok === true ? read.value.members : undefined;
}

/** The numbers of the call that a grant was made from; undefined if the row lacks one, for example after an erasure. */
export function sourceNumbers(
  members: readonly string[],
  source: ComparedCall,
): Readonly<Record<string, string>> | undefined {
  const found = members.map((member) => [member, memberNumber(source, member)] as const);
  return found.some(([, number]) => number === undefined)
    ? undefined
    : (Object.fromEntries(found) as Record<string, string>);
}

/** The call of a row of a check, as a grant compares it; undefined if a part was erased, or if nobody was asked. */
export function grantableCall(
  row: StoredRow,
  digest: Digester,
  asking: GrantableAsking | undefined = readGrantable(row.evidence),
): GrantableCall | undefined {
  const leaf = parseLeaf(row.leaf);
  const call = leaf && readCall(leaf, row.evidence);
  if (leaf === undefined || call === undefined || asking === undefined) return undefined;
  const key = leaf.key ?? "";
  const session = digest(sessionName(key, call.session_id));
  return { at: leaf.at, key, tool: call.tool, session, ...asking, ...toSourceCall(recordedCall(row), digest) };
}

/** The call that a grant was made from; undefined if a part that bounds others was erased. */
export function sourceCall(row: StoredRow, digest: Digester): SourceCall | undefined {
  const call = recordedCall(row);
  return call.input === undefined || call.platform === undefined ? undefined : toSourceCall(call, digest);
}

const none: JsonObject = new Map();

/** The keyed digest of a form. */
export function formDigest(key: string, digest: Digester): string {
  return digest(`svc-gate/form/1\n${key}`);
}

export function toSourceCall(call: ComparedCall, digest: Digester): SourceCall {
  return {
    pin: (member) => pinDigest(member, memberText(call, member), digest),
    number: (member) => memberNumber(call, member),
    members: () => inputMembers(call.input ?? none),
    rest: (without) => digest(allElseText(call, without)),
  };
}
