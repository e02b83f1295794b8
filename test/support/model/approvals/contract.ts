/**
 * The contract of the model of approvals: its text for the gate, and its meaning in plain code. A contract of its own
 * keeps the model free of the gate's compiler, and each rule is there for one thing that an approval depends on.
 */

/** A contract that can be in force. */
export interface Terms {
  /** Above this amount, finance decides. */
  readonly large: number;
  /** How far the price may move after the yes. */
  readonly drift: number;
}

/** Contracts that replace each other: the last two differ from the first in one rule each. */
export const terms: readonly Terms[] = [
  { large: 1000, drift: 1 },
  { large: 900, drift: 1 },
  { large: 1000, drift: 2 },
];

export const budget = 6000;

/** How many approvals may be open. */
export const room = { key: 8, session: 2, ledger: 11 };

export const mandateText: string = `mandate: model
contracts: [pay.yaml]
approvals: { open: { key: ${room.key}, session: ${room.session}, ledger: ${room.ledger} } }
`;

export function contractText({ large, drift }: Terms): string {
  return `contract: pay
platform:
  type: object
  required: [wallet]
  properties: { wallet: { type: string }, price: { type: number }, tag: { type: string } }
limits: { large: ${large} }
tools:
  pay.send:
    input:
      type: object
      additionalProperties: false
      required: [amount, to]
      properties:
        amount: { type: number, minimum: 0 }
        to: { type: string }
        note: { type: string }
    requires: platform.present
    approval: { unbound: [input.note], use_within: 5m }
    otherwise: ALLOW
  pay.legal:
    input: { type: object, additionalProperties: true }
    requires: platform.present
    approval: { by: [legal], of: 2, decide_within: 20m }
    otherwise: ESCALATE
counters:
  spent: { of: [pay.send], per: platform.wallet, sum: input.amount, counting: possible, within: 24h }
  freed: { of: [pay.send], per: key, sum: input.amount, counting: released, within: 2h }
  tries: { of: [pay.send], per: platform.wallet, within: 10m }
  asked: { of: [pay.send, pay.legal], per: key, counting: escalated, within: 1h }
  parked: { of: [pay.send], per: session, counting: possible, within: 20m }
let:
  waiting: counters.spent.held + counters.parked.held
rules:
  - { rule: seen, on: [pay.send], when: counters.freed + counters.asked + counters.tries + waiting < 0, verdict: BLOCK, reason: never }
  - rule: budget
    on: [pay.send]
    when: counters.spent + input.amount > ${budget}
    verdict: BLOCK
    final: true
    reason: "{counters.spent} is spent"
  - { rule: odd, on: [pay.send], when: input.to == "nobody", verdict: BLOCK, reason: nobody gets money }
  - rule: large
    on: [pay.send]
    when: input.amount > limits.large
    verdict: ESCALATE
    approval: { by: [finance] }
    reason: "{input.amount} is large"
  - rule: board
    on: [pay.send]
    when: input.amount > 2000
    verdict: ESCALATE
    approval: { by: [board], of: 2, pins: [platform.tag] }
    reason: "{input.amount} is very large"
  - rule: many
    on: [pay.send]
    when: input.to == "often" && counters.tries > 0
    verdict: ESCALATE
    reason: "{counters.tries} were tried"
  - rule: dear
    on: [pay.send]
    when: platform.?price.orValue(0) > 10
    verdict: ESCALATE
    approval: { drift: ${drift}, decide_within: 30m }
    reason: "the price {platform.?price} is high"
`;
}

export type Verdict = "ALLOW" | "BLOCK" | "ESCALATE";

/** A call, with its numbers as they are written. */
export interface Call {
  readonly tool: "pay.send" | "pay.legal";
  readonly key: string;
  readonly session: string | null;
  /** JSON text of a number. */
  readonly amount: string;
  readonly to: string;
  readonly note?: string;
  readonly wallet: string;
  readonly price?: string;
  readonly tag?: string;
  /** Whether the members come in another order. */
  readonly isTurned?: boolean;
}

/** Calls with the same text share a denial. */
export function attachText({ key, tool, amount, to, note }: Call): string {
  return JSON.stringify([key, tool, Number(amount), to, tool === "pay.send" ? null : (note ?? null)]);
}

/** Calls with the same text share an approval: also the session, the spelling of numbers and the subject. */
export function bindingText({ key, session, tool, amount, to, note, wallet }: Call): string {
  return JSON.stringify([key, session, tool, amount, to, tool === "pay.send" ? [wallet] : [note ?? null]]);
}

/** The counters' values before a call; only pay.send has rules that read them. */
export interface Values {
  readonly spent: number;
  /** The part of it that parked calls reserve. */
  readonly held: number;
  /** Parked calls of the session. */
  readonly parked: number;
  readonly freed: number;
  readonly tries: number;
  readonly asked: number;
}

export interface Need {
  /** Null is everyone who may approve. */
  readonly by: string | null;
  readonly of: number;
}

/** One rule that a person must decide, and what an approval of it needs. */
export interface Cause {
  readonly rule: string;
  /** Everything in the contract that the rule depends on. */
  readonly text: string;
  readonly need: Need;
  readonly decideWithinMs: number;
  readonly useWithinMs: number;
  readonly drift: number;
  readonly readsPrice: boolean;
  readonly readsTries: boolean;
  readonly pinsTag: boolean;
}

const minute = 60_000;

function cause(rule: string, of: Partial<Cause> = {}): Cause {
  return {
    rule,
    text: rule,
    need: { by: null, of: 1 },
    decideWithinMs: 60 * minute,
    useWithinMs: 5 * minute,
    drift: 0,
    readsPrice: false,
    readsTries: false,
    pinsTag: false,
    ...of,
  };
}

/** What the contract says of a call, before any mode. */
export interface Judged {
  readonly verdict: Verdict;
  /** A final BLOCK, which no mode softens. */
  readonly isFinal: boolean;
  /** The rules that fired with ESCALATE, in their order. */
  readonly escalating: readonly Cause[];
  /** The rules that fired with BLOCK and are not final. */
  readonly blocking: readonly Cause[];
}

export function judge(call: Call, values: Values, { large, drift }: Terms): Judged {
  if (call.tool === "pay.legal") {
    const otherwise = cause("otherwise", {
      need: { by: "legal", of: 2 },
      decideWithinMs: 20 * minute,
      useWithinMs: 10 * minute,
    });
    return { verdict: "ESCALATE", isFinal: false, escalating: [otherwise], blocking: [] };
  }
  const amount = Number(call.amount);
  const blocking = call.to === "nobody" ? [cause("odd")] : [];
  const isFinal = values.spent + amount > budget;
  const escalating = [
    ...(amount > large ? [cause("large", { text: `large ${large}`, need: { by: "finance", of: 1 } })] : []),
    ...(amount > 2000 ? [cause("board", { need: { by: "board", of: 2 }, pinsTag: true })] : []),
    ...(call.to === "often" && values.tries > 0 ? [cause("many", { readsTries: true })] : []),
    ...(Number(call.price ?? 0) > 10
      ? [cause("dear", { text: `dear ${drift}`, drift, readsPrice: true, decideWithinMs: 30 * minute })]
      : []),
  ];
  const verdict = isFinal || blocking.length > 0 ? "BLOCK" : escalating.length > 0 ? "ESCALATE" : "ALLOW";
  return { verdict, isFinal, escalating, blocking };
}

/** Everything that any rule of pay.send asks for: what a BLOCK needs that assist mode softened. */
export const needsOfSend: readonly Need[] = [
  { by: "finance", of: 1 },
  { by: "board", of: 2 },
  { by: null, of: 1 },
];
