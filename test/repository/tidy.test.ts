/**
 * Goal: the repository's habits are checked automatically. Method: each check is a pure function over the tracked
 * files' paths and texts that returns one line per fault; each has a doctored text that it must report.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { suite, test } from "node:test";
import { control } from "../support/controls/control.ts";
import { doubledTypes, vagueNames } from "../support/declared-names.ts";
import { importsIn } from "../support/imports.ts";
import { mayEnter, moduleOf, modules } from "../support/modules.ts";
import { root, trackedPaths } from "../support/tracked.ts";

type SourceText = { readonly path: string; readonly text: string };
type Check = (files: readonly SourceText[]) => string[];
/** A forbidden pattern in lines, and the files to which it applies. */
type LineRule = { readonly fault: string; readonly in: RegExp; readonly pattern: RegExp };

const linesMax = 500;
/** A client is one file, whatever its size (specification 1.7). */
const clientLinesMax = 775;
const client = /^clients\/(?:python|javascript)\//;
const columnsMax = 140;

const code = /\.(?:ts|mts|mjs|js|py|go)$/;
/** Files whose own formatter indents with tabs. */
const go = /\.go$|(?:^|\/)go\.mod$/;
const typescript = /\.m?ts$/;
const any = /(?:)/;
/** Files written by machines, or bytes that a test needs unchanged. */
const notByHand = /^package-lock\.json$|^spec\/vectors\/|(?:^|\/)generated\/|\.golden$|^LICENSE$/;
/** This file names the forbidden words. */
const self = "test/repository/tidy.test.ts";

/** Words and shapes that no line may contain. */
const lineRules: readonly LineRule[] = [
  { fault: "a tab", in: new RegExp(`^(?!.*(?:${go.source}))`), pattern: /\t/ },
  { fault: "white space at the end of the line", in: any, pattern: /[ \t\r]$/ },
  { fault: "work that is left to do", in: any, pattern: /\b(?:TODO|FIXME|XXX|HACK)\b/ },
  { fault: "a cast to any", in: typescript, pattern: /\bas any\b/ },
  { fault: "a silenced compiler", in: code, pattern: /@ts-(?:ignore|nocheck)\b/ },
  { fault: "an expected compiler error without its reason", in: code, pattern: /@ts-expect-error\s*(?:\*\/|$)/ },
  { fault: "a lone test", in: typescript, pattern: /\b(?:test|it|describe|suite)\.only\b|\bonly: true\b/ },
  {
    fault: "a skipped test without its reason",
    in: typescript,
    pattern: /\b(?:test|it|describe|suite)\.(?:skip|todo)\(|\bt\.(?:skip|todo)\(\s*\)|\b(?:skip|todo): true\b/,
  },
  {
    fault: "a silenced linter without its reason after --",
    in: code,
    pattern: /\b(?:ox|es)lint-disable(?:-(?:next-)?line)?\b(?!.* -- \S)|#\s*(?:noqa|type: ignore)\b(?!.* -- \S)/,
  },
  {
    fault: "the name of a package registry's host",
    in: any,
    pattern:
      /\b(?:registry\.npmjs\.org|registry\.yarnpkg\.com|pypi\.org|files\.pythonhosted\.org|proxy\.golang\.org|crates\.io)\b/,
  },
  {
    fault:
      "a hook on the loading of sources: a defect is planted by test/support/mutation, or the file is named in this rule",
    in: /^(?:test|bench|tools|clients)\/(?!(?:.*\/)?(?:mutation\/preload|simulation\/sources|(?:entries|observe|traces)\.test)\.ts$)/,
    pattern: /\bregisterHooks\b/,
  },
  {
    fault: "an edit of a source by its text: a defect is planted by test/support/mutation",
    in: /^(?:test|bench|tools|clients)\//,
    pattern:
      /\bfile: ["'`](?:[\w-]+\/)*src\/[^"'`]*\.ts["'`]|\breadFileSync\([^;]*\.(?:ts|mjs|py)["'`][^;]*\)\.replace(?:All)?\(/,
  },
  { fault: "a path of one machine", in: any, pattern: /(?<![\w.~-])\/(?:work\/|tmp\/bash|root\/)/ },
];

function brokenLines(files: readonly SourceText[], rules: readonly LineRule[] = lineRules): string[] {
  return files
    .filter(({ path }) => path !== self)
    .flatMap(({ path, text }) => {
      const applying = rules.filter((rule) => rule.in.test(path));
      return text
        .split("\n")
        .flatMap((line, index) =>
          applying.filter(({ pattern }) => pattern.test(line)).map(({ fault }) => `${path}:${index + 1} ${fault}`),
        );
    });
}

function longFiles(files: readonly SourceText[]): string[] {
  const counted = files
    .filter(({ path }) => code.test(path))
    .map(({ path, text }) => ({ path, lines: text.split("\n").length - 1 }));
  return counted
    .map((file) => ({ ...file, most: client.test(file.path) ? clientLinesMax : linesMax }))
    .filter(({ lines, most }) => lines > most)
    .map(({ path, lines, most }) => `${path} has ${lines} lines, over ${most}`);
}

function longLines(files: readonly SourceText[]): string[] {
  return files
    .filter(({ path }) => code.test(path))
    .flatMap(({ path, text }) =>
      text
        .split("\n")
        .map((line, index) => ({ place: `${path}:${index + 1}`, columns: Array.from(line).length }))
        .filter(({ columns }) => columns > columnsMax)
        .map(({ place, columns }) => `${place} has ${columns} columns, over ${columnsMax}`),
    );
}

function textEnds(files: readonly SourceText[]): string[] {
  return files
    .filter(({ text }) => text !== "" && !/[^\n]\n$/.test(text))
    .map(({ path }) => `${path} does not end in one line break`);
}

/** The maximum number of names for each door, because a reviewer reads a module's doors first. */
const namesMax: readonly (readonly [door: RegExp, max: number])[] = [
  [/\/contract\/(?:mod|ir)\.ts$/, 40],
  [/\/ledger\/mod\.ts$/, 60],
  [/\/(?:record|ledger)\/(?:entry|tree|signing|export)\/mod\.ts$/, 40],
];

function wideDoors(files: readonly SourceText[]): string[] {
  return files.flatMap(({ path, text }) => {
    const max = namesMax.find(([door]) => door.test(path))?.[1];
    const lists = [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, names = ""]) => names.split(","));
    const names = lists.filter((name) => name.trim() !== "").length;
    return max === undefined || names <= max ? [] : [`${path} exports ${names} names, over ${max}`];
  });
}

function drawers(files: readonly SourceText[]): string[] {
  const drawer = /^packages\/[^/]+\/src\/(?:.*\/)?(?:utils?|shared|common|helpers?|types)(?:\/|\.ts$)/;
  return files.filter(({ path }) => drawer.test(path)).map(({ path }) => `${path} lies in a drawer without a name`);
}

function arrows(files: readonly SourceText[]): string[] {
  return files.flatMap(({ path, text }) => {
    const from = moduleOf(path);
    return from === undefined ? [] : importsIn(path, text).flatMap(({ name }) => wrongArrow(from, path, name));
  });
}

function wrongArrow(from: string, path: string, specifier: string): string[] {
  if (!specifier.startsWith("."))
    return from === "core/wire" ? [`${path} imports ${specifier}: wire imports nothing`] : [];
  const target = posix.join(posix.dirname(path), specifier);
  const to = moduleOf(target);
  if (to === from || (to === undefined && !target.endsWith(".ts"))) return [];
  if (to === undefined || !modules.get(from)?.mayImport.includes(to))
    return [`${path} imports ${target}: ${from} may not`];
  return mayEnter(from, to, target) ? [] : [`${path} imports ${target}, not a door of ${to}`];
}

/**
 * Finds ambient declarations, because a pure module must not tell the compiler about things that it does not have. A
 * brand's `unique symbol` has no value, so it is allowed. So is the platform's parser of URLs: it is not in the
 * standard library, but it is as pure.
 */
function ambient(files: readonly SourceText[]): string[] {
  const declares = /^\s*(?:export )?declare (?!const \w+: unique symbol;|const URL: new )|^\/\/\/ *</m;
  return files
    .filter(({ path, text }) => isPure(path) && declares.test(text))
    .map(({ path }) => `${path} declares what the module does not have`);
}

function isPure(path: string): boolean {
  return ["core/approvals", "core/contract", "core/wire", "readers"].includes(moduleOf(path) ?? "");
}

/** Returns Markdown without its code. */
function proseOf(markdown: string): string {
  return markdown.replaceAll(/^(`{3,}|~{3,})[\s\S]*?^\1/gm, "");
}

/** Returns the targets of links in Markdown that lead to a path in the repository. */
function linksOf(markdown: string): string[] {
  const prose = proseOf(markdown).replaceAll(/`[^`\n]*`/g, "");
  const links = prose.matchAll(/\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)|^\[[^\]]+\]:\s*<?(\S+?)>?\s*$/gm);
  return [...links]
    .map(([, inline, reference]) => inline ?? reference ?? "")
    .filter((target) => !/^[a-z][a-z0-9+.-]*:/i.test(target));
}

/** Returns the anchors of a page's headings, as GitHub makes them. A title that comes again gets a number. */
function anchorsOf(markdown: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, title = ""] of proseOf(markdown).matchAll(/^#{1,6} (.*?)(?: #+)?$/gm)) {
    const text = title
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .trim()
      .toLowerCase();
    const anchor = text.replaceAll(/[^\p{L}\p{N}\p{M}_\- ]/gu, "").replaceAll(" ", "-");
    let free = anchor;
    for (let count = 1; anchors.has(free); count += 1) free = `${anchor}-${count}`;
    anchors.add(free);
  }
  return anchors;
}

function deadLinks(files: readonly SourceText[]): string[] {
  const known = new Set(files.flatMap(({ path }) => [path, ...foldersOf(path)]));
  const pages = files.filter(({ path }) => path.endsWith(".md"));
  const anchors = new Map(pages.map(({ path, text }) => [path, anchorsOf(text)]));
  return pages.flatMap(({ path, text }) =>
    linksOf(text).flatMap((target) => {
      const [linked = "", anchor] = target.split("#");
      const led = linked === "" ? path : posix.join(posix.dirname(path), decodeURI(linked)).replace(/\/$/, "");
      if (!known.has(led)) return [`${path} links to ${target}, which is not there`];
      const isThere = anchor === undefined || (anchors.get(led)?.has(decodeURI(anchor)) ?? true);
      return isThere ? [] : [`${path} links to ${target}: that page has no such heading`];
    }),
  );
}

function foldersOf(path: string): string[] {
  const folder = posix.dirname(path);
  return folder === "." ? ["."] : [folder, ...foldersOf(folder)];
}

function readTexts(paths: readonly string[]): SourceText[] {
  const texts = paths.map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
  return texts.filter(({ text }) => !text.includes("\0"));
}

function isPicture(path: string): boolean {
  return path.endsWith(".png");
}

const tracked = readTexts(trackedPaths());
const byHand = tracked.filter(({ path }) => !notByHand.test(path));

const checks: readonly {
  readonly title: string;
  readonly check: Check;
  readonly files: readonly SourceText[];
  readonly doctored: readonly SourceText[];
  readonly reported: number;
}[] = [
  {
    title: `no file is longer than ${linesMax} lines, no client than ${clientLinesMax}`,
    check: longFiles,
    files: byHand,
    doctored: [
      { path: "packages/gate/src/server/long.ts", text: "a;\n".repeat(linesMax + 1) },
      { path: "packages/gate/src/server/full.ts", text: "a;\n".repeat(linesMax) },
      { path: "clients/python/one_file.py", text: "a\n".repeat(clientLinesMax) },
      { path: "clients/python/too_long.py", text: "a\n".repeat(clientLinesMax + 1) },
    ],
    reported: 2,
  },
  {
    title: `no line of code is wider than ${columnsMax} columns`,
    check: longLines,
    files: byHand,
    doctored: [
      { path: "clients/python/wide.py", text: `${"é".repeat(columnsMax)}\n${"a".repeat(columnsMax + 1)}\n` },
      { path: "README.md", text: "a".repeat(columnsMax + 1) },
    ],
    reported: 1,
  },
  {
    title: "every text file ends in one line break",
    check: textEnds,
    files: byHand,
    doctored: ["a", "a\n\n", "a\n", ""].map((text) => ({ path: "a.ts", text })),
    reported: 2,
  },
  {
    title: "no door exports more names than its limit",
    check: wideDoors,
    files: tracked,
    doctored: [
      { path: "packages/core/src/contract/ir.ts", text: `export { ${"a, ".repeat(40)}type B } from "./a.ts";\n` },
      {
        path: "packages/core/src/contract/mod.ts",
        text: `export type {\n${"  a,\n".repeat(40)}} from "./a.ts";\n`,
      },
    ],
    reported: 1,
  },
  {
    title: "no source of a package has a vague path such as utils",
    check: drawers,
    files: tracked,
    doctored: [
      "packages/gate/src/server/utils/a.ts",
      "packages/gate/src/server/helpers/a.ts",
      "packages/core/src/wire/types.ts",
      "packages/core/src/wire/typename.ts",
    ].map((path) => ({
      path,
      text: "",
    })),
    reported: 3,
  },
  {
    title: "each module imports only permitted modules, and only through their doors",
    check: arrows,
    files: tracked,
    doctored: [
      {
        path: "packages/core/src/wire/a.ts",
        text: 'import { a } from "./b.ts";\nimport { b } from "../contract/mod.ts";\nimport "node:fs";',
      },
      {
        path: "packages/core/src/contract/a.ts",
        text: 'import {\n  a,\n} from "../../../readers/src/mod.ts";\nexport * from "../wire/limits.ts";',
      },
      {
        path: "packages/gate/src/ledger/store/a.ts",
        text: 'type A = import("../../../../core/src/wire/limits.ts").A;\nimport "../../server/mod.ts";',
      },
      {
        path: "packages/gate/src/server/a.ts",
        text: 'import { a } from "../ledger/mod.ts";\nimport "pino";\n// from "../ledger/pin.ts"\nimport(`../ledger/json.ts`);',
      },
      { path: "packages/workbench/src/commands/a.ts", text: 'import { a } from "../../../gate/src/server/mod.ts";' },
    ],
    reported: 8,
  },
  {
    title: "no two files of the packages give a type the same name",
    check: doubledTypes,
    files: byHand,
    doctored: [
      { path: "packages/core/src/a.ts", text: "export interface Found {}\ntype Outcome = 1;" },
      { path: "packages/gate/src/b.ts", text: "class Found {}\nfunction Other(): void {}" },
      { path: "packages/gate/src/c.ts", text: "type Found = 1;\nconst Other = 1;" },
      { path: "test/d.ts", text: "type Found = 1;" },
    ],
    reported: 3,
  },
  {
    title: "no type, function or method of the packages has a bare participle as its name",
    check: vagueNames,
    files: byHand,
    doctored: [
      { path: "packages/core/src/a.ts", text: "export interface Found {}\ntype Finding = 1;\nclass Prepared {}" },
      {
        path: "packages/core/src/b.ts",
        text: "class A { shown(): void {}\nget held(): 1 { return 1; }\nread(): void {} }",
      },
      {
        path: "packages/core/src/c.ts",
        text: "const waiting = (): void => {};\nfunction isHeld(): void {}\nconst found = 1;",
      },
      { path: "packages/core/src/d.ts", text: "interface B { answered(): void; readonly kept: true }" },
      { path: "test/e.ts", text: "function shown(): void {}" },
    ],
    reported: 4,
  },
  {
    title: "pure modules declare no ambient names",
    check: ambient,
    files: tracked,
    doctored: [
      { path: "packages/core/src/wire/a.ts", text: "declare const process: object;" },
      { path: "packages/core/src/contract/a.ts", text: '/// <reference lib="dom" />' },
      { path: "packages/core/src/contract/b.ts", text: "declare const brand: unique symbol;" },
      { path: "packages/core/src/contract/c.ts", text: "declare const URL: new (text: string) => object;" },
      { path: "packages/gate/src/server/a.ts", text: "declare const process: object;" },
    ],
    reported: 2,
  },
  {
    title: "every relative Markdown link leads to a tracked file, and to a heading of it",
    check: deadLinks,
    files: [
      ...tracked,
      ...trackedPaths()
        .filter(isPicture)
        .map((path) => ({ path, text: "" })),
    ],
    doctored: [
      {
        path: "README.md",
        text: "# Here\n[a](docs/a.md#a-part) [b](docs/) [c](https://example.com) [d](#here) [e](docs/lost.md) [f](#there)",
      },
      { path: "docs/a.md", text: "[up](../README.md) `[code](lost.md)`\n```\n[code](lost.md)\n```\n[f]: ../lost.md\n" },
      {
        path: "docs/b.md",
        text: "# A `part`?\n## Twice\n## Twice\n[a](#a-part) [b](#twice-1) [c](a.md#part) [d](b.md#twice-2)",
      },
    ],
    reported: 6,
  },
];

const doctoredLines: readonly { readonly path: string; readonly line: string; readonly reported: boolean }[] = [
  { path: "a.ts", line: "\tconst a = 1;", reported: true },
  { path: "a.go", line: "\ta := 1", reported: false },
  { path: "a/go.mod", line: "\ta v1.0.0", reported: false },
  { path: "a.md", line: "two blanks  ", reported: true },
  { path: "a.ts", line: "const a = 1;\r", reported: true },
  { path: "a.py", line: "# TODO later", reported: true },
  { path: "a.ts", line: "// FIXME", reported: true },
  { path: "a.ts", line: "const HACKNEY = 1;", reported: false },
  { path: "a.ts", line: "const a = b as any;", reported: true },
  { path: "a.md", line: "as any gate does", reported: false },
  { path: "a.ts", line: "// @ts-ignore because", reported: true },
  { path: "a.mjs", line: "// @ts-nocheck", reported: true },
  { path: "a.ts", line: "// @ts-expect-error", reported: true },
  { path: "a.ts", line: "// @ts-expect-error: text where a number belongs", reported: false },
  { path: "a.ts", line: 'test.only("a", run);', reported: true },
  { path: "a.ts", line: 'test("a", { only: true }, run);', reported: true },
  { path: "a.ts", line: 'test.skip("a", run);', reported: true },
  { path: "a.ts", line: "t.skip();", reported: true },
  { path: "a.ts", line: 't.skip("the server is not installed");', reported: false },
  { path: "a.ts", line: 'test("a", { skip: true }, run);', reported: true },
  { path: "a.ts", line: "test('a', { skip: missing && 'the server is not installed' }, run);", reported: false },
  { path: "a.ts", line: "// oxlint-disable-next-line no-eval", reported: true },
  { path: "a.ts", line: "// oxlint-disable-next-line no-eval -- the text is ours", reported: false },
  { path: "a.py", line: "import a  # noqa: F401", reported: true },
  { path: "a.json", line: '"https://registry.npmjs.org/a"', reported: true },
  { path: "a.md", line: "pip install -i https://pypi.org/simple", reported: true },
  { path: "a.ts", line: 'read("/work/main/a")', reported: true },
  { path: "a.ts", line: "cd /tmp/bash_jobs.0", reported: true },
  { path: "a.sh", line: "cd /root/a", reported: true },
  { path: "a.ts", line: 'join(temporary, "tree/root/a", "/workspace/a")', reported: false },
  { path: "test/a.test.ts", line: "registerHooks({ load });", reported: true },
  { path: "test/e2e/own-sources.ts", line: "registerHooks({ load });", reported: true },
  { path: "test/support/mutation/preload.ts", line: "registerHooks({ load });", reported: false },
  {
    path: "test/a.ts",
    line: '{ file: "packages/gate/src/ledger/history/pin.ts", from: "1000", to: "0" },',
    reported: true,
  },
  { path: "test/a.ts", line: '{ file: "packages/a/src/ledger/pin.ts", from: /1000/ },', reported: true },
  { path: "bench/a.ts", line: 'readFileSync(join(root, "verify/a.mjs"), "utf8").replace("need(", "")', reported: true },
  { path: "test/a.ts", line: 'readFileSync("c.yaml", "utf8").replace("usd", "eur")', reported: false },
];

suite("the habits of the repository", () => {
  test("the list of tracked files includes the package files and this test", () => {
    const paths = new Set(tracked.map(({ path }) => path));
    for (const path of ["package.json", "package-lock.json", "test/repository/tidy.test.ts"])
      assert.ok(paths.has(path), path);
  });

  test("no line breaks a rule about lines", () => {
    assert.deepEqual(brokenLines(byHand), []);
  });

  test("no lock file, vector or generated file names the host of a package registry", () => {
    const hosts = lineRules.filter(({ fault }) => fault.includes("registry"));
    const machineFiles = tracked.filter(({ path }) => notByHand.test(path));
    assert.deepEqual(brokenLines(machineFiles, hosts), []);
  });

  control("positive control: a line that breaks a rule is noticed, and a correct line passes", () => {
    for (const { path, line, reported } of doctoredLines) {
      assert.equal(brokenLines([{ path, text: line }]).length, reported ? 1 : 0, `${path}: ${line}`);
    }
  });

  control("positive control: each rule about lines notices at least one bad line", () => {
    const faults = doctoredLines.flatMap(({ path, line }) => brokenLines([{ path, text: line }]));
    const silent = lineRules.filter(({ fault }) => !faults.some((each) => each.endsWith(fault)));
    assert.deepEqual(silent, []);
  });

  for (const { title, check, files, doctored, reported } of checks) {
    test(title, () => assert.deepEqual(check(files), []));
    control(`positive control: a breach of "${title}" is noticed`, () =>
      assert.equal(check(doctored).length, reported, check(doctored).join("\n")),
    );
  }
});
