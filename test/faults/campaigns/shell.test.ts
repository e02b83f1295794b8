/**
 * Goal: a text that `shell()` reports as harmless does no harm in bash and in dash. Method: a seeded grammar writes
 * texts full of canaries: programs that leave a mark, secrets, files that must not change. Each text with a harmless
 * record runs in the real shells, in a sandbox, and the test looks for the marks.
 * `SVC_DIFFERENTIAL_SHELL=100000` sets the number of texts, and `SVC_DIFFERENTIAL_SEED=7` chooses them.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, suite, test, type TestContext } from "node:test";
import { shellFunctions } from "../../../packages/readers/src/shell/functions.ts";
import { readShellText, understood } from "../../../packages/readers/src/shell/shell.ts";
import { compile, judge, readReady } from "../../support/contract-kit.ts";
import { control } from "../../support/controls/control.ts";
import {
  describeHole,
  Differential,
  readerOf,
  type Hole,
  type Reader,
  type Shell,
} from "../../support/differential/shell/differential.ts";
import { canSeal, openSandbox, shellPath, type Sandbox } from "../../support/differential/shell/sandbox.ts";
import { alwaysDoubt, productions } from "../../support/differential/shell/texts.ts";
import { printSeed, seedOf } from "../../support/random-test.ts";

const shortRun = 3_000;
const count = Number(process.env["SVC_DIFFERENTIAL_SHELL"] ?? shortRun);
const seed = seedOf("SVC_DIFFERENTIAL_SEED");
/** For what must come about in each run: coverage, and the holes of the controls. */
const fixedSeed = 1;
/** The least share of harmless texts; with fewer, the run shows little. */
const harmlessShare = 0.3;
/** The least number of harmless texts for each production: 100 in a run of 100,000. */
const perProduction = Math.max(1, Math.floor(count / 1_000));
/** How many more texts to write for each harmless text that a production lacks. */
const furtherPerMissing = 60;

const shells = ["bash", "dash"].flatMap((name): readonly Shell[] => {
  const path = shellPath(name);
  return path === undefined ? [] : [{ name, command: [path] }];
});
const isSealed = canSeal();
const isSafe = isSealed || (process.getuid?.() ?? 0) !== 0;
const missing =
  shells.length === 0
    ? "neither bash nor dash is installed"
    : isSafe
      ? undefined
      : "this machine has no namespaces, and the tests run as root";
const read = readerOf((text) => readShellText(text));

/** Which production finds an effect again when a predicate of `understood` accepts everything. */
const controls: readonly { finding: number; shape: keyof typeof understood; focus: readonly string[] }[] = [
  { finding: 2, shape: "indexes", focus: ["[[ ]]: -v text", "command: index assignment"] },
  { finding: 3, shape: "delimiters", focus: ["here-document: $'E'", 'here-document: $"E"'] },
  { finding: 4, shape: "tests", focus: ["[[ ]]: >", "[[ ]]: ||", "[[ ]]: newline"] },
  { finding: 5, shape: "ansiC", focus: ["word: $'' with \\x{"] },
  { finding: 6, shape: "braces", focus: ["word: braces that start with {}"] },
  { finding: 8, shape: "descriptors", focus: ["redirect: {name}<file", "redirect: {name}>&-"] },
];
const controlTextsMax = 1_500;

let sandbox: Sandbox;

/** A text that is ALLOW has no effect at all: not even the changes and the code that contracts/shell.yaml lets run. */
const onlyReads = `rules:
  - rule: only-reads
    on: [shell.run]
    when: '!run.does.all(each, each == "reads")'
    verdict: ESCALATE
    reason: does more than read
`;

/** Returns whether contracts/shell.yaml answers ALLOW to a text that only reads, with the sandbox as its workspace. */
function shellContract(area: string): (text: string) => boolean {
  const file = readReady("shell").replace(/^ {2}workspace: .*$/m, `  workspace: ${area}/app`);
  const contract = compile(
    file.replace(/^ {2}open_folders: .*$/m, "  open_folders: []").replace("rules:\n", onlyReads),
  );
  return (command) =>
    judge(contract, { tool: "shell.run", input: { command, cwd: `${area}/app` } }).verdict === "ALLOW";
}

function start(t: TestContext, reader: Reader, allows?: (text: string) => boolean): Differential {
  if (!isSealed) t.diagnostic("no namespaces here: the texts run in an ordinary temporary folder");
  if (shells.length < 2) t.diagnostic(`only ${shells.map(({ name }) => name).join()} is installed`);
  return new Differential({ read: reader, sandbox, shells, ...(allows === undefined ? {} : { allows }) });
}

suite("shell() against real shells", { skip: missing ?? false }, () => {
  before(async () => {
    await shellFunctions[0]?.load?.();
    sandbox = openSandbox({ isSealed, runners: 2 });
  });
  after(() => sandbox.close());

  test("texts that once did harm are in doubt, or their record shows the harm", async (t) => {
    const differential = start(t, read, shellContract(sandbox.area));
    const file = new URL("../../support/differential/shell/kept.json", import.meta.url);
    const kept = JSON.parse(readFileSync(file, "utf8")) as readonly { readonly text: string }[];
    for (const { text } of kept) await differential.give(text);
    await differential.settle();
    assertNoHoles(differential.tally.holes);
  });

  test("no random text with a harmless record does harm", async (t) => {
    assert.ok(isSealed || count <= shortRun, "a long run needs namespaces: run it on Linux with `unshare` allowed");
    printSeed(t, { cases: count, seed, variable: "SVC_DIFFERENTIAL_SEED" });
    const differential = start(t, read, shellContract(sandbox.area));
    for (let at = 0; at < count; at += 1) await differential.random(seed + at, focusOf(at));
    await writeMissing(differential, seed + count);
    await differential.settle();
    report(t, differential);
    assertNoHoles(differential.tally.holes);
    assertDoubts(differential);
  });

  test("the texts of fixed seeds are often harmless, in each production", async () => {
    const allows = shellContract(sandbox.area);
    const differential = new Differential({ read, sandbox, shells: [], allows });
    for (let at = 0; at < count; at += 1) await differential.random(fixedSeed + at, focusOf(at));
    await writeMissing(differential, fixedSeed + count);
    assertCoverage(differential);
  });

  for (const { finding, shape, focus } of controls) {
    control(
      `positive control: the run finds finding ${finding} again when every text of \`${shape}\` is understood`,
      async (t) => {
        const blind = { ...understood, [shape]: () => true };
        const differential = start(
          t,
          readerOf((text) => readShellText(text, blind)),
        );
        for (let at = 0; at < controlTextsMax && differential.tally.holes.length === 0; at += 1) {
          await differential.random(fixedSeed + at, focus[at % focus.length] ?? "");
        }
        await differential.settle();
        const [hole] = differential.tally.holes;
        assert.ok(hole !== undefined, `${controlTextsMax} texts from seed ${fixedSeed} had no effect`);
        t.diagnostic(
          `${differential.tally.generated} texts; ${JSON.stringify(hole.text)} in ${hole.shell} ${hole.effects.join("; ")}`,
        );
      },
    );
  }
});

/** Returns the production for a text: the texts take turns over the productions. */
function focusOf(at: number): string {
  return productions[at % productions.length] ?? "";
}

function harmlessOf({ tally }: Differential, production: string): number {
  return tally.byProduction.get(production)?.harmless ?? 0;
}

/** Writes further texts of the productions that had too few harmless ones. */
async function writeMissing(differential: Differential, from: number): Promise<void> {
  let next = from;
  for (const production of productions.filter((name) => alwaysDoubt[name] === undefined)) {
    let left = furtherPerMissing * Math.max(0, perProduction - harmlessOf(differential, production));
    for (; left > 0 && harmlessOf(differential, production) < perProduction; left -= 1) {
      await differential.random(next, production);
      next += 1;
    }
  }
}

function report(t: TestContext, { tally }: Differential): void {
  const { generated, harmless, timedOut } = tally;
  t.diagnostic(
    `${generated} texts generated, ${harmless} harmless and executed in each shell, ${timedOut} stopped after a time`,
  );
  if (count <= shortRun) return;
  t.diagnostic("production: generated, harmless and executed");
  for (const production of productions) {
    const counts = tally.byProduction.get(production) ?? { generated: 0, harmless: 0 };
    const reason = alwaysDoubt[production];
    const note = reason === undefined ? "" : ` (always doubt: ${reason})`;
    t.diagnostic(`${production}: ${counts.generated}, ${counts.harmless}${note}`);
  }
}

function assertNoHoles(holes: readonly Hole[]): void {
  const shown = holes.toSorted((a, b) => a.text.length - b.text.length).slice(0, 20);
  assert.equal(
    holes.length,
    0,
    `${holes.length} texts with a harmless record did harm\n${shown.map(describeHole).join("\n")}`,
  );
}

function assertDoubts(differential: Differential): void {
  const wrong = productions.filter(
    (production) => alwaysDoubt[production] !== undefined && harmlessOf(differential, production) > 0,
  );
  assert.deepEqual(wrong, [], "productions that are always in doubt had a harmless text");
}

function assertCoverage(differential: Differential): void {
  const { generated, harmless } = differential.tally;
  assert.ok(harmless >= harmlessShare * generated, `only ${harmless} of ${generated} texts were harmless`);
  const rare = productions.filter(
    (production) => alwaysDoubt[production] === undefined && harmlessOf(differential, production) < perProduction,
  );
  assert.deepEqual(rare, [], `productions with fewer than ${perProduction} harmless texts`);
}
