import { parseArgs } from "node:util";
import { onCitus } from "./scale/measured.ts";
import { largestFor, makePlan, type Figures, type Plan, type Question } from "./scale/plan.ts";
import { simulate, type Met, type Run } from "./scale/simulate.ts";
import { tableLines } from "./report.ts";

/** The page's parameters; each can be set on the command line by its name, `--checks-per-second 20000`. */
export const shown: { readonly question: Question; readonly figures: Figures; readonly run: Run } = {
  question: {
    checksPerSecond: 100_000,
    tenants: 10_000,
    skew: 1,
    busiest: 0.7,
    fullest: 0.5,
    coresPerNode: 16,
    batchMax: 512,
    gatesPerLedger: 1,
  },
  figures: onCitus,
  run: { seed: 1, seconds: 4, warmUpSeconds: 1 },
};

/** The number of gates that get a ledger's calls if the balancer scatters them, compared with one gate for each ledger. */
const scattered = 4;

/**
 * `npm run bench -- scale`: calculates the gates, shards and nodes for a number of checks a second, and the waiting
 * times of calls. It uses measured figures, tenants by Zipf's law and simulated time. The same seed gives the same
 * text.
 */
export function benchScale(): Promise<void> {
  const { question, figures, run } = shown;
  const given = argumentsOver({ ...question, ...figures, ...run });
  for (const line of scaleReport(given, given, given)) console.log(line);
  return Promise.resolve();
}

export function scaleReport(question: Question, figures: Figures, run: Run): readonly string[] {
  const plan = makePlan(question, figures);
  const ranks = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000].filter((rank) => rank < question.tenants * 10);
  const alone = simulate(plan, question, figures, run, ranks);
  const many = simulate(plan, { ...question, gatesPerLedger: scattered }, figures, run, ranks);
  return [
    ...describeQuestion(question, plan),
    "",
    ...needed(question, figures, plan, alone.batchesPerSecond),
    "",
    ...waits(question, plan, ranks, alone.classes, many.classes),
  ];
}

function describeQuestion(
  { checksPerSecond, tenants, skew, busiest, fullest, coresPerNode }: Question,
  plan: Plan,
): readonly string[] {
  const loads = loadsOf(plan);
  const at = (rank: number): string => amount(loads[rank - 1] ?? 0);
  return listed([
    ["asked", `${amount(checksPerSecond)} checks/s by ${amount(tenants)} tenants after Zipf's law (${skew}):`],
    ["", `the largest ${at(1)}/s, the tenth ${at(10)}, the median ${at(tenants / 2)}, the last ${at(tenants)}`],
    ["planned", `at most ${percent(busiest)} of a gate's processor and of a node's ${coresPerNode} cores,`],
    ["", `and ${percent(fullest)} of what one ledger bears; all is placed by hash`],
  ]);
}

function needed(question: Question, figures: Figures, plan: Plan, batchesPerSecond: number): readonly string[] {
  const perDay = question.checksPerSecond * 86_400;
  const splits = plan.split.map(({ rank, ledgers }) => `rank ${rank} into ${ledgers}`).join(", ");
  return listed([
    ["one ledger bears", `${amount(plan.ledgerBears)} checks/s`],
    ["tenants to be split", splits === "" ? "none" : splits],
    ["gates of one core", `${plan.gates}, the busiest at ${percent(plan.busiestGate)}`],
    ["nodes with rows", `${plan.workers} for ${plan.shards} shards, the busiest at ${percent(plan.busiestWorker)}`],
    ["nodes that gates ask", `${plan.coordinators}`],
    ["one node alone bears", `${amount(largestFor(question, figures))} checks/s of such tenants`],
    ["commits", `${amount(batchesPerSecond)}/s, ${amount(batchesPerSecond / plan.workers)} on each node`],
    ["a day", `${amount(perDay)} receipts, ${amount((perDay * figures.bytesPerCheck) / 1e9)} GB with indexes`],
  ]);
}

function waits(
  { tenants }: Question,
  plan: Plan,
  ranks: readonly number[],
  alone: readonly Met[],
  many: readonly Met[],
): readonly string[] {
  const loads = loadsOf(plan);
  const rows = ranks.map((rank, at) => {
    const first = (ranks[at - 1] ?? 0) + 1;
    const last = Math.min(rank, tenants);
    const [one, other] = [alone[at], many[at]];
    return [
      first === last ? `${first}` : `${first} to ${last}`,
      amount(loads[first - 1] ?? 0),
      amount(one?.rowsPerBatch ?? 0),
      ...[one?.p50, one?.p99, other?.p50, other?.p99].map((ms) => amount(ms ?? 0)),
    ];
  });
  return tableLines([
    ["", "", "", "a ledger has", "one gate", "or", `${scattered} gates`],
    ["tenants by size", "checks/s", "rows/batch", "p50 ms", "p99 ms", "p50 ms", "p99 ms"],
    ...rows,
  ]);
}

function listed(rows: readonly (readonly [string, string])[]): readonly string[] {
  return rows.map(([name, text]) => `${name.padEnd(22)}${text}`);
}

/** Returns the load of each tenant, the largest first. */
function loadsOf({ ledgers }: Plan): readonly number[] {
  const loads: number[] = [];
  for (const { rank, checksPerSecond } of ledgers) loads[rank - 1] = (loads[rank - 1] ?? 0) + checksPerSecond;
  return loads;
}

/** Rounds to three digits, because a simulation is not more precise. */
function amount(value: number): string {
  const rounded = Number(value.toPrecision(3));
  return rounded.toLocaleString("en-US", { maximumSignificantDigits: 3 });
}

function percent(part: number): string {
  return `${Math.round(part * 100)} %`;
}

/** Reads numbers that the command line may replace. @throws for an unknown name or a value that is not a number */
function argumentsOver<Numbers extends Readonly<Record<string, number>>>(numbers: Numbers): Numbers {
  const options = Object.fromEntries(Object.keys(numbers).map((name) => [dashed(name), { type: "string" as const }]));
  const { values } = parseArgs({ args: process.argv.slice(3), options });
  const given = Object.entries(numbers).map(([name, usual]) => {
    const text = values[dashed(name)];
    const value = text === undefined ? usual : Number(text);
    if (!(value > 0)) throw new Error(`--${dashed(name)} must be a number above 0, not ${JSON.stringify(text)}`);
    return [name, value] as const;
  });
  return Object.fromEntries(given) as Numbers;
}

function dashed(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
