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
import { readCommands } from "../../../packages/readers/src/commands/judge.ts";
import { compile, judge, readReady } from "../../support/contract-kit.ts";
import { control } from "../../support/controls/control.ts";
import { textOf } from "../../support/differential/packs/texts.ts";
import { canSeal, openSandbox, shellPath, type Sandbox } from "../../support/differential/shell/sandbox.ts";
import { Dice } from "../../support/campaign/random.ts";
import { printSeed, seedOf } from "../../support/random-test.ts";

const perForm = Number(process.env["SVC_PACKS"] ?? 3);
const seed = seedOf("SVC_PACKS_SEED");
const bash = shellPath("bash");
const missing = bash === undefined ? "bash is not installed" : canSeal() ? undefined : "this machine has no namespaces";

/** Git's index, and the caches and logs that programs keep in the home folder whatever they do. */
const ownFiles = [
  /^app\/\.git\/index$/,
  /^home\/\.config$/,
  /^home\/(?:\.npm|\.gradle|\.m2|\.kube\/cache|\.cache|\.config\/(?:go|gcloud|procps)|\.local|\.rustup|\.terraform\.d|go)(?:\/|$)/,
  /^tmp\//,
];
/** Endings with which a program names a file beside the one that it was given. */
const ownEnding = /\.(?:gz|zip|bak|orig)$/;

suite("the forms of the ready packs against the real programs", { skip: missing ?? false }, () => {
  let sandbox: Sandbox;
  let ready: Judged;
  before(async () => {
    const programs = harmless(tableOf(compile(readReady("shell")))).map(({ run }) => run[0] ?? "");
    const names = [...new Set([...programs, "csplit"])].filter((name) => /^[\w.-]+$/.test(name));
    sandbox = openSandbox({ isSealed: true, runners: 2, programs: names });
    ready = await judgedIn(sandbox, readReady("shell"));
  });
  after(() => sandbox.close());

  test("each runs as its form says", async (t) => {
    printSeed(t, { cases: perForm, seed, variable: "SVC_PACKS_SEED" });
    const forms = harmless(ready.table);
    const { ran, texts, done, failed, absent, holes } = await runForms(sandbox, ready, forms);
    t.diagnostic(
      `${ran} of ${entriesOf(forms).length} forms ran, with ${texts} texts; not installed: ${[...absent].join(" ")}`,
    );
    t.diagnostic(`${done.size} commands succeeded, and no text of these did: ${[...failed].join(", ")}`);
    assert.deepEqual(holes, []);
    assert.ok(done.size > 60, `only ${done.size} commands succeeded`);
  });

  control("positive control: a form that says less than its program does is found", async () => {
    const forms = "forms: [{ run: csplit, options: [-s], words: [reads FILE, NUMBER], does: reads }]";
    const wrong = await judgedIn(
      sandbox,
      readReady("shell").replace("\ncommands:\n", () => `\ncommands:\n  ${forms}\n`),
    );
    const own = harmless(wrong.table).filter(({ run }) => run[0] === "csplit");
    const { holes } = await runForms(sandbox, wrong, own, 30);
    assert.ok(
      holes.some(({ effects }) => effects.includes("changed app/xx00")),
      JSON.stringify(holes),
    );
  });

  control("positive control: a change, a secret and a canary that no form names are seen", async () => {
    const texts = ["rm precious.txt", "cat .env", "./ls"];
    const found = await Promise.all(texts.map((text) => runText(sandbox, text, [])));
    assert.deepEqual(
      found.map(({ effects }) => effects),
      [["changed app/precious.txt"], ["printed a secret of the working folder"], ["ran ./ls"]],
    );
  });
});

/** A contract for commands in the sandbox's folder, and its table. */
interface Judged {
  readonly contract: PolicySet;
  readonly table: CommandTable;
}

async function judgedIn({ area }: Sandbox, text: string): Promise<Judged> {
  const contract = compile(
    text
      .replace(/^ {2}workspace: .*$/m, `  workspace: ${area}/app`)
      .replace(/^ {2}open_folders: .*$/m, "  open_folders: [src]"),
  );
  await loadFunctions(contract);
  return { contract, table: tableOf(contract) };
}

/** The forms that may run unasked, and neither run code nor contact another machine. */
function harmless({ forms }: CommandTable): readonly Form[] {
  return forms.filter(({ verdict, does }) => verdict === "ALLOW" && !does.has("runs") && !does.has("sends"));
}

interface Ran {
  /** The number of forms of which a text ran, and of the texts. */
  readonly ran: number;
  readonly texts: number;
  /** Commands of which a text ran to its end without an error, and those of which none did. */
  readonly done: ReadonlySet<string>;
  readonly failed: ReadonlySet<string>;
  readonly absent: ReadonlySet<string>;
  readonly holes: readonly { readonly form: string; readonly text: string; readonly effects: readonly string[] }[];
}

async function runForms(
  sandbox: Sandbox,
  { contract, table }: Judged,
  forms: readonly Form[],
  rounds = perForm,
): Promise<Ran> {
  const cwd = `${sandbox.area}/app`;
  const ran = new Set<number>();
  let texts = 0;
  const [done, failed] = [new Set<string>(), new Set<string>()];
  const absent = new Set<string>();
  const holes: Ran["holes"][number][] = [];
  const waiting = new Set<Promise<void>>();
  for (const [at, variants] of entriesOf(forms).entries()) {
    const installed = variants.filter(
      ({ run: [program = ""] }) => builtins.has(program) || shellPath(program) !== undefined,
    );
    if (installed.length === 0) absent.add(variants[0]?.run[0] ?? "");
    for (let round = 0; round < rounds && installed.length > 0; round += 1) {
      const dice = new Dice(seed + at * 1_000 + round);
      const form = dice.oneOf(installed);
      const text = textOf(form, table.programs.get(form.run[0] ?? ""), dice);
      if (text === undefined) continue;
      if (judge(contract, { tool: "shell.run", input: { command: text, cwd } }).verdict !== "ALLOW") continue;
      const name = form.run.join(" ");
      ran.add(at);
      texts += 1;
      failed.add(name);
      const named = [...readCommands(text, table, cwd).answer().writes];
      // A form of git that writes adds objects and moves branches, whatever files its words name.
      if (form.run[0] === "git" && form.does.has("writes"))
        named.push(...["objects", "refs", "logs"].map((folder) => `${cwd}/.git/${folder}`));
      const running = runText(sandbox, text, named).then(({ isDone, effects }) => {
        waiting.delete(running);
        if (isDone) done.add(name);
        if (effects.length > 0) holes.push({ form: name, text, effects });
      });
      waiting.add(running);
      if (waiting.size >= waitingMax) await Promise.race(waiting);
    }
  }
  await Promise.all(waiting);
  return { ran: ran.size, texts, done, failed: failed.difference(done), absent, holes };
}

const builtins = new Set(
  (
    "cd pwd echo printf test [ type hash command jobs wait set exit return break continue shift umask true false : read source " +
    "pushd popd dirs"
  ).split(" "),
);

/** Texts that wait for a shell: enough to keep the runners busy. */
const waitingMax = 8;

/** The spellings of each command as a form writes it: `python|python3` are two. */
function entriesOf(forms: readonly Form[]): readonly (readonly Form[])[] {
  return [...Map.groupBy(forms, ({ source, span }) => `${source} ${span.from}`).values()];
}

function tableOf(policySet: PolicySet): CommandTable {
  const table = policySet.tables.get("shell");
  if (table === undefined) throw new Error("the contract has no table");
  return table;
}

/**
 * Runs a text. `effects` is what happened that the table did not say, and `may` are the paths, or patterns, that it named.
 */
async function runText(
  { run, area }: Sandbox,
  text: string,
  may: readonly string[],
): Promise<{ readonly isDone: boolean; readonly effects: readonly string[] }> {
  const { ran, changed, shown, exit, timedOut } = await run({ shell: [bash ?? ""], text });
  const named = may.map((path) => path.replace(`${area}/`, ""));
  const isNamed = (path: string): boolean =>
    named.some(
      (each) => each === path || path.startsWith(`${each}/`) || each.startsWith(`${path}/`) || matches(each, path),
    );
  const effects = [
    ...ran.map((program) => `ran ${program}`),
    ...changed
      .filter(
        (path) => !ownFiles.some((own) => own.test(path)) && !isNamed(path) && !isNamed(path.replace(ownEnding, "")),
      )
      .map((path) => `changed ${path}`),
    ...shown.map((secret) => `printed ${secret}`),
  ];
  return { isDone: exit === 0 && !timedOut, effects };
}

/** A pattern of the table. Unlike those of `node:path`, it covers hidden files, and all that is below what it matches. */
function matches(pattern: string, path: string): boolean {
  const source = pattern
    .replaceAll(/[.+^${}()|\\]/g, "\\$&")
    .replaceAll("**", "\0")
    .replaceAll("*", "[^/]*")
    .replaceAll("\0", ".*");
  return new RegExp(`^${source}(?:/|$)`).test(path);
}
