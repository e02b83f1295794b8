import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { atMost, median, medianInterval, printTable, round, shown, type Measures } from "../report.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const checksEach = 4096;

/** Microseconds of processor time for one check. */
interface Pair {
  readonly before: number;
  readonly after: number;
}

/**
 * Compares the processor time of a check with that of another checkout (`BENCH_BASE`, a folder that is set up), for a
 * contract that never escalates. Each gate decides the same batches in a process of its own, without HTTP. The one that
 * comes first changes with each round.
 */
export async function measureCpu(folder: string, rounds: number): Promise<Measures> {
  const base = process.env["BENCH_BASE"];
  if (base === undefined) throw new Error("set BENCH_BASE to the folder of a checkout from before approvals");
  mkdirSync(folder, { recursive: true });
  const contract = join(folder, "payments.yaml");
  writeFileSync(contract, neverEscalating());
  const children: ChildProcess[] = [];
  const open = async (checkout: string, name: string): Promise<ChildProcess> => {
    const child = fork(join(import.meta.dirname, "checks.ts"), [checkout, join(folder, name), contract], {
      execArgv: ["--max-semi-space-size=8"],
    });
    children.push(child);
    await once(child, "message");
    return child;
  };
  try {
    const gates = { before: await open(base, "before"), after: await open(root, "after") };
    const pairs: Pair[] = [];
    for (let index = -6; index < rounds; index += 1) {
      const pair = await inTurn(gates, index % 2 === 0);
      if (index >= 0) pairs.push(pair); // The first rounds warm both up.
    }
    return report(pairs);
  } finally {
    for (const child of children) child.kill("SIGKILL");
  }
}

async function inTurn(gates: Readonly<Record<keyof Pair, ChildProcess>>, isBeforeFirst: boolean): Promise<Pair> {
  if (isBeforeFirst) return { before: await micros(gates.before), after: await micros(gates.after) };
  const after = await micros(gates.after);
  return { before: await micros(gates.before), after };
}

async function micros(child: ChildProcess): Promise<number> {
  child.send(checksEach);
  const [taken] = (await once(child, "message")) as [number];
  return taken / checksEach;
}

/** The payments of the other benchmarks. Where they ask a person, this contract refuses. */
export function neverEscalating(): string {
  const text = readFileSync(join(root, "bench", "contracts", "payments.yaml"), "utf8");
  return text.replaceAll("verdict: ESCALATE", "verdict: BLOCK");
}

function report(pairs: readonly Pair[]): Measures {
  const ratio = medianInterval(pairs.map(({ before, after }) => after / before));
  const of = (side: keyof Pair): number => round(median(pairs.map((pair) => pair[side])));
  console.log(
    `\nA contract that never escalates, batches of 64, ${pairs.length} rounds of ${checksEach} checks in turn`,
  );
  printTable([
    ["", "before", "after", "after / before"],
    ["CPU for each check, us", of("before"), of("after"), shown(ratio)],
  ]);
  return { cpu_of_before: atMost(ratio.median, 1.01) };
}
