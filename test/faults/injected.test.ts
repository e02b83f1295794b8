/**
 * Goal: whichever system call of the write path fails, at whichever moment, no answered check is lost, and a gate whose
 * disk has failed answers nothing more and says so. Method: strace counts the calls of one short run of the gate. Then
 * in each run one call fails with EIO or ENOSPC, or the gate is killed at it; afterwards an unchanged gate starts on
 * the folder. INJECTIONS sets how many are drawn (`all` for each), INJECTIONS_SEED which, and INJECTIONS_ONLY, a
 * regular expression such as `^fsync ledger`, of which calls.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { Dice } from "../support/campaign/random.ts";
import { control } from "../support/controls/control.ts";
import {
  faultsOf,
  inject,
  noStrace,
  survey,
  type CallPoint,
  type Fault,
  type Injected,
} from "../support/faults/injections.ts";
import { temporaryFolder } from "../support/ledger-fixture.ts";
import type { Mutation } from "../support/mutation/mutate.ts";
import { printSeed, seedOf } from "../support/random-test.ts";

const wanted = process.env["INJECTIONS"] ?? "10";
const only = new RegExp(process.env["INJECTIONS_ONLY"] ?? "");
const seed = seedOf("INJECTIONS_SEED");
const skip = noStrace() ?? false;

let surveying: Promise<readonly CallPoint[]> | undefined;

/** Returns the calls of a gate's whole run, counted once. */
function surveyed(): Promise<readonly CallPoint[]> {
  if (surveying !== undefined) return surveying;
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-survey-"));
  surveying = survey(folder).finally(() => rmSync(folder, { recursive: true }));
  return surveying;
}

interface Injection {
  readonly point: CallPoint;
  readonly fault: Fault;
}

/** The calls that are always drawn: flushes and writes of the log and of the file. */
const always = ["fsync ledger.db-wal", "fsync ledger.db", "pwrite64 ledger.db-wal", "pwrite64 ledger.db"];

/** Returns all injections, or this many, from as many different calls as possible. */
function chosen(points: readonly CallPoint[]): readonly Injection[] {
  const named = points.filter(({ call, file }) => only.test(`${call} ${file}`));
  const all = named.flatMap((point) => faultsOf(point).map((fault) => ({ point, fault })));
  if (wanted === "all") return all;
  const dice = new Dice(seed);
  const groups = [...Map.groupBy(all, ({ point }) => `${point.call} ${point.file}`)];
  const positioned = groups.map(([name, group]) => ({ group, place: always.includes(name) ? -1 : dice.roll() }));
  const ordered = positioned.toSorted((one, other) => one.place - other.place);
  return Array.from({ length: Number(wanted) }, (_, at) => dice.oneOf(ordered[at % ordered.length]?.group ?? all));
}

async function injected(
  t: TestContext,
  injections: readonly Injection[],
  changes: readonly Mutation[] = [],
): Promise<readonly Injected[]> {
  const folder = temporaryFolder(t);
  const outcomes: Injected[] = [];
  for (const { point, fault } of injections) {
    const life = join(folder, "life");
    mkdirSync(life);
    outcomes.push(await inject(life, point, fault, changes));
    rmSync(life, { recursive: true });
  }
  return outcomes;
}

function countOf(outcomes: readonly Injected[]): string {
  const rows = Map.groupBy(outcomes, ({ call, file }) => `${call} ${file}`);
  return [...rows]
    .map(([name, group]) => {
      const count = (of: (each: Injected) => boolean): string => String(group.filter(of).length).padStart(6);
      const ends = (["refused", "ended", "stopped"] as const).map((end) =>
        count((each) => each.happened && each.end === end),
      );
      const [all, came] = [count(() => true), count(({ happened }) => happened)];
      return `  ${name.padEnd(30)}${all}${came}${ends.join("")}${count(({ wrong }) => wrong.length > 0)}`;
    })
    .join("\n");
}

test(
  `a failed system call of the write path loses no answered check (${wanted} injections)`,
  { tags: ["service.every-check-receipt"], skip },
  async (t) => {
    const points = await surveyed();
    const injections = chosen(points);
    printSeed(t, { cases: injections.length, seed, variable: "INJECTIONS_SEED" });
    const outcomes = await injected(t, injections);
    const groups = new Set(points.map(({ call, file }) => `${call} ${file}`));
    console.log(`  ${points.length} calls of ${groups.size} kinds in one life`);
    console.log(`  ${"call".padEnd(30)} asked came refused ended stopped wrong\n${countOf(outcomes)}`);
    for (const kind of ["pwrite64 ledger.db-wal", "fsync ledger.db-wal", "fsync ledger.db", "fsync head.pin.new"])
      assert.ok(groups.has(kind), `the life held: ${kind}`);
    const wrong = outcomes.filter((each) => each.wrong.length > 0);
    assert.deepEqual(
      wrong.map(({ call, file, instance, fault, wrong: what }) => ({ call, file, instance, fault, what })),
      [],
    );
    assert.ok(outcomes.filter(({ happened }) => happened).length > outcomes.length / 2, "the faults happened");
  },
);

const commitSwallowed: Mutation = {
  within: "Writer.commit",
  find: "this.#end.run();",
  put: "try { $found } catch {}",
};
const pinSwallowed: Mutation = {
  within: "HeadPin.#write",
  find: "if (!passing.has(code)) this.#fault = error; $wanted; $report; this.#schedule();",
  put: "void error;",
};
const foldedBlindly: readonly Mutation[] = [
  { within: "openForWriting", text: "wal_autocheckpoint = 0", put: "wal_autocheckpoint = 12" },
  { within: "Writer.#foldBack", find: 'this.#database.exec("PRAGMA wal_checkpoint(PASSIVE)")', put: "undefined" },
];

interface Control {
  readonly title: string;
  readonly changes: readonly Mutation[];
  readonly point: Omit<CallPoint, "instance">;
  readonly fault: Fault;
  /** The instance of the call, as a share of the instances in a whole run. */
  readonly share: number;
}

const controls: readonly Control[] = [
  {
    title: "treats a failed commit as a success",
    changes: [commitSwallowed],
    point: { call: "fsync", file: "ledger.db-wal" },
    fault: "EIO",
    share: 0.7,
  },
  {
    title: "ignores a head pin that cannot be written",
    changes: [pinSwallowed],
    point: { call: "rename", file: "head.pin.new" },
    fault: "EIO",
    share: 0.5,
  },
  {
    title: "lets SQLite checkpoint its log by itself",
    changes: foldedBlindly,
    point: { call: "fsync", file: "ledger.db" },
    fault: "EIO",
    share: 0.8,
  },
];

for (const { title, changes, point, fault, share } of controls) {
  control(`positive control: a gate that ${title} is noticed`, { skip }, async (t) => {
    const points = await surveyed();
    const last = points.findLast(({ call, file }) => call === point.call && file === point.file)?.instance ?? 0;
    const [outcome] = await injected(t, [{ point: { ...point, instance: Math.ceil(share * last) }, fault }], changes);
    console.log(`  ${outcome?.wrong.join("; ")}`);
    assert.equal(outcome?.happened, true);
    assert.notDeepEqual(outcome?.wrong, []);
  });
}
