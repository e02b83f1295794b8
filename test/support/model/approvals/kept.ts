import type { Call } from "./contract.ts";
import type { Ask, Step } from "./steps.ts";

const call: Call = { tool: "pay.send", key: "agent", session: "s1", amount: "1200", to: "x", wallet: "w1" };
const asks = (...calls: readonly Partial<Call>[]): Step => ({
  do: "ask",
  asks: calls.map((of): Ask => ({ call: { ...call, ...of }, names: null })),
});
const uses = (of: number, change: Partial<Call> = {}): Step => ({ do: "ask", asks: [{ call, names: of, change }] });
const decides = (
  of: number,
  decision: "approve" | "deny",
  scope: "call" | "tool" | "rule" = "call",
  person = "bob",
): Step => ({
  do: "decide",
  of,
  person,
  decision,
  scope,
  forMs: null,
});

/** Histories in which gate and model once differed. */
export const kept: readonly { readonly name: string; readonly steps: readonly Step[] }[] = [
  { name: "the same call twice in the first batch of a ledger", steps: [asks({}, {})] },
  {
    name: "an approved call after a denial of its tool in its session",
    steps: [asks({}), decides(0, "approve"), asks({ to: "y" }), decides(0, "deny", "tool"), uses(1)],
  },
  {
    name: "a call under a denied rule that another rule decides",
    steps: [asks({ amount: "5", price: "12" }), decides(0, "deny", "rule"), asks({ to: "y", price: "12" })],
  },
  {
    name: "a vote whose key the asker's person has changed since",
    steps: [
      asks({ key: "annas" }),
      decides(0, "approve"),
      { do: "key", person: "bob", isActive: true, groups: ["finance"], maker: "anna" },
      uses(0),
    ],
  },
  {
    name: "a vote that completes the people only when its key is older than a day",
    steps: [
      asks({ tool: "pay.legal" }),
      decides(0, "approve", "call", "fay"),
      decides(0, "approve", "call", "gus"),
      decides(0, "approve", "call", "fay"),
      { do: "key", person: "fay", isActive: true, groups: ["legal"] },
      decides(0, "approve", "call", "fay"),
      decides(0, "approve", "call", "gus"),
      uses(0, { tool: "pay.legal" }),
    ],
  },
  {
    name: "an approval that replaced another one, whose rule reads how often the call was tried",
    steps: [
      asks({ amount: "5", to: "often", price: "12" }),
      { do: "ask", asks: [{ call, names: 0, change: {} }] },
      decides(0, "approve"),
      uses(0),
    ],
  },
  {
    name: "an approval in assist mode, whose call comes with a fact that another rule of the tool pins",
    steps: [
      { do: "reload", terms: 0, mode: "assist" },
      { do: "key", person: "gus", isActive: true, groups: ["board"] },
      asks({ to: "nobody" }),
      decides(0, "approve", "call", "gus"),
      decides(0, "approve"),
      uses(0, { tag: "b" }),
    ],
  },
];

/** Acts on one approval, of which every order must leave the counters as a recount finds them. */
const acts: readonly Step[] = [
  decides(0, "approve"),
  decides(0, "deny"),
  { do: "cancel", of: 0, person: "bob", session: null },
  { do: "wait-for", of: 0, ms: 0 },
  uses(0),
  uses(0, { price: "12" }),
  asks({}),
];

/** Reads the counters without asking a person. */
const reads = asks({ amount: "5", to: "reader" });

/** Returns every order of so many acts, each after a new asking. A day between two orders empties the counters. */
export function orders(length: number): readonly (readonly Step[])[] {
  let all: readonly (readonly Step[])[] = [[]];
  for (let left = length; left > 0; left -= 1)
    all = all.flatMap((order) => acts.filter((act) => !order.includes(act)).map((act) => [...order, act]));
  const day: Step = { do: "wait", ms: 25 * 3_600_000 };
  return all.map((order) => [day, asks({}), ...order.flatMap((act) => [act, reads])]);
}
