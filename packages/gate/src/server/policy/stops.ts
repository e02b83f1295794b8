import type { PolicySet } from "../../../../core/src/contract/mod.ts";
import {
  endsGrant,
  isSameScope,
  isSameStop,
  narrowStopsMax,
  sessionName,
  stopBody,
  stoppedApprovals,
  stoppedCalls,
  wholeScope,
  type Approval,
  type EndedByStop,
  type RecordedStopAct,
  type Stop,
  type StopAct,
  type StopScope,
  type Stops,
} from "../../../../core/src/approvals/mod.ts";
import type { AppendTransaction } from "../../ledger/mod.ts";
import { bad, good, refuse, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import type { AdminEvent, MakeAdminEvent } from "./admin-event.ts";
import type { ActivePolicy } from "./active-policy.ts";
import { gateName } from "./reserved-names.ts";

export interface StopRequest {
  readonly scope: StopScope;
  readonly why: string;
  /** `keep` leaves approvals open but ends their votes; `end` cancels them. */
  readonly approvals: "end" | "keep";
}

/** Who requests a stop, or the end of one. */
export interface Stopper {
  /** The name of the key. */
  readonly by: string;
  readonly person: string;
}

/** The contract in force on the stop's ledger: a stop of an alias is one of the tool. */
type Names = Pick<PolicySet, "aliases">;

/**
 * Makes the event that sets a stop, with the numbers of what it ends: approvals and grants in its scope, or the votes of
 * approvals.
 *
 * @param expired the approvals that an earlier row of the transaction has ended, because their time is over
 */
export async function stopEvent(
  { transaction, at }: { readonly transaction: AppendTransaction; readonly at: number },
  { by, person, ...request }: StopRequest & Stopper,
  names: Names,
  expired: ReadonlyMap<number, Approval>,
): Promise<Result<{ readonly event: AdminEvent; readonly ended: EndedByStop }, Refusal>> {
  const refusal = tooManyStops(transaction.stops.active, request.scope);
  if (refusal !== undefined) return bad(refusal);
  const also = ownNames(request.scope, names);
  const event = await setEvent(transaction, { ...request, also, person, root: null }, by, expired);
  const { ends = [], reopens = [] } = event;
  const whole = wholeScope(request.scope, also);
  const digestSession = (key: string, id: string): string => transaction.digest(sessionName(key, id));
  const grants = transaction.grants.filter(
    ({ until, ...grant }) => at < until && endsGrant(whole, grant, digestSession),
  ).length;
  return good({ event, ended: { approvals: ends.length, votes: reopens.length, grants } });
}

/** The own names of the tools that the scope names only by aliases. */
function ownNames(scope: StopScope, { aliases }: Names): readonly string[] {
  if (scope === "all" || !("tools" in scope)) return [];
  const own = new Set(scope.tools.map((tool) => aliases.get(tool) ?? tool));
  return [...own.difference(new Set(scope.tools))];
}

/** Why one more stop is refused. A stop of a key or of every call never is, because it is for an emergency. */
function tooManyStops(active: readonly Stop[], scope: StopScope): Refusal | undefined {
  const kind = classifyStopScope(scope);
  if (kind === "all" || kind === "key") return undefined;
  const others = active.filter(
    (stop) => stop.root === null && classifyStopScope(stop.scope) === kind && !isSameStop(stop, { root: null, scope }),
  );
  if (others.length < narrowStopsMax) return undefined;
  const sentence = `${narrowStopsMax} stops of ${kind} are in force: lift some of them, or stop the key or every call`;
  return refuse("stop-refused", sentence);
}

function classifyStopScope(scope: StopScope): "all" | "key" | "sessions" | "tools" {
  if (scope === "all") return "all";
  if ("key" in scope) return "key";
  return "tools" in scope ? "tools" : "sessions";
}

/** Makes the event that lifts the stop of a scope, as the person wrote it or as GET /stop lists it. */
export function liftStop(
  { scope, why }: Pick<StopRequest, "scope" | "why">,
  { by, person }: Stopper,
  names: Names,
): MakeAdminEvent {
  return async ({ stops: { active } }) => {
    const own = active.filter(({ root }) => root === null);
    const stop = stopNamed(own, scope, names);
    if (stop !== undefined) return good(liftEvent({ person, root: null, scope: stop.written, why }, by));
    if (stopNamed(active, scope, names) !== undefined)
      return bad(refuse("stop-refused", "this stop was set at the root, so it is lifted there"));
    const near = own.filter((each) => sharesTool(each.scope, scope));
    const others = near.map((each) => stoppedCalls(each.scope)).join("; ");
    const more =
      others === ""
        ? "`svc-gate stop --list` and GET /stop show those in force"
        : `these are, and each is lifted whole: ${others}`;
    return bad(refuse("stop-refused", `no stop in force has this scope: ${more}`));
  };
}

/** The stop that a person means: by the scope that was written, or else by the one that GET /stop lists. */
function stopNamed(stops: readonly Stop[], scope: StopScope, names: Names): Stop | undefined {
  const whole = wholeScope(scope, ownNames(scope, names));
  return (
    stops.find((stop) => isSameScope(stop.written, scope)) ??
    stops.find((stop) => isSameScope(stop.scope, scope) || isSameScope(stop.scope, whole))
  );
}

function sharesTool(one: StopScope, other: StopScope): boolean {
  if (one === "all" || other === "all" || !("tools" in one) || !("tools" in other)) return false;
  return one.tools.some((tool) => other.tools.includes(tool));
}

interface StopEventParts extends StopRequest {
  readonly also: readonly string[];
  readonly person: string;
  readonly root: number | null;
  readonly root_at?: number | undefined;
  readonly of?: number;
}

/** @param changed the approvals that earlier rows of the transaction have changed */
async function setEvent(
  transaction: AppendTransaction,
  { also, approvals, of, person, root, root_at: rootAt, scope, why }: StopEventParts,
  by: string,
  changed?: ReadonlyMap<number, Approval>,
): Promise<AdminEvent> {
  const found = await transaction.dueApprovals(Number.MAX_SAFE_INTEGER);
  const open = found.map((approval) => changed?.get(approval.row) ?? approval);
  const whole = wholeScope(scope, also);
  const { ends, reopens } = stoppedApprovals(open, whole, approvals);
  const act: StopAct = {
    act: "stop.set",
    ...(also.length > 0 && { also }),
    ...(of !== undefined && { of }),
    approvals,
    person,
    root,
    ...(rootAt !== undefined && { root_at: rootAt }),
    scope,
    why,
    ends: listRowNumbers(ends),
    reopens: listRowNumbers(reopens),
  };
  const reason = `Svc: ${person} stopped ${stoppedCalls(whole)}: ${why}`;
  return { by, act: act.act, body: stopBody(act), reason, ends, reopens };
}

function liftEvent(
  { person, root, root_at: at, scope, why }: Pick<StopAct, "person" | "root" | "root_at" | "scope" | "why">,
  by: string,
): AdminEvent {
  const act: StopAct = { act: "stop.lift", person, root, ...(at !== undefined && { root_at: at }), scope, why };
  const because = why === "" ? "" : `: ${why}`;
  const reason = `Svc: ${person} lifted the stop of ${stoppedCalls(scope)}${because}`;
  return { by, act: act.act, body: stopBody(act), reason };
}

function listRowNumbers(approvals: readonly Approval[]): readonly number[] {
  return approvals.map(({ row }) => row).toSorted((a, b) => a - b);
}

/**
 * The acts of the root's ledger that a tenant's ledger does not have yet. A ledger that has none, and no approvals, needs
 * only the stops in force, and the last act, from which it continues.
 */
export function missingActs({ stops, store }: AppendTransaction, root: Stops): readonly RecordedStopAct[] {
  if (root.acts.length === 0) return root.acts;
  const followed = stops.acts.filter(({ act }) => act.root !== null && !("of" in act));
  const last = followed.findLast(({ act }) => isThere(act, root));
  const missing = root.acts.filter(({ seq, act: { scope } }) => seq > (last?.act.root ?? 0) && isForTenants(scope));
  if (last !== followed.at(-1)) return [...lostStops(stops, root, missing), ...missing];
  if (store.hasApprovals || stops.acts.length > 0) return missing;
  return missing.filter((act) => act === missing.at(-1) || root.active.some(({ row }) => row === act.seq));
}

/** Does the root have the act that a tenant followed? After a restore its row may be gone, or be another one. */
function isThere({ act, person, root, root_at: at, scope, why }: StopAct, { acts }: Stops): boolean {
  const found = acts.findLast(({ seq }) => seq === root);
  if (found === undefined || (at !== undefined && at !== found.at)) return false;
  return (
    found.act.act === act && found.act.person === person && found.act.why === why && isSameScope(found.act.scope, scope)
  );
}

/** Lifts the root's stops that a restore of the root has lost: nobody could lift them there. */
function lostStops({ active }: Stops, root: Stops, [first]: readonly RecordedStopAct[]): readonly RecordedStopAct[] {
  if (first === undefined) return [];
  const lost = active.filter(
    (stop) => stop.root !== null && !root.active.some((other) => isSameScope(other.written, stop.written)),
  );
  const why = "the root's ledger was restored without it";
  return lost.map(({ written: scope }) => ({
    ...first,
    act: { act: "stop.lift", person: gateName, root: first.seq, scope, why },
  }));
}

/**
 * Gives each stop in force the names that its tools have in a contract that is about to be replaced, where the next one takes
 * them away: the own names, and an alias that becomes the tool's only name.
 *
 * @returns the approvals that ended, or lost their votes
 */
export async function completeStops(
  transaction: AppendTransaction,
  at: number,
  { contract, mode, policySet }: ActivePolicy,
  next: Pick<PolicySet, "tools">,
): Promise<readonly Approval[]> {
  const changed = new Map<number, Approval>();
  for (const { person, root, row, scope, why, written } of transaction.stops.active) {
    const own = ownNames(scope, policySet);
    const more = [...own, ...renamedIn(wholeScope(scope, own), policySet, next)];
    const set = transaction.stops.acts.findLast(({ seq }) => seq === row)?.act;
    if (more.length === 0 || set?.act !== "stop.set") continue;
    const { approvals, also = [], root_at: rootAt } = set;
    const parts = { also: [...also, ...more], approvals, of: row, person, root, root_at: rootAt, scope: written, why };
    const event = await setEvent(transaction, parts, gateName, changed);
    for (const approval of transaction.change({ ...event, at, contract, mode })) changed.set(approval.row, approval);
  }
  return [...changed.values()];
}

/** The aliases of a scope's tools that are tools of the next contract, which lacks these tools. */
function renamedIn(scope: StopScope, { aliases }: Names, { tools }: Pick<PolicySet, "tools">): readonly string[] {
  if (scope === "all" || !("tools" in scope)) return [];
  return [...aliases].flatMap(([alias, own]) => {
    const isRenamed = scope.tools.includes(own) && !tools.has(own) && tools.has(alias);
    return isRenamed && !scope.tools.includes(alias) ? [alias] : [];
  });
}

/** A key belongs to the ledger on which it asks, so a stop of a key or a session is for that ledger alone. */
export function isForTenants(scope: StopScope): boolean {
  return scope === "all" || "tools" in scope;
}

/** The event with which a tenant's ledger follows an act of the root. */
export async function followedEvent(
  transaction: AppendTransaction,
  { seq, at, act }: RecordedStopAct,
  names: Names,
  changed: ReadonlyMap<number, Approval>,
): Promise<AdminEvent> {
  const { person, scope, why } = act;
  if (act.act === "stop.lift") return liftEvent({ person, root: seq, root_at: at, scope, why }, gateName);
  // In a tenant a name may be an alias that it is not at the root.
  const also = [...new Set([...(act.also ?? []), ...ownNames(scope, names)])];
  const parts = { also, approvals: act.approvals, person, root: seq, root_at: at, scope, why };
  return setEvent(transaction, parts, gateName, changed);
}
