/** Random histories of approvals. A step is plain data, so that a failing history can be cut and printed. */
import { patience } from "../../random-test.ts";
import { Chance } from "../chance.ts";
import { terms, type Call } from "./contract.ts";
import type { Mode, Scope } from "./model.ts";

/** A check; `names` is the position of an approval among those opened so far, counted from the newest. */
export interface Ask {
  readonly call: Call;
  readonly names: number | "unknown" | null;
  /** If the check names an approval, its call is that of the approval with these changes. */
  readonly change?: Partial<Call>;
}

export type Step =
  /** Checks of one key that arrive together. */
  | { readonly do: "ask"; readonly asks: readonly Ask[] }
  | {
      readonly do: "decide";
      readonly of: number;
      readonly person: string;
      readonly decision: "approve" | "deny";
      readonly scope: Scope;
      readonly forMs: number | null;
    }
  | { readonly do: "cancel"; readonly of: number; readonly person: string | null; readonly session: string | null }
  | { readonly do: "wait"; readonly ms: number }
  /** Until some milliseconds from the end of an approval. */
  | { readonly do: "wait-for"; readonly of: number; readonly ms: number }
  | { readonly do: "reload"; readonly terms: number; readonly mode: Mode }
  | {
      readonly do: "key";
      readonly person: string;
      readonly isActive: boolean;
      readonly groups: readonly string[];
      readonly maker?: string;
    }
  /** Of one of the newest approvals, or of the check at a share of all checks. */
  | {
      readonly do: "erase";
      readonly of: number;
      readonly at?: number;
      readonly part: "call" | "input" | "platform" | "reason";
    }
  | { readonly do: "restart" };

/** The people, with their groups and the makers of young keys. */
export const people: readonly (readonly [person: string, groups: readonly string[], maker?: string])[] = [
  ["anna", ["finance"]],
  ["bob", ["finance", "legal", "board"]],
  ["cleo", ["legal"]],
  ["dan", ["board"]],
  ["eve", []],
  ["fay", ["legal", "board"], "gus"],
  ["gus", ["legal"]],
];

/** The people of the keys that ask. */
export const agents: Readonly<Record<string, string>> = { agent: "agent", annas: "anna" };

const groups = ["finance", "legal", "board"] as const;
const minute = 60_000;

export function stepsOf(seed: number): readonly Step[] {
  const chance = new Chance(seed);
  const calls = chance.many(2, 6, () => callOf(chance));
  return chance.many(10, 70, () => stepOf(chance, calls));
}

function callOf(chance: Chance): Call {
  const price = chance.way([
    [4, () => undefined],
    [1, () => chance.pick(["11", "12.5", "14"])],
  ]);
  return {
    tool: chance.often(0.8) ? "pay.send" : "pay.legal",
    key: chance.pick(["agent", "agent", "annas"]),
    session: chance.pick(["s1", "s2", null]),
    amount: chance.pick(["5", "950", "1200", "1200.0", "2100", "2500"]),
    to: chance.pick(["x", "x", "x", "often", "often", "nobody"]),
    wallet: chance.pick(["w1", "w2"]),
    ...(price !== undefined && { price }),
  };
}

/** Changes of a call, in ways that matter and in ways that do not. */
function changeOf(chance: Chance): Partial<Call> {
  return chance.way<Partial<Call>>([
    [14, () => ({})],
    [1, () => ({ session: chance.pick(["s1", "s2", "s3", null]) })],
    [1, () => ({ wallet: chance.pick(["w1", "w2"]) })],
    [1, () => ({ amount: chance.pick(["1200", "1200.0", "2100", "2100.0"]) })],
    [1, () => ({ to: chance.pick(["x", "y", "often"]) })],
    [1, () => ({ note: chance.pick(["rent", "food"]) })],
    [1, () => ({ isTurned: true })],
    [2, () => ({ price: chance.pick(["9", "11", "12", "12.5", "13.4", "15"]) })],
    [1, () => ({ tag: chance.pick(["a", "b"]) })],
    [1, () => ({ key: chance.pick(["agent", "annas"]) })],
    [1, () => ({ tool: chance.pick(["pay.send", "pay.legal"]) })],
  ]);
}

function askOf(chance: Chance, calls: readonly Call[]): Ask {
  return chance.way<Ask>([
    [4, () => ({ call: { ...chance.pick(calls), ...changeOf(chance) }, names: null })],
    [1, () => ({ call: chance.pick(calls), names: near(chance) })],
    [6, () => ({ call: chance.pick(calls), names: near(chance), change: changeOf(chance) })],
    [0.2, () => ({ call: chance.pick(calls), names: "unknown" })],
  ]);
}

/** Most steps are about one of the newest approvals. */
function near(chance: Chance): number {
  return chance.often(0.6) ? 0 : chance.whole(0, 5);
}

function stepOf(chance: Chance, calls: readonly Call[]): Step {
  // Bob is in every group, so many calls are approved.
  const person = (): string => (chance.often(0.3) ? "bob" : chance.pick(people)[0]);
  return chance.way<Step>([
    [12, () => ({ do: "ask", asks: [askOf(chance, calls)] })],
    [
      2,
      () => {
        const asks = chance.many(2, 4, () => askOf(chance, calls));
        const key = asks[0]?.call.key ?? "agent";
        const ofKey = ({ call, change, ...ask }: Ask): Ask => ({
          ...ask,
          call: { ...call, key },
          ...(change !== undefined && { change: { ...change, key } }),
        });
        return { do: "ask", asks: asks.map(ofKey) };
      },
    ],
    [10, () => decisionOf(chance, person(), "approve")],
    [2, () => decisionOf(chance, person(), "deny")],
    [
      0.7,
      () => ({
        do: "cancel",
        of: near(chance),
        person: chance.often(0.5) ? person() : null,
        session: chance.pick(["s1", "s2", null]),
      }),
    ],
    [
      2,
      () => ({
        do: "wait",
        ms: chance.pick([1, 1000, minute, 4 * minute, 11 * minute, 59 * minute, 24 * 60 * minute]),
      }),
    ],
    [1, () => ({ do: "wait-for", of: near(chance), ms: chance.pick([-1, 0, 1]) })],
    [
      1,
      () => ({
        do: "reload",
        terms: chance.whole(0, terms.length - 1),
        mode: chance.pick(["enforce", "enforce", "assist"]),
      }),
    ],
    [1, () => keyOf(chance, person())],
    [0.5, () => ({ do: "erase", of: near(chance), part: chance.pick(["input", "platform", "reason"]) })],
    [0.3, () => ({ do: "restart" })],
  ]);
}

function keyOf(chance: Chance, person: string): Step {
  const maker = chance.often(0.3) ? { maker: chance.pick(["gus", "anna", "agent"]) } : {};
  return { do: "key", person, isActive: chance.often(0.6), groups: chance.some(groups, 0.5), ...maker };
}

function decisionOf(chance: Chance, person: string, decision: "approve" | "deny"): Step {
  const forMs = chance.often(0.5) ? null : chance.pick([minute, 20 * minute, 48 * 60 * minute]);
  return {
    do: "decide",
    of: near(chance),
    person,
    decision,
    scope: chance.pick(["call", "call", "tool", "rule"]),
    forMs: decision === "deny" ? forMs : null,
  };
}

const triesMax = 1000;

/** Leaves out steps as long as the history still fails and patience lasts. */
export async function shrink<Item>(
  steps: readonly Item[],
  fails: (fewer: readonly Item[]) => Promise<boolean>,
): Promise<readonly Item[]> {
  const mayTry = patience(triesMax);
  let best = steps;
  for (let size = Math.ceil(best.length / 2); size > 0; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < best.length;) {
      if (!mayTry()) return best;
      const fewer = best.toSpliced(from, size);
      if (await fails(fewer)) best = fewer;
      else from += size;
    }
  }
  return best;
}
