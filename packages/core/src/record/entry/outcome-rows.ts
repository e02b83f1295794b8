import { canonical, type Canonical } from "../../wire/mod.ts";
import { partText } from "./evidence.ts";
import type { Leaf } from "./leaf.ts";
import type { RecordedEffect } from "./verifier.ts";

/** The act of a row that records the outcome of a call. */
export const outcomeAct = "outcome";

/** What became of a call that was let through. */
export const outcomeStatuses = ["done", "failed", "unknown"] as const;
type OutcomeStatus = (typeof outcomeStatuses)[number];

/** The outcome of a call: the part `input` of its row. */
export interface Outcome {
  /** The row of the check. */
  readonly row: number;
  readonly hash: string;
  readonly status: OutcomeStatus;
  /** True if the key that reported it cannot ask for calls, so that it may lower counters. */
  readonly may_lower: boolean;
  /** The version of the rules by which it changed counters; rows of version 1 do not have it. */
  readonly rules?: number;
  /** The rows of earlier outcomes of the same call, in order. */
  readonly before: readonly number[];
  /** The amount that the tool really used; a decimal that is not negative. */
  readonly amount?: string;
  /** The member of the input that the amount replaces, such as `input.amount`; absent if it changes no counter. */
  readonly of?: string;
  /** A keyed digest of the caller's own reference. */
  readonly ref?: string;
}

/** The version of the rules by which outcomes change counters now. */
export const outcomeRules = 2;

/** Reads the outcome in a row; undefined if the row has none, or if it is not what a gate writes. */
export function readOutcome(leaf: Pick<Leaf, "act" | "kind" | "seq">, evidence: string): Outcome | undefined {
  if (leaf.kind !== "change" || leaf.act !== outcomeAct) return undefined;
  try {
    const read: unknown = JSON.parse(partText(evidence, "input") ?? "null");
    return isOutcome(read, leaf.seq) ? read : undefined;
  } catch {
    return undefined;
  }
}

const decimal = /^(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$/;
const digest = /^[0-9a-f]{64}$/;

function isOutcome(read: unknown, seq: number): read is Outcome {
  const { row, hash, status, may_lower: mayLower, before, amount = "0", of, ref } = (read ?? {}) as Partial<Outcome>;
  const isEarlier = (number: unknown): number is number =>
    Number.isSafeInteger(number) && Number(number) > 0 && Number(number) < seq;
  return (
    isEarlier(row) &&
    Array.isArray(before) &&
    before.every((each, index) => isEarlier(each) && each > (before[index - 1] ?? row)) &&
    digest.test(hash ?? "") &&
    outcomeStatuses.some((each) => each === status) &&
    typeof mayLower === "boolean" &&
    decimal.test(amount) &&
    (of === undefined || typeof of === "string") &&
    (ref === undefined || digest.test(ref))
  );
}

/** The part `input` of an outcome's row. */
export function outcomeBody({ before, ...outcome }: Outcome): Canonical {
  return { ...outcome, before: [...before] };
}

/** Returns true if the call of a check was let through, so that it may have an outcome. */
export function hasOutcome({ answered, kind, mode }: Pick<Leaf, "answered" | "kind" | "mode">): boolean {
  return kind === "check" && answered === "ALLOW" && mode !== "observe";
}

/**
 * Returns true if an outcome may come after the one that stands. A key that cannot ask may always say what really
 * happened. For the asking key only `unknown` is not final.
 */
export function mayFollow(standing: Outcome | undefined, next: Pick<Outcome, "may_lower" | "status">): boolean {
  if (standing === undefined || next.may_lower) return true;
  return standing.status === "unknown" && next.status !== "unknown";
}

/** Returns true if a row's effect is an event of its counter. */
export function isEvent({ held, withdrawn }: Pick<RecordedEffect, "held" | "withdrawn">): boolean {
  return held !== true && withdrawn === undefined;
}

/** The part `effects` of a check's row. */
export function effectsText(effects: readonly Pick<RecordedEffect, "amount" | "counter" | "held" | "key">[]): string {
  if (effects.length === 0) return "[]";
  return canonical(
    effects.map(({ amount, counter, key, held }) =>
      held === true ? { amount, counter, held, key } : { amount, counter, key },
    ),
  );
}

/** The part `effects` of an outcome's row: the amounts that it adds, and the events that it takes back. */
export function outcomeEffects(
  added: readonly Pick<RecordedEffect, "amount" | "counter" | "key">[],
  taken: readonly (Pick<RecordedEffect, "amount" | "counter" | "key"> & { readonly seq: number })[],
): string {
  const effects = [
    ...added.map(({ amount, counter, key }) => ({ amount, counter, key })),
    ...taken.map(({ amount, counter, key, seq }) => ({ amount, counter, key, withdrawn: seq })),
  ];
  const toSortKey = ({ counter, key }: Pick<RecordedEffect, "counter" | "key">): string => `${counter} ${key}`;
  return canonical(
    effects.toSorted((one, other) =>
      toSortKey(one) < toSortKey(other) ? -1 : Number(toSortKey(one) > toSortKey(other)),
    ),
  );
}
