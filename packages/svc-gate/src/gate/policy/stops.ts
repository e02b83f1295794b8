import {
  isSameStop,
  narrowStopsMax,
  stopBody,
  stoppedApprovals,
  stoppedCalls,
  type Approval,
  type RecordedStopAct,
  type Stop,
  type StopAct,
  type StopScope,
  type Stops,
} from "../../approvals/mod.ts";
import type { AppendTransaction } from "../../ledger/mod.ts";
import { bad, good, refuse, type Refusal } from "../../wire/mod.ts";
import type { AdminEvent, MakeAdminEvent } from "./admin-event.ts";
import { gateName } from "./reserved-names.ts";

/** A stop that a person asks for. */
export interface AskedStop {
  readonly scope: StopScope;
  readonly why: string;
  /** `keep` leaves approvals open but ends their votes; `end` cancels them. */
  readonly approvals: "end" | "keep";
}

/** Who asks for a stop, or for the end of one. */
export interface Stopper {
  /** The name of the key. */
  readonly by: string;
  readonly person: string;
}

/** Makes the event that sets a stop. With it, approvals in its scope end or lose their votes. */
export function setStop(asked: AskedStop, { by, person }: Stopper): MakeAdminEvent {
  return async (transaction) => {
    const refusal = tooManyStops(transaction.stops.active, asked.scope);
    if (refusal !== undefined) return bad(refusal);
    return good(await stopEvent(transaction, { ...asked, person, root: null }, by));
  };
}

/** Why one more stop is refused. A stop of a key or of every call never is, because it is for an emergency. */
function tooManyStops(active: readonly Stop[], scope: StopScope): Refusal | undefined {
  const kind = kindOf(scope);
  if (kind === "all" || kind === "key") return undefined;
  const others = active.filter(
    (stop) => stop.root === null && kindOf(stop.scope) === kind && !isSameStop(stop, { root: null, scope }),
  );
  if (others.length < narrowStopsMax) return undefined;
  const sentence = `${narrowStopsMax} stops of ${kind} are in force: lift some of them, or stop the key or every call`;
  return refuse("stop-refused", sentence);
}

function kindOf(scope: StopScope): "all" | "key" | "sessions" | "tools" {
  if (scope === "all") return "all";
  if ("key" in scope) return "key";
  return "tools" in scope ? "tools" : "sessions";
}

/** Makes the event that lifts the stop of a scope. */
export function liftStop({ scope, why }: Pick<AskedStop, "scope" | "why">, { by, person }: Stopper): MakeAdminEvent {
  return (transaction) => {
    const { active } = transaction.stops;
    const isThere = active.some((stop) => isSameStop(stop, { root: null, scope }));
    if (isThere) return Promise.resolve(good(liftEvent({ person, root: null, scope, why }, by)));
    const isOfRoot = active.some((stop) => isSameStop(stop, { root: 1, scope }));
    const sentence = isOfRoot
      ? "this stop was set at the root, so it is lifted there"
      : "no stop in force has this scope: GET /stop lists them";
    return Promise.resolve(bad(refuse("stop-refused", sentence)));
  };
}

/** @param changed the approvals that earlier rows of the transaction have changed */
async function stopEvent(
  transaction: AppendTransaction,
  { approvals, person, root, scope, why }: AskedStop & { readonly person: string; readonly root: number | null },
  by: string,
  changed: ReadonlyMap<number, Approval> = new Map(),
): Promise<AdminEvent> {
  const found = await transaction.dueApprovals(Number.MAX_SAFE_INTEGER);
  const open = found.map((approval) => changed.get(approval.row) ?? approval);
  const { ends, reopens } = stoppedApprovals(open, scope, approvals);
  const rows = { ends: rowsOf(ends), reopens: rowsOf(reopens) };
  const act: StopAct = { act: "stop.set", approvals, person, root, scope, why, ...rows };
  const reason = `Svc: ${person} stopped ${stoppedCalls(scope)}: ${why}`;
  return { by, act: act.act, body: stopBody(act), reason, ends, reopens };
}

function liftEvent(
  { person, root, scope, why }: Pick<StopAct, "person" | "root" | "scope" | "why">,
  by: string,
): AdminEvent {
  const act: StopAct = { act: "stop.lift", person, root, scope, why };
  const because = why === "" ? "" : `: ${why}`;
  const reason = `Svc: ${person} lifted the stop of ${stoppedCalls(scope)}${because}`;
  return { by, act: act.act, body: stopBody(act), reason };
}

function rowsOf(approvals: readonly Approval[]): readonly number[] {
  return approvals.map(({ row }) => row).toSorted((a, b) => a - b);
}

/**
 * The acts of the root's ledger that a tenant's ledger does not have yet. A ledger that has none, and no approvals, needs
 * only the stops in force, and the last act, from which it continues.
 */
export function missingActs({ hasApprovals, stops }: AppendTransaction, root: Stops): readonly RecordedStopAct[] {
  if (root.acts.length === 0) return root.acts;
  const through = Math.max(0, ...stops.acts.map(({ act }) => act.root ?? 0));
  const missing = root.acts.filter(({ seq, act: { scope } }) => seq > through && isForTenants(scope));
  if (hasApprovals || stops.acts.length > 0) return missing;
  return missing.filter((act) => act === missing.at(-1) || root.active.some(({ row }) => row === act.seq));
}

/** A key belongs to the ledger on which it asks, so a stop of a key or a session is for that ledger alone. */
export function isForTenants(scope: StopScope): boolean {
  return scope === "all" || "tools" in scope;
}

/** The event with which a tenant's ledger follows an act of the root. */
export async function followedEvent(
  transaction: AppendTransaction,
  { seq, act }: RecordedStopAct,
  changed: ReadonlyMap<number, Approval>,
): Promise<AdminEvent> {
  const { person, scope, why } = act;
  if (act.act === "stop.lift") return liftEvent({ person, root: seq, scope, why }, gateName);
  return stopEvent(transaction, { approvals: act.approvals, person, root: seq, scope, why }, gateName, changed);
}
