import type { Canonical } from "../wire/mod.ts";
import { isOpen, type Approval } from "./approval.ts";

/** The calls that a stop blocks: all, those of some tools, those of one key, or those of one session of a key. */
export type StopScope =
  | "all"
  | { readonly tools: readonly string[] }
  | { readonly key: string }
  | { readonly session: { readonly key: string; readonly id: string } };

/** The call of a check or of an approval, as far as a stop can name it. */
export interface StoppableCall extends Pick<Approval, "key" | "session" | "tool"> {
  /** The name that was sent, if it may differ from the tool's own name. */
  readonly alias?: string | undefined;
}

/** What a contract, or the route of a message, says of a call beyond its names. */
export interface StopContext {
  /** May the call be one of the tool that a stop names by this name, which the call itself does not have? */
  readonly mayBe: (name: string) => boolean;
  /** True for a message that could not be read: it may be of any session of its key. */
  readonly inAnySession: boolean;
}

/** The stop that blocks a call. */
export interface BlockingStop {
  readonly stop: Stop;
  /** The tool or the session of the stop's scope that the call may be of, if it has another name itself. */
  readonly as: string | undefined;
}

export interface Stop {
  /** The row that set it. */
  readonly row: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Who set it. */
  readonly person: string;
  /** With the own names of the tools that the person named by an alias. */
  readonly scope: StopScope;
  /** As the person wrote it: a stop keeps its identity when a contract gives a name to another tool. */
  readonly written: StopScope;
  readonly why: string;
  /** For a stop that the root set for its tenants: the row in the root's ledger. */
  readonly root: number | null;
}

/** The row of an act that sets or lifts a stop. */
export type StopAct =
  | {
      readonly act: "stop.set";
      /** The own names, at that time, of tools that the scope names only by aliases. */
      readonly also?: readonly string[];
      /** The row of an earlier stop that this one only gives more names, before a contract takes them away. */
      readonly of?: number;
      /** `keep` leaves approvals open but ends their votes; `end` cancels them. */
      readonly approvals: "end" | "keep";
      /** The rows whose approvals it cancels, in order. */
      readonly ends: readonly number[];
      readonly person: string;
      /** The rows whose approvals are pending again, in order. */
      readonly reopens: readonly number[];
      readonly root: number | null;
      readonly root_at?: number;
      readonly scope: StopScope;
      readonly why: string;
    }
  | {
      readonly act: "stop.lift";
      readonly person: string;
      readonly root: number | null;
      /** In a tenant: when the root's row was made. A root that was restored may give its number to another act. */
      readonly root_at?: number;
      readonly scope: StopScope;
      readonly why: string;
    };

export interface RecordedStopAct {
  readonly seq: number;
  readonly at: number;
  readonly act: StopAct;
}

/** All stops of a ledger: the acts in their order, and what is in force after them. */
export interface Stops {
  readonly acts: readonly RecordedStopAct[];
  readonly active: readonly Stop[];
}

export const noStops: Stops = { acts: [], active: [] };

/** The most stops of tools, and the most of sessions, that a ledger's own people can have in force. */
export const narrowStopsMax = 100;

/** Reads the body of an act about stops; undefined for another act. @throws {SyntaxError} if it is damaged */
export function readStopAct(act: string, body: string): StopAct | undefined {
  if (act !== "stop.set" && act !== "stop.lift") return undefined;
  return { ...(JSON.parse(body) as object), act } as StopAct;
}

export function stopBody({ act: _act, ...body }: StopAct): Canonical {
  return body;
}

/** The stops after one more act. A stop replaces an earlier one of the same written scope. */
export function withStopAct({ acts, active }: Stops, recorded: RecordedStopAct): Stops {
  const { seq, at, act } = recorded;
  const others = active.filter((stop) => !isSameStop(stop, act));
  const { person, scope: written, why, root } = act;
  if (act.act === "stop.lift") return { acts: [...acts, recorded], active: others };
  const first = active.find(({ row }) => row === act.of)?.at ?? at; // more names do not make a stop younger
  const set = { row: seq, at: first, person, scope: wholeScope(written, act.also), written, why, root };
  return { acts: [...acts, recorded], active: [...others, set] };
}

/** Is it the stop of this written scope, and has the same ledger set it? */
export function isSameStop(
  { root, written }: Stop,
  other: { readonly root: number | null; readonly scope: StopScope },
): boolean {
  return (root === null) === (other.root === null) && isSameScope(written, other.scope);
}

/** A ledger may have thousands of stops of keys, so this makes no text of a scope. */
export function isSameScope(one: StopScope, other: StopScope): boolean {
  if (one === "all" || other === "all") return one === other;
  if ("key" in one) return "key" in other && one.key === other.key;
  if ("session" in one)
    return "session" in other && one.session.key === other.session.key && one.session.id === other.session.id;
  if (!("tools" in other) || one.tools.length !== other.tools.length) return false;
  const names = new Set(other.tools);
  return one.tools.every((tool) => names.has(tool));
}

/** The stop that blocks a call; undefined if none does. */
export function stopFor(active: readonly Stop[], call: StoppableCall, context?: StopContext): BlockingStop | undefined {
  const stop = active.find(({ scope }) => isStopped(scope, call));
  if (stop !== undefined) return { stop, as: undefined };
  for (const possible of context === undefined ? [] : active) {
    const as = possibleName(possible.scope, call, context as StopContext);
    if (as !== undefined) return { stop: possible, as };
  }
  return undefined;
}

function possibleName(scope: StopScope, { key }: StoppableCall, context: StopContext): string | undefined {
  if (scope === "all" || "key" in scope) return undefined;
  if ("tools" in scope) return scope.tools.find((name) => context.mayBe(name));
  return context.inAnySession && scope.session.key === key ? scope.session.id : undefined;
}

/** Does the stop name this tool, or this session of the key? */
export function namesIt({ scope }: Stop, name: string, key: string): boolean {
  if (scope === "all" || "key" in scope) return false;
  return "tools" in scope ? scope.tools.includes(name) : scope.session.id === name && scope.session.key === key;
}

/** The scope with more names of its tools. */
export function wholeScope(scope: StopScope, also: readonly string[] = []): StopScope {
  return scope === "all" || !("tools" in scope) ? scope : { tools: [...scope.tools, ...also] };
}

export function isStopped(scope: StopScope, { key, session, tool, alias = tool }: StoppableCall): boolean {
  if (scope === "all") return true;
  if ("tools" in scope) return scope.tools.includes(tool) || scope.tools.includes(alias);
  if ("key" in scope) return scope.key === key;
  return scope.session.key === key && scope.session.id === session;
}

/** What a stop of this scope does to open approvals. */
export function stoppedApprovals(
  open: readonly Approval[],
  scope: StopScope,
  approvals: "end" | "keep",
): { readonly ends: readonly Approval[]; readonly reopens: readonly Approval[] } {
  const stopped = open.filter((approval) => isOpen(approval) && isStopped(scope, approval));
  if (approvals === "end") return { ends: stopped, reopens: [] };
  return { ends: [], reopens: stopped.filter(({ votes }) => votes.length > 0) };
}

/** The calls of a scope, for a sentence. The texts of callers are in quotes. */
export function stoppedCalls(scope: StopScope): string {
  if (scope === "all") return "every call";
  if ("tools" in scope) return `every call of ${scope.tools.map((tool) => JSON.stringify(tool)).join(", ")}`;
  if ("key" in scope) return `every call of the key ${scope.key}`;
  return `every call in the session ${JSON.stringify(scope.session.id)} of the key ${scope.session.key}`;
}
