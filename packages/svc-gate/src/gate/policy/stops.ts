import type { PolicySet } from "../../contract/mod.ts";
import {
  endsGrant,
  isSameStop,
  narrowStopsMax,
  sessionName,
  stopBody,
  stoppedApprovals,
  stoppedCalls,
  wholeScope,
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

/** What a stop ended on its own ledger, in numbers. */
export interface EndedByStop {
  /** Calls that waited for a person, or that a person had approved. */
  readonly approvals: number;
  /** Calls that wait again, without the votes so far. */
  readonly votes: number;
  readonly grants: number;
}

/** The contract in force on the stop's ledger: a stop of an alias is one of the tool. */
type Names = Pick<PolicySet, "aliases">;

/**
 * Makes the event that sets a stop. With it, approvals and grants in its scope end, or approvals lose their votes.
 *
 * @param onEnds called with the numbers of those, before the event is recorded
 */
export function setStop(
  asked: AskedStop,
  { by, person }: Stopper,
  names: Names,
  onEnds: (ended: EndedByStop) => void,
): MakeAdminEvent {
  return async (transaction) => {
    const scope = withOwnNames(asked.scope, names);
    const refusal = tooManyStops(transaction.stops.active, scope);
    if (refusal !== undefined) return bad(refusal);
    const event = await stopEvent(transaction, { ...asked, scope, person, root: null }, { by, names });
    const { ends = [], reopens = [] } = event;
    const placeOf = (key: string, id: string): string => transaction.digest(sessionName(key, id));
    const grants = transaction.grants.filter((grant) => endsGrant(scope, grant, placeOf)).length;
    onEnds({ approvals: ends.length, votes: reopens.length, grants });
    return good(event);
  };
}

/** Adds the own name of each tool that the scope names by an alias. */
function withOwnNames(scope: StopScope, { aliases }: Names): StopScope {
  if (scope === "all" || !("tools" in scope) || !scope.tools.some((tool) => aliases.has(tool))) return scope;
  return { tools: [...new Set(scope.tools.flatMap((tool) => [tool, aliases.get(tool) ?? tool]))] };
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

/** Makes the event that lifts the stop of a scope, as the person wrote it or as GET /stop lists it. */
export function liftStop(
  { scope, why }: Pick<AskedStop, "scope" | "why">,
  { by, person }: Stopper,
  names: Names,
): MakeAdminEvent {
  return async ({ stops: { active } }) => {
    const scopes = [scope, withOwnNames(scope, names)];
    const isThere =
      (root: number | null) =>
      (each: StopScope): boolean =>
        active.some((stop) => isSameStop(stop, { root, scope: each }));
    const found = scopes.find(isThere(null));
    if (found !== undefined) return good(liftEvent({ person, root: null, scope: found, why }, by));
    if (scopes.some(isThere(1)))
      return bad(refuse("stop-refused", "this stop was set at the root, so it is lifted there"));
    const near = active.filter((stop) => stop.root === null && sharesTool(stop.scope, scope));
    const others = near.map((stop) => stoppedCalls(stop.scope)).join("; ");
    const more = others === "" ? "GET /stop lists them" : `these are, and each is lifted whole: ${others}`;
    return bad(refuse("stop-refused", `no stop in force has this scope: ${more}`));
  };
}

function sharesTool(one: StopScope, other: StopScope): boolean {
  if (one === "all" || other === "all" || !("tools" in one) || !("tools" in other)) return false;
  return one.tools.some((tool) => other.tools.includes(tool));
}

interface StopEventParts {
  readonly by: string;
  readonly names: Names;
  /** The approvals that earlier rows of the transaction have changed. */
  readonly changed?: ReadonlyMap<number, Approval>;
}

/** The own names of tools that a scope names only by aliases: in a tenant, a name may be an alias that it is not at the root. */
function ownNamesBeside(scope: StopScope, names: Names): readonly string[] {
  const whole = withOwnNames(scope, names);
  if (whole === scope || whole === "all" || scope === "all" || !("tools" in whole) || !("tools" in scope)) return [];
  return whole.tools.filter((tool) => !scope.tools.includes(tool));
}

async function stopEvent(
  transaction: AppendTransaction,
  { approvals, person, root, scope, why }: AskedStop & { readonly person: string; readonly root: number | null },
  { by, names, changed }: StopEventParts,
): Promise<AdminEvent> {
  const found = await transaction.dueApprovals(Number.MAX_SAFE_INTEGER);
  const open = found.map((approval) => changed?.get(approval.row) ?? approval);
  const also = ownNamesBeside(scope, names);
  const { ends, reopens } = stoppedApprovals(open, wholeScope({ scope, also }), approvals);
  const rows = { ends: rowsOf(ends), reopens: rowsOf(reopens) };
  const act: StopAct = {
    act: "stop.set",
    ...(also.length > 0 && { also }),
    approvals,
    person,
    root,
    scope,
    why,
    ...rows,
  };
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
  names: Names,
  changed: ReadonlyMap<number, Approval>,
): Promise<AdminEvent> {
  const { person, scope, why } = act;
  if (act.act === "stop.lift") return liftEvent({ person, root: seq, scope, why }, gateName);
  const asked = { approvals: act.approvals, person, root: seq, scope, why };
  return stopEvent(transaction, asked, { by: gateName, names, changed });
}
