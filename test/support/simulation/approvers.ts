import type { Asker } from "../../../packages/core/src/approvals/mod.ts";
import { askOnce, bodyOf, expected, pause, type Serving } from "./clients.ts";
import type { Outside } from "./outside.ts";
import { disclosuresOf, hashOf, leafOf, part, type Row } from "./rows.ts";

/** Who may decide: two people, of whom any one is enough. */
const approvers = ["anna", "bob"];

export const deciders = {
  voter: (key: string) => (approvers.includes(key) ? { person: key, groups: [], makers: [] } : undefined),
  asker: (key: string): Asker => ({ person: key, makers: [] }),
  refresh: (): Promise<void> => Promise.resolve(),
};

/** A parked call, as its client knows it. */
export interface Parked {
  readonly body: string;
  readonly keyName: string;
}

/** A decision that was answered with 200. */
export interface Answered {
  /** The row of the parked call. */
  readonly row: number;
  readonly act: "approval.approve" | "approval.cancel" | "approval.deny";
  /** The person of a vote. */
  readonly person: string | undefined;
}

/** Acts as clients whose calls wait for a person and use what was approved, and as the people who decide. */
async function approve(serving: Serving, outside: Outside, { life, votes }: Votes): Promise<void> {
  const { machine } = serving;
  const { process, chance } = machine;
  for (let vote = 1; vote <= votes; vote += 1) {
    await pause(machine, chance.whole(0, 300));
    const ids = [...outside.parked.keys()].slice(-4);
    const id = ids.length === 0 ? "" : chance.pick(ids);
    await chance.way<() => Promise<void>>([
      [ids.length === 0 ? 100 : 5, () => () => park(serving, outside, `${life}/buy/${vote}`)],
      [6, () => () => decide(serving, outside, id, "approve")],
      [1, () => () => decide(serving, outside, id, "deny")],
      [1, () => () => cancel(serving, outside, id)],
      [5, () => () => use(serving, outside, id)],
    ])();
    if (!process.isAlive) return;
  }
}

interface Votes {
  /** The number of the process's life. */
  readonly life: number;
  readonly votes: number;
}

/** Asks about a call that waits for a person, now and then twice at the same time. */
async function park(serving: Serving, outside: Outside, call: string): Promise<void> {
  const { chance } = serving.machine;
  const body = bodyOf(call, `b${chance.whole(0, 9)}`, chance.whole(1, 9), "buy");
  const once = (name?: string): Promise<void> => askOnce(serving, outside, { body, name });
  await Promise.all(chance.often(0.2) ? [once(), once()] : [once(call)]);
}

function rowOf(id: string): number {
  return Number(id.split("_")[1]);
}

async function decide(
  { gate, machine }: Serving,
  outside: Outside,
  id: string,
  decision: "approve" | "deny",
): Promise<void> {
  const { chance, process } = machine;
  const person = chance.pick(approvers);
  const hash = outside.told.get(rowOf(id)) ?? "";
  const decided = await gate.approvals.decide(person, [{ id, hash, decision, comment: "because" }]);
  if (!process.isAlive || !decided.ok) return;
  outside.decided.push({ row: rowOf(id), act: `approval.${decision}`, person });
  for (const { receipt } of decided.value) if (receipt !== undefined) outside.answered(receipt, machine.now);
  if (decision === "approve" && chance.often(0.6)) await use({ gate, machine } as Serving, outside, id);
}

async function cancel({ gate, machine }: Serving, outside: Outside, id: string): Promise<void> {
  const { process } = machine;
  const cancelled = await gate.approvals.cancel("anna", id, false, null);
  if (!process.isAlive || !cancelled.ok) return;
  outside.decided.push({ row: rowOf(id), act: "approval.cancel", person: undefined });
  const { receipt } = cancelled.value;
  if (receipt !== undefined) outside.answered(receipt, machine.now);
}

/** Asks again with the approval's id, sometimes twice at the same time. */
async function use(serving: Serving, outside: Outside, id: string): Promise<void> {
  const parked = outside.parked.get(id);
  if (parked === undefined) return;
  const { keyName } = parked;
  const body = JSON.stringify({ ...(JSON.parse(parked.body) as object), approval: { id } });
  const once = (): Promise<void> => askOnce(serving, outside, { body, name: undefined, keyName });
  await Promise.all(serving.machine.chance.often(0.3) ? [once(), once()] : [once()]);
}

/** The states of all approvals, as the rows alone say. */
export function statesOf(rows: readonly Row[]): ReadonlyMap<number, string> {
  const states = new Map<number, string>();
  for (const row of rows) {
    const outcome = part(row, "outcome") as { readonly asked?: { readonly how: string } } | undefined;
    if (leafOf(row).kind === "check" && outcome?.asked?.how === "opened") states.set(row.seq, "pending");
    for (const [approval, state] of endsOf(row)) states.set(approval, state);
  }
  // An approval lives as long as its row is whole; a denial lives on.
  for (const { evidence, seq } of rows)
    if (states.get(seq) !== "denied" && evidence.split("~").some((text) => text.startsWith("!"))) states.delete(seq);
  return states;
}

interface Body {
  readonly person: string;
  readonly row: number;
  readonly rows: readonly number[];
  readonly use_by: number | null;
  readonly uses: readonly { readonly row: number; readonly approval: number }[];
  readonly pairs: readonly (readonly [old: number, by: number])[];
}

/** The approvals that a row of an act is about, each with its state after it. */
function endsOf(row: Row): readonly (readonly [approval: number, state: string])[] {
  const { act } = leafOf(row);
  const body = part(row, "input") as Body;
  switch (act) {
    case "approval.approve":
      return [[body.row, body.use_by === null ? "pending" : "approved"]];
    case "approval.deny":
      return [[body.row, "denied"]];
    case "approval.cancel":
      return body.rows.map((approval) => [approval, "cancelled"] as const);
    case "approval.expire":
      return body.rows.map((approval) => [approval, "expired"] as const);
    case "approval.use":
      return body.uses.map(({ approval }) => [approval, "used"] as const);
    case "approval.supersede":
      return body.pairs.map(([old]) => [old, "superseded"] as const);
    default:
      return [];
  }
}

function decisionsOf(row: Row): readonly string[] {
  const { act } = leafOf(row);
  const { row: voted, rows, person = "" } = (part(row, "input") ?? {}) as Partial<Body>;
  if (act === "approval.cancel") return (rows ?? []).map((each) => `${act} ${each} `);
  return act === "approval.approve" || act === "approval.deny" ? [`${act} ${voted} ${person}`] : [];
}

/**
 * Checks that an answered decision is in a row, that one row used each approval, in the transaction of the check, and
 * that nothing changed an approval after its end.
 */
export function decisionProblem(rows: readonly Row[], { decided }: Pick<Outside, "decided">): string | undefined {
  const recorded = new Set(rows.flatMap(decisionsOf));
  for (const { row, act, person } of decided) {
    if (!recorded.has(`${act} ${row} ${person ?? ""}`))
      return `LOST: ${act} of row ${row} by ${person ?? "a person"} was answered, and no row has it`;
  }
  const ended = new Map<number, string>();
  for (const row of rows) {
    for (const [approval, state] of endsOf(row)) {
      const before = ended.get(approval);
      if (before !== undefined)
        return `row ${row.seq} makes the approval of row ${approval} ${state}: it was ${before}`;
      if (state !== "pending" && state !== "approved") ended.set(approval, state);
    }
  }
  return useProblem(rows);
}

function useProblem(rows: readonly Row[]): string | undefined {
  const named = new Map<number, number>();
  for (const row of rows) {
    if (leafOf(row).act !== "approval.use") continue;
    for (const { row: user, approval } of (part(row, "input") as Body).uses) {
      named.set(user, approval);
      const between = rows.slice(user - 1, row.seq - 1);
      if (between.some((each) => leafOf(each).kind !== "check")) return `row ${row.seq} is not behind the row ${user}`;
    }
  }
  for (const row of rows) {
    const { asked } = (part(row, "outcome") ?? {}) as { readonly asked?: { how: string; approval?: number } };
    if (leafOf(row).kind !== "check" || !disclosuresOf(row).has("outcome")) continue;
    if ((asked?.how === "used" ? asked.approval : undefined) !== named.get(row.seq))
      return `row ${row.seq} used the approval ${asked?.approval}, and an act says ${named.get(row.seq)}`;
  }
  return undefined;
}

/** Checks that a gate that has just started knows each approval as its rows say. */
export async function stateProblem({ gate, machine }: Serving, rows: readonly Row[]): Promise<string | undefined> {
  const states = statesOf(rows);
  for (const row of rows) {
    const id = `apr_${row.seq}_${hashOf(row).slice(0, 32)}`;
    const state = (await gate.approvals.find(id))?.status;
    if (state !== states.get(row.seq))
      return `the approval of row ${row.seq} is ${state}, and its rows say ${states.get(row.seq)} at ${machine.now}`;
  }
  return undefined;
}

/** Reports a decision that failed on a disk that works. */
export async function deciding(serving: Serving, outside: Outside, votes: Votes): Promise<void> {
  try {
    await approve(serving, outside, votes);
  } catch (error) {
    expected(serving.machine, outside, `a decision failed: ${String(error)}`);
  }
}
