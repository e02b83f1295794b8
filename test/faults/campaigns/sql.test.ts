/**
 * Goal: a text that `sql()` reports as harmless does no harm in PostgreSQL. Method: a seeded grammar writes statements
 * for a database full of canaries: functions, operators and types that leave a trace, a table and a file out of reach.
 * Each statement with a harmless record runs as the superuser, and the test looks for traces. The server also sends its
 * own tree of each statement, which must name only listed tables and functions that compute.
 *
 * `SVC_DIFFERENTIAL_SQL=50000` writes so many statements, and `SVC_DIFFERENTIAL_SEED=7` chooses them.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, suite, test } from "node:test";
import { sqlFunctions } from "../../../packages/readers/src/sql/functions.ts";
import { readSqlText } from "../../../packages/readers/src/sql/sql.ts";
import { nodes, type NodeTable } from "../../../packages/readers/src/sql/nodes.ts";
import { record } from "../../support/contract-records.ts";
import { control } from "../../support/controls/control.ts";
import { plantCanaries } from "../../support/differential/sql/canaries.ts";
import { Grammar, productionNames, type Written } from "../../support/differential/sql/grammar.ts";
import { refusals } from "../../support/differential/sql/hostile-statements.ts";
import { callsOfAll } from "../../support/differential/sql/functions.ts";
import { limits } from "../../support/differential/sql/limits.ts";
import {
  isHarmless,
  replay,
  runDifferential,
  Runner,
  type Failure,
  type Outcome,
  type Reader,
} from "../../support/differential/sql/run.ts";
import { startPostgres, type PostgresServer } from "../../support/postgres-server.ts";
import { printSeed, seedOf } from "../../support/random-test.ts";

const count = Number(process.env["SVC_DIFFERENTIAL_SQL"] ?? 6_000);
const seed = seedOf("SVC_DIFFERENTIAL_SEED");
/** For what must come about in each run: coverage, and the effects of the controls. */
const fixedSeed = 1;
/**
 * The least shares of statements that are harmless and run, and of those that finish; with fewer, the run shows little.
 */
const [executedShare, finishedShare] = [0.4, 0.5];
/** The least number of harmless statements for each production: 100 of 50,000. */
const perProduction = Math.max(1, Math.floor(count / 500));

const [sql] = sqlFunctions;
assert.ok(sql !== undefined);
const readerOf =
  (table: NodeTable): Reader =>
  (text) =>
    record({ ...sql, run: () => readSqlText(text, table) }, text);
const read = readerOf(nodes);

/** A fix that the control removes, and the productions that must show the defect. */
const controls: readonly { readonly finding: number; readonly plain: readonly string[]; readonly focus: RegExp }[] = [
  { finding: 1, plain: ["ColumnRef", "A_Indirection"], focus: /^dot-/ },
  { finding: 9, plain: ["SubLink", "SortBy"], focus: /^operator-evil-(?:query|order|aggregate)$/ },
];
const controlStatementsMax = 3_000;

const texts = JSON.parse(
  readFileSync(new URL("../../support/differential/sql/texts.json", import.meta.url), "utf8"),
) as readonly {
  readonly text: string;
}[];

const kept = texts.map(({ text }) => text);
const harmless = { readOnly: true, reads: [] };

const endings: (() => Promise<void> | void)[] = [];
let server: PostgresServer;
let runner: Runner;
let names: readonly string[];

/** Why the suite cannot run here. */
async function startServer(): Promise<string | undefined> {
  const started = await startPostgres({ after: (ending) => endings.push(ending) }, { fsync: "off", autovacuum: "off" });
  if (typeof started === "string") return started;
  server = started;
  await plantCanaries(server);
  runner = new Runner(server);
  names = (await runner.open()).oneArgument;
  return undefined;
}

function show(failure: Failure): string {
  return JSON.stringify({ seed, ...failure }, undefined, 1);
}

function assertNone(failures: readonly Failure[]): void {
  const shortest = failures.toSorted((a, b) => a.text.length - b.text.length).slice(0, 5);
  assert.equal(failures.length, 0, `${failures.length} harmless records were wrong:\n${shortest.map(show).join("\n")}`);
}

suite("sql() against PostgreSQL", () => {
  let missing: string | undefined;

  before(async () => {
    await sql.load?.();
    missing = await startServer();
  });

  after(async () => {
    await runner?.close();
    for (const ending of endings) await ending();
  });

  test("texts that once had an effect are in doubt, or their record shows the effect", async (t) => {
    if (missing !== undefined) return t.skip(missing);
    assertNone(await replay(runner, read, kept));
  });

  test("every kept text has an effect if it is executed", async (t) => {
    if (missing !== undefined) return t.skip(missing);
    const harmful = new Set((await replay(runner, () => harmless, kept)).map(({ text }) => text));
    assert.deepEqual(
      kept.filter((text) => !harmful.has(text)),
      [],
    );
  });

  test("no call of a PostgreSQL function with a harmless record has an effect", async (t) => {
    if (missing !== undefined) return t.skip(missing);
    const calls = await callsOfAll(server);
    assert.ok(calls.length > 5_000, `${calls.length} calls`);
    const sent = calls.filter((text) => isHarmless(read(text)));
    assert.ok(sent.length > 1_500, `${sent.length} of ${calls.length} calls are harmless`);
    assertNone(await replay(runner, read, sent));
    t.diagnostic(`${calls.length} calls, ${sent.length} harmless and sent`);
  });

  test("no random statement with a harmless record has an effect", async (t) => {
    if (missing !== undefined) return t.skip(missing);
    printSeed(t, { cases: count, seed, variable: "SVC_DIFFERENTIAL_SEED" });
    const grammar = new Grammar(seed, { names });
    const outcome = await runDifferential({ runner, reader: read, statements: () => grammar.statement(), count });
    report(outcome, (line) => t.diagnostic(line));
    assertNone(outcome.failures);
    assert.ok(
      outcome.finished >= outcome.executed * finishedShare,
      `${outcome.finished} of ${outcome.executed} finished`,
    );
    const passed = [...refusals.keys()].filter((name) => (outcome.productions.get(name)?.executed ?? 0) > 0);
    assert.deepEqual(passed, [], `productions that must always be refused; seed ${seed}`);
  });

  test("the statements of a fixed seed are often harmless, in each production", async (t) => {
    if (missing !== undefined) return t.skip(missing);
    const grammar = new Grammar(fixedSeed, { names });
    const unsent = { batch: async (sent: readonly string[]) => sent.map(() => ({ effects: [], error: undefined })) };
    const statements = (): Written => grammar.statement();
    const { executed, productions } = await runDifferential({ runner: unsent, reader: read, statements, count });
    assert.ok(executed >= count * executedShare, `${executed} of ${count} statements are harmless`);
    const rare = productionNames.filter((name) => (productions.get(name)?.executed ?? 0) < perProduction);
    assert.deepEqual(rare, [], `productions with under ${perProduction} harmless statements`);
  });

  for (const { finding, plain, focus } of controls) {
    control(`positive control: without the fix of finding ${finding} the random run finds an effect`, async (t) => {
      if (missing !== undefined) return t.skip(missing);
      const reader = readerOf(new Map([...nodes, ...plain.map((node) => [node, "plain"] as const)]));
      const grammar = new Grammar(fixedSeed, { names, focus: [...refusals.keys()].filter((name) => focus.test(name)) });
      const outcome = await runDifferential({
        runner,
        reader,
        statements: () => grammar.statement(),
        count: controlStatementsMax,
        failuresMax: 5,
      });
      const seen = outcome.failures.find(({ effects }) => effects.some((effect) => !effect.startsWith("tree")));
      assert.ok(seen !== undefined, `${outcome.generated} statements from seed ${fixedSeed} had no effect`);
      t.diagnostic(`${outcome.generated} statements; ${JSON.stringify(seen.text)}: ${seen.effects.join("; ")}`);
    });
  }

  for (const { why, prepare, text, undo } of limits) {
    test(`documented limit: the reader cannot know that ${why}`, async (t) => {
      if (missing !== undefined) return t.skip(missing);
      await server.run(prepare);
      await runner.open();
      assert.ok(isHarmless(read(text)), "the reader refuses it now: remove the limit here and in the documents");
      const failures = await replay(runner, read, [text]);
      await server.run(undo);
      assert.equal(failures.length, 1, `${text} had no effect`);
    });
  }
});

function report(outcome: Outcome, say: (line: string) => void): void {
  const { generated, executed, finished, seconds, productions } = outcome;
  const line = (name: string): string => {
    const { generated: written = 0, executed: ran = 0 } = productions.get(name) ?? {};
    return `${name.padEnd(28)}${String(written).padStart(8)}${String(ran).padStart(8)}`;
  };
  const ordered = [...productionNames].toSorted(
    (a, b) => (productions.get(a)?.executed ?? 0) - (productions.get(b)?.executed ?? 0),
  );
  say(`${"production".padEnd(28)} written harmless\n${ordered.map(line).join("\n")}`);
  say(`always refused\n${[...refusals].map(([name, why]) => `${line(name)}  ${why}`).join("\n")}`);
  say(`${generated} statements, ${executed} harmless and sent, ${finished} finished, ${Math.round(seconds)} s`);
}
