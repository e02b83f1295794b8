import type { FastifyReply } from "fastify";
import {
  approvalId,
  differences,
  grantId,
  statuses,
  statusAt,
  type Approval,
  type ApprovalDetailJson,
  type ApprovalJson,
  type Denial,
  type SaidJson,
  type SameCall,
  type StandingJson,
  type ApprovalStatus,
} from "../../../../core/src/approvals/mod.ts";
import { grantRows, parseLeaf, partText, readCall, type StoredRow } from "../../../../core/src/record/entry/mod.ts";
import type { ApprovalQuery } from "../../ledger/mod.ts";
import {
  good,
  quote,
  refuse,
  typeName,
  type Json,
  type JsonObject,
  type Refusal,
  type Result,
} from "../../../../core/src/wire/mod.ts";
import type { DecisionRequest, VoteResult } from "../approvals/desk.ts";
import { freeMembers, noGrantReason, shownWidths } from "../approvals/grants.ts";
import type { SlicedRead } from "../admission/reads.ts";
import type { ValidKey } from "../keys/keys.ts";
import {
  isSentence,
  readBody,
  readHash,
  readText,
  requireValue,
  requireMembers,
  sendJson,
  sentenceBytesMax,
  BodyError,
} from "../request/body.ts";
import { keep, untilGone } from "./connection.ts";
import type { Exchange } from "./exchange.ts";
import { readGrant } from "./grants.ts";
import { anyText, badNumber, readQuery, waitProblem, type Parameters } from "./query.ts";
import { inPlace } from "./reading.ts";
import { refuseWith, sendResult } from "./refusing.ts";
import type { ReadCall, RouteCall } from "./route.ts";

const listMax = 100;
/** Approvals that a slice reads, each with a row of at most some 256 KiB. */
const sliceMax = 16;
const openOrExpired = ["pending", "approved", "expired"] as const;
const decisionsMax = 50;
const denialMsMax = 90 * 86_400_000;

/** Handles GET /approvals: newest first, without inputs and facts. */
export async function listApprovals(call: ReadCall): Promise<FastifyReply> {
  const { gate, read: reading, reply, request } = call;
  const query = readQuery(request, parameters);
  const text = (name: string): string | undefined => query.get(name) ?? undefined;
  const state = text("state") as ApprovalStatus | undefined;
  const limit = Number(text("limit") ?? 50);
  const now = Date.now();
  const tests: readonly ((approval: Approval) => boolean)[] = [
    (approval) => state === undefined || statusAt(approval, now) === state,
    ({ tool }) => text("tool_name") === undefined || tool === text("tool_name"),
    ({ rule }) => text("rule") === undefined || rule === text("rule"),
    (approval) => text("mine") !== "1" || gate.approvals.mayDecide(readKeyName(call), approval, now),
    (approval) => mayRead(call, approval, now),
  ];
  const found: Approval[] = [];
  const wanted = {
    before: Number(text("before") ?? Number.MAX_SAFE_INTEGER),
    limit: Infinity,
    // A time may have ended before a row says so, so an expired approval may still be kept as open.
    statuses: state === undefined ? undefined : state === "expired" ? openOrExpired : [state],
    key: text("key"),
    session: text("session_id"),
  };
  for await (const approval of newestFirst(call, reading, wanted)) {
    if (tests.every((test) => test(approval))) found.push(approval);
    if (found.length === limit) break;
  }
  const approvals: string[] = [];
  for (const approval of found) {
    const [row] = await gate.ledger.rows.rowsAt([approval.row]);
    approvals.push(objectText({ ...describeStatus(call, approval), ...describeApproval(call, approval, row) }));
    await reading.next();
  }
  const next = found.length < limit ? undefined : found.at(-1)?.row;
  return sendJson(reply, `{"approvals":[${approvals.join(",")}],"next":${next ?? null}}`);
}

const parameters: Parameters = {
  state: (value) =>
    statuses.some((status) => status === value) ? undefined : `"state" must be one of ${statuses.join(", ")}`,
  tool_name: anyText,
  session_id: anyText,
  key: anyText,
  rule: anyText,
  mine: (value) => (value === "1" ? undefined : '"mine" must be 1'),
  before: (value) =>
    badNumber(value, "before", Number.MAX_SAFE_INTEGER) === undefined
      ? undefined
      : '"before" must be the number of a row',
  limit: (value, name) => badNumber(value, name, listMax),
};

/** Handles GET /approvals/{id}: the whole call, as the person must see it. With `wait`, answers when it changes. */
export async function showApproval(call: RouteCall): Promise<unknown> {
  const query = readQuery(call.request, { wait: waitProblem });
  return inPlace(call, "short", (read) => show(call, read, Number(query.get("wait") ?? 0)));
}

/** While it waits for a person it reads nothing, so others have its place. */
async function show(call: RouteCall, read: SlicedRead, waitSeconds: number): Promise<FastifyReply> {
  const { gate, reply, request } = call;
  const approval = await read.run(() => gate.approvals.find(idOf(call)));
  const mine = approval !== undefined && approval.key === readKeyName(call) && call.key?.scopes.has("check") === true;
  if (approval === undefined || !(mine || mayRead(call, approval, Date.now())))
    return refuseWith(reply, refuse("not-found", "no approval has this id"));
  let latest = approval;
  if (waitSeconds > 0 && statusAt(approval, Date.now()) === "pending") {
    read.leave();
    latest = requireValue(await waitFor(call, approval, waitSeconds));
    // The key may have been revoked meanwhile.
    if (call.key !== undefined && request.exchange?.credential()?.id !== call.key.id)
      return refuseWith(reply, refuse("unauthorized", "the key was revoked while the request waited"));
    if (statusAt(latest, Date.now()) === "pending") reply.header("retry-after", "1");
    await read.again();
  }
  if (mine && !mayRead(call, latest, Date.now())) return sendJson(reply, objectText(describeStatus(call, latest)));
  const detail = await read.run(async () => {
    const others = await sameCalls(call, read, latest);
    const [row] = await gate.ledger.rows.rowsAt([latest.row]);
    return detailOf(call, latest, row, others);
  });
  return sendJson(reply, detail);
}

/** Waits until the approval is decided, the time is over, the client has left, or another key needs the place. */
export async function waitFor(
  { gate, key, reply, request, service }: RouteCall,
  approval: Approval,
  seconds: number,
): Promise<Result<Approval, Refusal>> {
  const gone = untilGone(reply.raw);
  const entered = service.waits.enter(key as ValidKey, () => gone.abort());
  if (!entered.ok) return entered;
  keep(request.exchange as Exchange);
  try {
    return good(await gate.approvals.waits.wait(approval, seconds * 1000, gone.signal));
  } finally {
    entered.value();
  }
}

/** Handles POST /approvals/{id}/approve. */
export const approve = (call: RouteCall): Promise<FastifyReply> => decideOne(call, "approve");

/** Handles POST /approvals/{id}/deny. */
export const deny = (call: RouteCall): Promise<FastifyReply> => decideOne(call, "deny");

async function decideOne(call: RouteCall, decision: DecisionRequest["decision"]): Promise<FastifyReply> {
  const { gate, reply, request } = call;
  const known = ["hash", "comment", ...(decision === "approve" ? ["grant"] : ["until", "scope"])];
  const wanted = readBody(request.body, known, (members) => ({
    ...decisionIn(members, decision),
    id: idOf(call),
    grant: members.has("grant") ? readGrant(members.get("grant")) : undefined,
  }));
  const decided = await gate.approvals.decide(readKeyName(call), [requireValue(wanted)]);
  return sendResult(reply, decided, ([one]) => decidedJson(one as VoteResult));
}

/** Handles POST /approvals/decide: several decisions, all of them or none. */
export async function decideMany(call: RouteCall): Promise<FastifyReply> {
  const { gate, reply, request } = call;
  const wanted = readBody(request.body, ["decisions"], (members) => decisionsIn(members.get("decisions")));
  const decided = await gate.approvals.decide(readKeyName(call), requireValue(wanted));
  return sendResult(reply, decided, (all) => ({ decisions: all.map(decidedJson) }));
}

/** Handles POST /approvals/{id}/cancel. */
export async function cancel(call: RouteCall): Promise<FastifyReply> {
  const { gate, key, reply, request } = call;
  const session = readBody(request.body, ["session_id"], (members) =>
    members.has("session_id") ? readText("session_id", members.get("session_id")) : null,
  );
  const isAsker = key?.scopes.has("check") === true;
  const cancelled = await gate.approvals.cancel(readKeyName(call), idOf(call), isAsker, requireValue(session));
  return sendResult(reply, cancelled, decidedJson);
}

function decisionsIn(value: Json | undefined): readonly DecisionRequest[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > decisionsMax)
    throw new BodyError(`"decisions" must be a list of 1 to ${decisionsMax} decisions`);
  const found: DecisionRequest[] = [];
  for (const each of value as readonly Json[]) {
    if (!(each instanceof Map)) throw new BodyError(`a decision must be an object, not ${typeName(each)}`);
    const members: JsonObject = each;
    requireMembers("a decision", members, ["id", "hash", "decision", "comment"]);
    const [id, decision] = [members.get("id"), members.get("decision")];
    if (typeof id !== "string") throw new BodyError('"id" of a decision must be a string');
    if (decision !== "approve" && decision !== "deny") throw new BodyError('"decision" must be approve or deny');
    if (found.some((other) => other.id === id)) throw new BodyError(`${quote(id)} is in the list twice`);
    found.push({ id, ...decisionIn(members, decision) });
  }
  return found;
}

function decisionIn(members: JsonObject, decision: DecisionRequest["decision"]): Omit<DecisionRequest, "grant" | "id"> {
  const [comment = "", until, scope] = ["comment", "until", "scope"].map((name) => members.get(name));
  const hash = readHash(members.get("hash"));
  if (!isSentence(comment))
    throw new BodyError(`"comment" must be at most ${sentenceBytesMax} bytes of visible characters on one line`);
  if (decision === "deny" && comment.trim() === "") throw new BodyError('"comment" must say why: the agent reads it');
  if (until !== undefined && !(typeof until === "number" && until > Date.now() && until <= Date.now() + denialMsMax))
    throw new BodyError('"until" must be milliseconds since the epoch, in the next 90 days');
  if (scope !== undefined && scope !== "call" && scope !== "tool" && scope !== "rule")
    throw new BodyError('"scope" must be call, tool or rule');
  return { hash, decision, comment, until: typeof until === "number" ? until : undefined, scope };
}

function decidedJson({
  approval,
  grant,
  quorum: { has, needs },
  receipt,
}: VoteResult): Readonly<Record<string, unknown>> {
  const { row, hash, useBy, status } = approval;
  const made = grant === undefined ? {} : { grant: grantId(grant) };
  return { id: approvalId(row, hash), status, has, needs, use_by: useBy, receipt: receipt ?? null, ...made };
}

/** True if the key may see everything about the approval: it reads receipts, or may decide it. */
function mayRead({ key, gate }: RouteCall, approval: Approval, at: number): boolean {
  if (key?.scopes.has("receipts") === true) return true;
  return key?.scopes.has("approve") === true && gate.approvals.mayDecide(key.name, approval, at);
}

function readKeyName({ key }: RouteCall): string {
  return (key as ValidKey).name;
}

function idOf({ request }: RouteCall): string {
  return (request.params as { readonly id: string }).id;
}

/** The member `approval` of the answer to the check that asked. */
function describeStatus({ gate }: RouteCall, approval: Approval): StandingJson {
  const at = Date.now();
  const { needs, has, isMet } = gate.approvals.quorum(approval, at);
  const status = statusAt(approval, at);
  const next = status === "pending" ? "wait" : status === "approved" ? (isMet ? "check" : "wait") : "none";
  return {
    id: approvalId(approval.row, approval.hash),
    status,
    decide_by: approval.asking.decide_by,
    use_by: approval.useBy,
    needs,
    has,
    next,
    ...(approval.denial !== null && { comment: approval.denial.comment }),
  };
}

function describeApproval(
  call: RouteCall,
  approval: Approval,
  row: StoredRow | undefined,
): WithRaw<Omit<ApprovalJson, keyof StandingJson>> {
  const { asking, asked, key, session, tool, votes, denial, hash } = approval;
  const leaf = row && parseLeaf(row.leaf);
  const alias = leaf && readCall(leaf, row.evidence)?.alias;
  const denials =
    denial === null ? [] : [{ ...describeDecision("deny", denial), until: denial.until, scope: denial.scope }];
  return {
    receipt: approval.row,
    hash,
    at: approval.at,
    tool_name: tool,
    ...(alias !== undefined && { sent_as: alias }),
    session_id: session,
    key,
    reason: new RawJsonText((row && partText(row.evidence, "reason")) ?? "null"),
    rules: Object.keys(asking.causes),
    groups: asking.needs,
    batch: asking.batch,
    asked,
    call: asking.attach.slice(0, 16),
    amounts: amountsOf(call, approval, row),
    ...call.gate.approvals.describeDecider(readKeyName(call), approval, Date.now()),
    decisions: [...votes.map((vote) => describeDecision("approve", vote)), ...denials],
    closed: approval.closed,
    successor: approval.successor,
  };
}

function describeDecision(
  decision: DecisionRequest["decision"],
  { at, comment, person, row: receipt }: Approval["votes"][number] | Denial,
): SaidJson {
  return { decision, person, at, receipt, comment };
}

/** Among the latest questions of the key, the others about the same call, and in which parts each differs. */
async function sameCalls(call: RouteCall, read: SlicedRead, approval: Approval): Promise<readonly SameCall[]> {
  const at = Date.now();
  const { asking, key, row } = approval;
  const query = { before: Number.MAX_SAFE_INTEGER, limit: listMax, key, statuses: openOrExpired };
  const found: SameCall[] = [];
  for await (const each of newestFirst(call, read, query))
    if (each.row !== row && each.asking.attach === asking.attach && mayRead(call, each, at))
      found.push({
        id: approvalId(each.row, each.hash),
        status: statusAt(each, at),
        session_id: each.session,
        differs: each.asking.binding === asking.binding ? [] : differences(approval, each),
        approved: each.useBy !== null,
      });
  return found;
}

async function* newestFirst({ gate }: RouteCall, read: SlicedRead, query: ApprovalQuery): AsyncGenerator<Approval> {
  for (let { before, limit } = query; limit > 0;) {
    const slice = await gate.approvals.list({ ...query, before, limit: Math.min(limit, sliceMax) });
    yield* slice;
    if (slice.length < sliceMax) return;
    limit -= slice.length;
    before = slice.at(-1)?.row ?? 0;
    await read.next();
  }
}

function detailOf(
  call: RouteCall,
  approval: Approval,
  row: StoredRow | undefined,
  others: readonly SameCall[],
): string {
  const part = (name: "input" | "outcome" | "platform"): string =>
    row === undefined ? "null" : (partText(row.evidence, name) ?? "null");
  const outcome = JSON.parse(part("outcome")) as Partial<ApprovalDetailJson> | null;
  const leaf = parseLeaf(row?.leaf ?? "");
  const { mode = null, contract = null } = leaf ?? {};
  const kind = row && leaf && readCall(leaf, row.evidence)?.key_kind;
  const { unbound = [], routes = [] } = call.gate.policy.policySet.tools.get(approval.tool) ?? {};
  const offer = offerOf(approval, row);
  const detail: WithRaw<ApprovalDetailJson> = {
    ...describeStatus(call, approval),
    ...describeApproval(call, approval, row),
    may_differ: [...unbound, ...(approval.asking.free ?? [])],
    tool_input: new RawJsonText(part("input")),
    platform_state: new RawJsonText(part("platform")),
    ...(kind === undefined ? {} : { key_kind: kind }),
    counters: outcome?.counters ?? null,
    mode,
    contract,
    grants_allowed: offer,
    ...(offer === false && row !== undefined && { no_grant: noGrantReason(approval, routes) }),
    same_call: others,
  };
  return objectText(detail);
}

/** The numbers of the call that counters of its tool add up, such as the amount of a payment, with their characters. */
function amountsOf(
  { gate }: RouteCall,
  { tool }: Approval,
  row: StoredRow | undefined,
): Readonly<Record<string, string>> {
  const writers = gate.policy.policySet.tools.get(tool)?.writers ?? [];
  const members = [...new Set(writers.flatMap(({ counter }) => counter.sumOf ?? []))].toSorted();
  if (row === undefined || members.length === 0) return {};
  return grantRows.sourceNumbers(members, grantRows.recordedCall(row)) ?? {};
}

/** What a grant made from the call may be at most; false if the rules permit none. */
function offerOf({ asking: { grants } }: Approval, row: StoredRow | undefined): ApprovalDetailJson["grants_allowed"] {
  if (grants === undefined || row === undefined) return false;
  const { at_most: ms, most = [], least = [], form, ...offer } = grants;
  const source = grantRows.recordedCall(row);
  const offered = { at_most_ms: ms, ...offer, most, least, free: freeMembers(source, grants) };
  return form ? { ...offered, form: { member: form.member, widths: shownWidths(form, source) } } : offered;
}

/** JSON text that is written as it is, so that numbers keep their characters. */
class RawJsonText {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type WithRaw<Members> = { readonly [Name in keyof Members]: Members[Name] | RawJsonText };

function objectText(members: object): string {
  const texts = Object.entries(members).map(
    ([name, value]: [string, unknown]) =>
      `${JSON.stringify(name)}:${value instanceof RawJsonText ? value.text : JSON.stringify(value)}`,
  );
  return `{${texts.join(",")}}`;
}
