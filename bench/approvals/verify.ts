import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { inspectLedger } from "../../packages/gate/src/ledger/mod.ts";
import { medianInterval, printTable, round, shown, type Measures } from "../report.ts";
import { callText, largeCalls, withDesk, type Desk } from "./desk.ts";
import { overLines } from "./line.ts";

const rounds = 5;
const session = (at: number): string => `run-${at % 1000}`;

interface Times {
  readonly plain: number;
  readonly approvals: number;
}

/**
 * Compares the verification of a ledger of plain checks with that of a ledger in which every call was parked, sent
 * again, approved and used, for each row and in turn.
 */
export async function measureVerify(folder: string, rows: number): Promise<Measures> {
  const folders = {
    plain: await fill(join(folder, "plain"), (desk) => fillPlain(desk, rows)),
    approvals: await fill(join(folder, "approvals"), (desk) => fillApproved(desk, Math.ceil(rows / 4))),
  };
  const walks = { verify: walkMicros, "verify --deep": deepMicros };
  const found: Record<string, Times[]> = {};
  for (const [name, walk] of Object.entries(walks)) {
    await walk(folders.plain); // It warms up.
    for (let index = 0; index < rounds; index += 1)
      (found[name] ??= []).push({ plain: await walk(folders.plain), approvals: await walk(folders.approvals) });
  }
  const ratios = Object.entries(found).map(
    ([name, times]) => [name, times, medianInterval(times.map(({ plain, approvals }) => approvals / plain))] as const,
  );
  console.log(`\nAbout ${rows} rows in each ledger, ${rounds} rounds in turn; microseconds for each row`);
  printTable([
    ["", "plain checks", "approvals", "ratio"],
    ...ratios.map(([name, times, ratio]) => [
      name,
      round(medianInterval(times.map(({ plain }) => plain)).median),
      round(medianInterval(times.map(({ approvals }) => approvals)).median),
      shown(ratio),
    ]),
  ]);
  return {}; // The bar of `npm run bench -- verify` is for plain checks.
}

async function fill(folder: string, work: (desk: Desk) => Promise<void>): Promise<string> {
  return withDesk(folder, async (desk) => {
    await work(desk);
    await desk.stop();
    return desk.data;
  });
}

async function fillPlain(desk: Desk, count: number): Promise<void> {
  await overLines(desk.lines, count, async (line, at) => {
    await desk.check(line, callText({ wallet: `w${at % 64}`, amount: 1, session: session(at) }), "ALLOW");
  });
}

/** Each call makes four rows: it is parked, sent again, approved and used. Acts of one batch share a fifth. */
async function fillApproved(desk: Desk, count: number): Promise<void> {
  const calls = largeCalls("w", count);
  // No more may wait at once than the limits of open approvals let.
  for (let from = 0; from < count; from += 1000) {
    const some = calls.slice(from, from + 1000);
    const parked = await desk.park(some);
    await desk.park(some);
    await desk.decide(parked, "approve");
    await overLines(desk.lines, some.length, async (line, at) => {
      const call = JSON.parse(some[at] as string) as object;
      await desk.check(line, JSON.stringify({ ...call, approval: { id: parked[at]?.id } }), "ALLOW");
    });
  }
}

async function walkMicros(data: string): Promise<number> {
  const from = performance.now();
  const { broken, rows } = await inspectLedger({ folder: data });
  if (broken !== undefined) throw new Error(`the ledger did not verify: ${JSON.stringify(broken)}`);
  return ((performance.now() - from) * 1000) / rows;
}

/** Includes the start of its process, which both ledgers pay. */
async function deepMicros(data: string): Promise<number> {
  const from = performance.now();
  const args = ["bin/svc-gate.mjs", "verify", "--deep", "--json", data];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const { ok, deep } = JSON.parse(stdout) as { readonly ok: boolean; readonly deep: { readonly rows: number } };
  if (!ok) throw new Error(`the ledger did not verify: ${stdout}`);
  return ((performance.now() - from) * 1000) / deep.rows;
}
