/**
 * Goal: what a form of a ready pack says that a command does is what the real program does. Method: for each form that
 * neither runs code nor contacts another machine, a seeded generator writes commands with its options and words, and with
 * words that it must not take. Each that contracts/shell.yaml lets run is executed in a sandbox: no canary may run, no secret
 * may be shown, and only files may change that the table named. `SVC_PACKS=100` sets the number of texts for each form.
 */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import type { CommandTable, Form } from "../../../packages/core/src/contract/commands/form.ts";
import { loadFunctions, type PolicySet } from "../../../packages/readers/src/contract.ts";
import { judgeText } from "../../../packages/readers/src/commands/judge.ts";
import { readShell } from "../../../packages/readers/src/shell/shell.ts";
import { compile, judge, readReady } from "../../support/contract-kit.ts";
import { control } from "../../support/controls/control.ts";
import { textOf } from "../../support/differential/packs/texts.ts";
import type { Reply } from "../../support/differential/shell/runner.ts";
import { canSeal, openSandbox, shellPath, type Sandbox } from "../../support/differential/shell/sandbox.ts";
import { Dice } from "../../support/campaign/random.ts";
import { printSeed, seedOf } from "../../support/random-test.ts";

const perForm = Number(process.env["SVC_PACKS"] ?? 6);
const seed = seedOf("SVC_PACKS_SEED");
const bash = shellPath("bash");
const missing = bash === undefined ? "bash is not installed" : canSeal() ? undefined : "this machine has no namespaces";

/** Git's index, and the caches and logs that programs keep in the home folder whatever they do. */
const ownFiles = [
  /^app\/\.git\/index$/,
  /^home\/\.config$/,
  /^home\/(?:\.npm|\.cache|\.config\/(?:go|gcloud|procps)|\.local|\.rustup|\.terraform\.d|go)(?:\/|$)/,
  /^tmp\//,
];
/** Endings with which a program names a file beside the one that it was given. */
const ownEnding = /\.(?:gz|zip|bak|orig)$/;

interface Ran {
  readonly form: string;
  readonly text: string;
  readonly effects: readonly string[];
}

suite("the forms of the ready packs against the real programs", { skip: missing ?? false }, () => {
  let sandbox: Sandbox;
  let contract: PolicySet;
  let table: CommandTable;
  let forms: readonly Form[];
  before(async () => {
    const ready = compile(readReady("shell"));
    forms = tableOf(ready).forms.filter(
      ({ verdict, does }) => verdict === "ALLOW" && !does.has("runs") && !does.has("sends"),
    );
    const programs = [...new Set(forms.map(({ run }) => run[0] ?? ""))].filter((name) => /^[\w.-]+$/.test(name));
    sandbox = openSandbox({ isSealed: true, runners: 2, programs });
    contract = compile(
      readReady("shell")
        .replace(/^ {2}workspace: .*$/m, `  workspace: ${sandbox.area}/app`)
        .replace(/^ {2}open_folders: .*$/m, "  open_folders: [src]"),
    );
    table = tableOf(contract);
    await loadFunctions(contract);
  });
  after(() => sandbox.close());

  const isAllowed = (command: string): boolean =>
    judge(contract, { tool: "shell.run", input: { command, cwd: `${sandbox.area}/app` } }).verdict === "ALLOW";
  const writesOf = (text: string): readonly string[] => {
    const start = `${sandbox.area}/app`;
    return [...judgeText(readShell(text, start), table, start).writes];
  };
  const run = async (form: string, text: string, may: readonly string[] = writesOf(text)): Promise<Ran> => {
    const reply = await sandbox.run({ shell: [bash ?? ""], text });
    return { form, text, effects: effectsOf(reply, sandbox.area, may) };
  };

  test("each runs as its form says", async (t) => {
    printSeed(t, { cases: perForm, seed, variable: "SVC_PACKS_SEED" });
    const ran = new Map<string, number>();
    const absent = new Set<string>();
    const holes: Ran[] = [];
    const waiting = new Set<Promise<void>>();
    for (const [at, variants] of entriesOf(forms).entries()) {
      const installed = variants.filter(
        ({ run: [program = ""] }) => builtins.has(program) || shellPath(program) !== undefined,
      );
      if (installed.length === 0) absent.add(variants[0]?.run[0] ?? "");
      for (let round = 0; round < perForm && installed.length > 0; round += 1) {
        const dice = new Dice(seed + at * 1_000 + round);
        const form = dice.oneOf(installed);
        const text = textOf(form, table.programs.get(form.run[0] ?? ""), dice);
        if (text === undefined || !isAllowed(text)) continue;
        const name = form.run.join(" ");
        ran.set(name, (ran.get(name) ?? 0) + 1);
        const running = run(name, text).then((done) => {
          waiting.delete(running);
          if (done.effects.length > 0) holes.push(done);
        });
        waiting.add(running);
        if (waiting.size >= waitingMax) await Promise.race(waiting);
      }
    }
    await Promise.all(waiting);
    const texts = [...ran.values()].reduce((sum, each) => sum + each, 0);
    t.diagnostic(`${ran.size} commands ran, with ${texts} texts; not installed: ${[...absent].join(" ")}`);
    assert.deepEqual(holes, []);
    assert.ok(ran.size > 60, `only ${ran.size} commands ran`);
  });

  control("positive control: a change, a secret and a canary that no form names are seen", async () => {
    const found = [await run("", "rm precious.txt", []), await run("", "cat .env", []), await run("", "./ls", [])];
    assert.deepEqual(
      found.map(({ effects }) => effects),
      [["changed app/precious.txt"], ["printed a secret of the working folder"], ["ran ./ls"]],
    );
  });
});

const builtins = new Set(
  (
    "cd pwd echo printf test [ type hash command jobs wait set exit return break continue shift umask true false : read source " +
    "pushd popd dirs"
  ).split(" "),
);

/** Texts that wait for a shell: enough to keep the runners busy. */
const waitingMax = 8;

/** The spellings of each form as it is written: `python|python3` are two. */
function entriesOf(forms: readonly Form[]): readonly (readonly Form[])[] {
  return [...Map.groupBy(forms, ({ source, span }) => `${source} ${span.from}`).values()];
}

function tableOf(policySet: PolicySet): CommandTable {
  const table = policySet.tables.get("shell");
  if (table === undefined) throw new Error("the contract has no table");
  return table;
}

/** What happened that the table did not say. `may` are paths, or patterns, that the table named as written. */
function effectsOf({ ran, changed, shown }: Reply, area: string, may: readonly string[]): readonly string[] {
  const named = may.map((path) => path.replace(`${area}/`, ""));
  const isNamed = (path: string): boolean =>
    named.some(
      (each) => each === path || path.startsWith(`${each}/`) || each.startsWith(`${path}/`) || matches(each, path),
    );
  return [
    ...ran.map((program) => `ran ${program}`),
    ...changed
      .filter(
        (path) => !ownFiles.some((own) => own.test(path)) && !isNamed(path) && !isNamed(path.replace(ownEnding, "")),
      )
      .map((path) => `changed ${path}`),
    ...shown.map((secret) => `printed ${secret}`),
  ];
}

function matches(pattern: string, path: string): boolean {
  const source = pattern
    .replaceAll(/[.+^${}()|\\]/g, "\\$&")
    .replaceAll("**", "\0")
    .replaceAll("*", "[^/]*")
    .replaceAll("\0", ".*");
  return new RegExp(`^${source}(?:/|$)`).test(path);
}
