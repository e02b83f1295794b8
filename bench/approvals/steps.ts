import { openFlush } from "../check.ts";
import { atMost, median, medianInterval, printTable, round, shown, type Interval, type Measures } from "../report.ts";
import { callText, parkedIn, withDesk, type Call, type Desk } from "./desk.ts";

/** What a check may meet: each is measured beside a plain check. */
const names = ["opened", "attached", "used"] as const;
type Name = (typeof names)[number];

interface Pair {
  /** Milliseconds of an allowed check that meets no approval. */
  readonly plain: number;
  /** Milliseconds of the step after it. */
  readonly step: number;
}

export type StepPairs = Readonly<Record<Name, readonly Pair[]>>;

const warmUps = 150;

/**
 * Measures checks that meet an approval, one at a time: the first ESCALATE, the same call while it waits, and the call
 * that uses the approval. A plain check comes before each of them, and one flush of the disk after each round. Each
 * approval is used before the next one opens.
 */
export async function measureSteps(folder: string, rounds: number): Promise<Measures> {
  const flushes: number[] = [];
  const pairs = await withDesk(folder, async (desk) => {
    const flush = openFlush(folder);
    const found = Object.fromEntries(names.map((name) => [name, [] as Pair[]])) as Record<Name, Pair[]>;
    for (let index = -warmUps; index < rounds; index += 1) {
      const one = await oneRound(desk, index + warmUps);
      flushes.push(flush.once());
      if (index >= 0) for (const name of names) found[name].push(one[name]);
    }
    flush.close();
    return found;
  });
  const flushMs = median(flushes);
  const found = stepFigures(pairs);
  console.log(`\nOne check at a time, ${rounds} rounds; one flush of this disk: ${round(flushMs)} ms`);
  printTable([
    ["", "p50 ms", "more than a plain check, ms", "p50 less a flush, ms"],
    ["plain ALLOW", round(found.plain), "", round(found.plain - flushMs)],
    ...names.map((name) => {
      const { p50, more } = found.steps[name];
      return [name, round(p50), shown(more), round(p50 - flushMs)];
    }),
  ]);
  return stepMeasures(found, flushMs);
}

interface StepFigures {
  readonly plain: number;
  readonly steps: Readonly<Record<Name, { readonly p50: number; readonly more: Interval }>>;
}

export function stepFigures(pairs: StepPairs): StepFigures {
  const steps = Object.fromEntries(
    names.map((name) => {
      const p50 = medianInterval(pairs[name].map(({ step }) => step)).median;
      return [name, { p50, more: medianInterval(pairs[name].map(({ plain, step }) => step - plain)) }];
    }),
  ) as StepFigures["steps"];
  const plain = medianInterval(names.flatMap((name) => pairs[name].map((pair) => pair.plain))).median;
  return { plain, steps };
}

/** The bar is a flush and 0.6 ms. A plain check waits for one flush; both readings of the bar are measured. */
export function stepMeasures({ steps }: StepFigures, flushMs: number): Measures {
  return Object.fromEntries(
    names.flatMap((name) => [
      [`${name}_more_than_plain_ms`, atMost(steps[name].more.median, 0.6)],
      [`${name}_p50_ms`, atMost(steps[name].p50, flushMs + 0.6)],
    ]),
  );
}

async function oneRound(desk: Desk, index: number): Promise<Record<Name, Pair>> {
  const { line } = desk;
  const call: Call = { wallet: `w${index % 64}`, amount: 2000, session: `run-${index}` };
  const plainText = callText({ ...call, amount: 1 });
  const plain = async (): Promise<number> => (await desk.check(line, plainText, "ALLOW")).ms;
  const beforeOpened = await plain();
  const opened = await desk.check(line, callText(call), "ESCALATE");
  const parked = parkedIn(opened);
  const beforeAttached = await plain();
  const attached = await desk.check(line, callText(call), "ESCALATE");
  if (parkedIn(attached).id !== parked.id) throw new Error("the same call opened a second approval");
  await desk.approve(parked);
  const beforeUsed = await plain();
  const used = await desk.check(line, callText({ ...call, approval: parked.id }), "ALLOW");
  return {
    opened: { plain: beforeOpened, step: opened.ms },
    attached: { plain: beforeAttached, step: attached.ms },
    used: { plain: beforeUsed, step: used.ms },
  };
}
