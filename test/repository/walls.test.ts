/**
 * Goal: the compiler and the linter enforce the walls between the modules, and a pure module cannot use what it must not
 * have. Method: both run, as configured here, on temporary modules that contain one doctored file each; the error must be
 * the wall's own. Next to each, an allowed file must pass.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, posix } from "node:path";
import { after, suite, test } from "node:test";
import { fileURLToPath } from "node:url";
import { control } from "../support/controls/control.ts";
import { folderOf, modules } from "../support/modules.ts";

type Finding = { readonly rule: string; readonly path: string; readonly line: number };
type LintReport = {
  readonly diagnostics: readonly {
    readonly code: string;
    readonly filename: string;
    readonly labels: readonly { readonly span: { readonly line: number } }[];
  }[];
};

const root = fileURLToPath(new URL("../..", import.meta.url));
const temporary = mkdtempSync(join(tmpdir(), "svc-gate-walls-"));
after(() => rmSync(temporary, { recursive: true, force: true }));

/** Copies the modules' configuration; each module's door exports one number, and `files` are added to it. */
function makeModules(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(temporary, "modules-"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"), "junction");
  for (const name of ["tsconfig.base.json", ".oxlintrc.json"]) cpSync(join(root, name), join(folder, name));
  for (const owner of Array.from(modules.keys(), folderOf)) {
    mkdirSync(join(folder, owner), { recursive: true });
    cpSync(join(root, owner, "tsconfig.json"), join(folder, owner, "tsconfig.json"));
    writeFileSync(join(folder, owner, "mod.ts"), "export const door: number = 1;\n");
  }
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

function run(folder: string, tool: readonly string[], ...options: readonly string[]): Promise<string> {
  const program = join(root, "node_modules", ...tool);
  return new Promise((resolve) => {
    execFile(process.execPath, [program, ...options], { cwd: folder }, (_, stdout, stderr) => resolve(stdout + stderr));
  });
}

function compile(module: string, text: string): Promise<string> {
  const folder = makeModules({ [`${folderOf(module)}/doctored.ts`]: text });
  return run(folder, ["typescript", "bin", "tsc"], "--build", folderOf(module), "--pretty", "false");
}

/** Returns the codes of the compiler's errors in the doctored file. An error anywhere else is the set-up's fault. */
function errorCodes(output: string): string[] {
  const errors = [...output.matchAll(/^(\S+?)\(\d+,\d+\): error (TS\d+)|^error (TS\d+)/gm)];
  for (const [line, path = ""] of errors)
    assert.match(path, /doctored\.ts$/, `an error outside the doctored file: ${line}`);
  return [...new Set(errors.map(([, , code = ""]) => code))].toSorted();
}

function importing(path: string): string {
  return `import { door } from "${path}";\nexport const seen: number = door;\n`;
}

// TS6307: the file is in no referenced project. TS6059 comes with it: the file is outside the module's folder.
const wall = ["TS6059", "TS6307"];

// A project can import the projects that its references reference, so the compiler lets some through that
// test/repository/tidy.test.ts does not.
const arrows: readonly { readonly from: string; readonly to: string; readonly codes: readonly string[] }[] = [
  { from: "core/wire", to: "core/contract", codes: wall },
  { from: "core/wire", to: "core/record", codes: wall },
  { from: "core/contract", to: "core/wire", codes: [] },
  { from: "core/contract", to: "core/record", codes: wall },
  { from: "core/contract", to: "readers", codes: wall },
  { from: "core/contract", to: "gate/ledger", codes: wall },
  { from: "core/record", to: "core/approvals", codes: [] },
  { from: "core/record", to: "core/contract", codes: wall },
  { from: "core/record", to: "gate/ledger", codes: wall },
  { from: "readers", to: "core/contract", codes: [] },
  { from: "readers", to: "gate/server", codes: wall },
  { from: "gate/ledger", to: "core/wire", codes: [] },
  { from: "gate/ledger", to: "core/record", codes: [] },
  { from: "gate/ledger", to: "core/contract", codes: wall },
  { from: "gate/ledger", to: "gate/server", codes: wall },
  { from: "gate/ledger", to: "records", codes: wall },
  { from: "gate/server", to: "core/contract", codes: [] },
  { from: "gate/server", to: "readers", codes: [] },
  { from: "gate/server", to: "gate/ledger", codes: [] },
  { from: "gate/server", to: "console/server", codes: [] },
  { from: "gate/server", to: "console/browser", codes: wall },
  { from: "gate/server", to: "records", codes: wall },
  { from: "gate/server", to: "gate/cli", codes: wall },
  { from: "gate/server", to: "workbench/analysis", codes: wall },
  { from: "gate/server", to: "agent", codes: wall },
  { from: "gate/cli", to: "gate/server", codes: [] },
  { from: "gate/cli", to: "records", codes: wall },
  { from: "gate/cli", to: "svc-gate", codes: wall },
  { from: "records", to: "gate/server", codes: [] },
  { from: "records", to: "workbench/test", codes: wall },
  { from: "console/browser", to: "core/wire", codes: [] },
  { from: "console/browser", to: "core/approvals", codes: [] },
  { from: "console/browser", to: "core/contract", codes: wall },
  { from: "console/browser", to: "console/server", codes: wall },
  { from: "console/server", to: "core/wire", codes: [] },
  { from: "console/server", to: "gate/server", codes: wall },
  { from: "workbench/test", to: "records", codes: [] },
  { from: "workbench/test", to: "svc-gate", codes: wall },
  { from: "svc-gate", to: "records", codes: [] },
  { from: "svc-gate", to: "workbench/commands", codes: wall },
  { from: "workbench/analysis", to: "readers", codes: [] },
  { from: "workbench/analysis", to: "gate/ledger", codes: wall },
  { from: "workbench/commands", to: "workbench/analysis", codes: [] },
  { from: "workbench/commands", to: "gate/cli", codes: [] },
  { from: "agent", to: "core/wire", codes: wall },
  { from: "agent", to: "gate/server", codes: wall },
];

/** A reviewer reads them without a thought of files, clocks and processes. */
const pure = ["core/wire", "core/approvals", "core/contract", "readers"];

// TS2591 and TS2584 are "cannot find name" with a hint at `types` or `lib`; TS2304 is the same without a hint.
const absent: readonly { readonly text: string; readonly codes: readonly string[] }[] = [
  { text: 'import { readFileSync } from "node:fs";\nexport const seen: unknown = readFileSync;', codes: ["TS2591"] },
  { text: 'import "node:fs";', codes: ["TS2882"] },
  { text: 'export const seen: unknown = import("node:fs");', codes: ["TS2591"] },
  { text: 'export type Seen = typeof import("node:fs");', codes: ["TS2591"] },
  { text: "export const seen: unknown = process;", codes: ["TS2591"] },
  { text: "export const seen: unknown = Buffer;", codes: ["TS2591"] },
  { text: "export const seen: unknown = require;", codes: ["TS2591"] },
  { text: "export const seen: unknown = fetch;", codes: ["TS2304"] },
  { text: "export const seen: unknown = setTimeout;", codes: ["TS2304"] },
  { text: "export const seen: unknown = performance;", codes: ["TS2304"] },
  { text: "export const seen: unknown = crypto;", codes: ["TS2304"] },
  { text: "export const seen: unknown = console;", codes: ["TS2584"] },
  { text: "export const seen: unknown = globalThis.process;", codes: ["TS7017"] },
];

suite("the compiler keeps the modules apart", { concurrency: 4 }, () => {
  for (const { from, to, codes } of arrows) {
    test(`${from} ${codes.length === 0 ? "may" : "may not"} import ${to}`, async () => {
      assert.deepEqual(
        errorCodes(await compile(from, importing(`${posix.relative(folderOf(from), folderOf(to))}/mod.ts`))),
        codes,
      );
    });
  }

  for (const { text, codes } of absent) {
    test(`pure modules cannot use: ${text.split("\n")[0]}`, async () => {
      for (const module of pure) assert.deepEqual(errorCodes(await compile(module, text)), codes, module);
    });
  }

  control("positive control: ledger and gate can use Node's modules and globals", async () => {
    const text = 'import "node:fs";\nexport const seen: unknown = [process, fetch, setTimeout, console];';
    for (const module of ["gate/ledger", "gate/server"])
      assert.deepEqual(errorCodes(await compile(module, text)), [], module);
  });
});

/** Returns the packages that a module's sources import by name. */
function packagesOf(module: string): string[] {
  const folder = join(root, folderOf(module));
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".ts"));
  const imports = files.flatMap((path) => [
    ...readFileSync(join(folder, path), "utf8").matchAll(/\b(?:from |import\()"([^".][^"]*)"/g),
  ]);
  return [...new Set(imports.map(([, specifier = ""]) => specifier))].toSorted();
}

function withPackages(packages: readonly string[]): string {
  return [...packages.map((name) => `import "${name}";`), "export const seen: unknown = process;"].join("\n");
}

suite("packages do not bring Node's types into a pure module", () => {
  for (const module of pure) {
    const packages = packagesOf(module);
    test(`${module} cannot use process with the types of ${packages.join(", ") || "no package"}`, async () => {
      assert.deepEqual(errorCodes(await compile(module, withPackages(packages))), ["TS2591"]);
    });
  }

  control("positive control: a package that refers to Node's types is noticed", async () => {
    assert.deepEqual(errorCodes(await compile("core/contract", withPackages(["fastify"]))), []);
  });
});

const impure = `/// <reference types="node" />
export const a: unknown = new Date(0);
export const b: number = Date.now();
export const c: unknown = globalThis.Date;
export const d: number = Math.random();
export const e: number = Math["random"]();
const { random } = Math;
export const f: unknown = Temporal.Now.instant();
export const g: string = new Intl.DateTimeFormat("en").format();
export const h: unknown = new Function("return 1");
export const i: unknown = [1].map((a) => [a, random]);
`;
const impureLines: readonly (readonly [rule: string, line: number])[] = [
  ["typescript(triple-slash-reference)", 1],
  ["eslint(no-restricted-globals)", 2],
  ["eslint(no-restricted-globals)", 3],
  ["eslint(no-restricted-globals)", 4],
  ["eslint(no-restricted-properties)", 5],
  ["eslint(no-restricted-properties)", 6],
  ["eslint(no-restricted-properties)", 7],
  ["eslint(no-restricted-properties)", 8],
  ["eslint(no-restricted-properties)", 9],
  ["eslint(no-new-func)", 10],
  ["eslint(no-shadow)", 11],
];

async function lint(files: Readonly<Record<string, string>>): Promise<Finding[]> {
  const output = await run(makeModules(files), ["oxlint", "bin", "oxlint"], "--format", "json", "packages");
  const report: LintReport = JSON.parse(output);
  return report.diagnostics.map(({ code, filename, labels }) => ({
    rule: code,
    path: filename.replaceAll("\\", "/"),
    line: labels[0]?.span.line ?? 0,
  }));
}

function linesOf(findings: readonly Finding[], path: string): string[] {
  const lines = findings.filter((finding) => finding.path === path).map(({ rule, line }) => `${line} ${rule}`);
  return lines.toSorted((left, right) => Number.parseInt(left, 10) - Number.parseInt(right, 10));
}

suite("the linter enforces rules that the compiler cannot", async () => {
  const findings = await lint({
    "packages/core/src/wire/impure.ts": impure,
    "packages/core/src/contract/parts/impure.ts": impure,
    "packages/gate/src/server/impure.ts": impure,
    "packages/gate/src/server/one.ts": 'import type { Two } from "./two.ts";\nexport type One = 1 | Two;\n',
    "packages/gate/src/server/two.ts": 'import type { One } from "./one.ts";\nexport type Two = 2 | One;\n',
  });

  test("the linter reports clocks, randomness and shadowed names in pure modules", () => {
    const expected = impureLines.map(([rule, line]) => `${line} ${rule}`);
    assert.deepEqual(linesOf(findings, "packages/core/src/wire/impure.ts"), expected);
    assert.deepEqual(linesOf(findings, "packages/core/src/contract/parts/impure.ts"), expected);
  });

  control("positive control: the gate may use clocks and randomness", () => {
    assert.deepEqual(linesOf(findings, "packages/gate/src/server/impure.ts"), [
      "10 eslint(no-new-func)",
      "11 eslint(no-shadow)",
    ]);
  });

  test("the linter reports circular imports, also those of types", () => {
    for (const path of ["packages/gate/src/server/one.ts", "packages/gate/src/server/two.ts"])
      assert.deepEqual(linesOf(findings, path), ["1 import(no-cycle)"]);
  });
});
