/**
 * Goal: no test fails only because the machine is busy. Whatever waits for something that works waits at least 20 seconds.
 * Method: the parse trees of the tests and of their helpers. A shorter wait says why: `// short wait: REASON`, on its line
 * or on the line before. Positive controls: a text for each form of a wait.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { suite, test } from "node:test";
import { control } from "../support/controls/control.ts";
import { node, parse, walk, type Node } from "../support/mutation/tree.ts";
import { patienceMs } from "../support/patience.ts";
import { root, trackedPaths } from "../support/tracked.ts";

interface Wait {
  readonly at: number;
  readonly ms: number;
}

const helpers = /^(?:test|(?:adapters|clients)\/conformance)\/.*\.(?:ts|mjs|py)$/;
/** Simulated time does not pass on a clock. */
const simulated = /^test\/support\/(?:simulation|model|differential)\//;
const reason = /(?:\/\/|#) short wait: \w/;
const named = /^(?:timeout|timeout_ms|timeoutMs|patienceMs|\w+PatienceMs|lateMs|hungMs)$/;
const pauses = new Set(["setTimeout", "wait", "pause", "sleep"]);
const options = /(?<![\w-])--(?:timeout|wait) (?<seconds>\d+)(?!\d)/g;
const settings = /(?<!\w)timeout(?:(?<ms>Ms: ?|_ms=)|=)(?<value>\d[\d_]*(?:\.\d+)?)/g;

/** The value of a number as it is written; undefined for everything else. */
function numberOf(value: unknown): number | undefined {
  const given = node(value);
  return given?.type === "Literal" && typeof given["value"] === "number" ? given["value"] : undefined;
}

const nodesOf = (value: unknown): readonly Node[] =>
  Array.isArray(value) ? value.flatMap((each) => node(each) ?? []) : [];

function nameOf(value: unknown): string {
  const given = node(value);
  const name = given?.["name"] ?? given?.["value"];
  return typeof name === "string" ? name : "";
}

function has(within: Node, isIt: (each: Node) => boolean): boolean {
  let found = false;
  walk(within, (each) => (found ||= isIt(each)));
  return found;
}

/** `performance.now()` and `Date.now()`. */
const isClock = (each: Node): boolean =>
  each.type === "MemberExpression" &&
  nameOf(each["property"]) === "now" &&
  ["performance", "Date"].includes(nameOf(each["object"]));

/** Each form of a wait with a fixed length. @returns the length in milliseconds */
const forms: readonly ((each: Node) => number | undefined)[] = [
  function clientOption({ type, key, id, value, init }) {
    const isNamed = (type === "Property" || type === "VariableDeclarator") && named.test(nameOf(key ?? id));
    return isNamed ? numberOf(value ?? init) : undefined;
  },
  function signalOrPage({ type, callee, arguments: given }) {
    const property = nameOf(node(callee)?.["property"]);
    const isLimit =
      property === "setDefaultTimeout" ||
      (property === "timeout" && nameOf(node(callee)?.["object"]) === "AbortSignal");
    return type === "CallExpression" && isLimit ? numberOf(nodesOf(given)[0]) : undefined;
  },
  function raceWithPause({ type, callee, arguments: given }) {
    if (type !== "CallExpression" || nameOf(node(callee)?.["property"]) !== "race") return undefined;
    // A shorter pause is the step of a poll.
    const limits = nodesOf(given).flatMap((each) => pausesIn(each).filter((ms) => ms >= 100));
    return limits.length === 0 ? undefined : Math.max(...limits);
  },
  function deadline({ type, operator, left, right }) {
    const from = node(left);
    const isNow = isClock(node(from?.["callee"]) ?? { type: "", start: 0, end: 0 });
    return type === "BinaryExpression" && operator === "+" && isNow ? numberOf(right) : undefined;
  },
  function elapsed({ type, operator, left, right }) {
    const taken = node(left);
    const isBound =
      type === "BinaryExpression" && ["<", "<="].includes(String(operator)) && taken?.["operator"] === "-";
    return isBound && taken !== undefined && has(taken, isClock) ? numberOf(right) : undefined;
  },
  function boundedPolls({ type, test: condition, body }) {
    const [checked, work] = [node(condition), node(body)];
    if (type !== "ForStatement" || checked === undefined || work === undefined) return undefined;
    const [pause] = pausesIn(work);
    const bounds: number[] = [];
    walk(checked, ({ operator, right }) => bounds.push(operator === "<" ? (numberOf(right) ?? 0) : 0));
    const most = Math.max(...bounds);
    return pause === undefined || most === 0 ? undefined : most * pause;
  },
];

/** The lengths of the pauses in a part of a text: `wait(50)`, `setTimeout(resolve, 50)`. */
function pausesIn(within: Node): readonly number[] {
  const found: number[] = [];
  walk(within, ({ type, callee, arguments: given }) => {
    if (type !== "CallExpression" || !pauses.has(nameOf(callee))) return;
    const ms = nodesOf(given).flatMap((each) => numberOf(each) ?? []);
    found.push(...ms.slice(0, 1));
  });
  return found;
}

/** The options of commands and of clients in a text: `--timeout 5`, `["--timeout", "5"]`, `timeout=2.0`. */
function textWaits(text: string): readonly Wait[] {
  const plain = text.replaceAll(/"(?<word>--\w+)", "(?<value>\d+)"/g, " $<word> $<value>  ");
  const seconds = [...plain.matchAll(options)].map(({ index, groups }) => ({
    at: index,
    ms: Number(groups?.["seconds"]) * 1000,
  }));
  const given = [...text.matchAll(settings)].map(({ index, groups }) => {
    const value = groups?.["value"] ?? "";
    const isSeconds = groups?.["ms"] === undefined && (value.includes(".") || Number(value) < 1000);
    return { at: index, ms: Number(value.replaceAll("_", "")) * (isSeconds ? 1000 : 1) };
  });
  return [...seconds, ...given];
}

function treeWaits(text: string): readonly Wait[] {
  const found: Wait[] = [];
  walk(parse(text, "ts"), (each) => {
    const ms = forms.map((form) => form(each)).find((length) => length !== undefined);
    if (ms !== undefined) found.push({ at: each.start, ms });
  });
  return found;
}

/** The lines with a wait that is short and does not say why. */
function shortWaits(text: string, isPython = false): readonly string[] {
  const lines = text.split("\n");
  const waits = [...(isPython ? [] : treeWaits(text)), ...textWaits(text)].filter(({ ms }) => ms < patienceMs);
  const numbers = new Set(waits.map(({ at }) => text.slice(0, at).split("\n").length));
  return [...numbers]
    .toSorted((a, b) => a - b)
    .filter((number) => ![lines[number - 1], lines[number - 2]].some((line) => reason.test(line ?? "")))
    .map((number) => `${number}: ${(lines[number - 1] ?? "").trim()}`);
}

const short: readonly string[] = [
  "await page.getByText('a').waitFor({ timeout: 3000 });",
  "const patienceMs = 5_000;",
  "page.setDefaultTimeout(5000);",
  "await fetch(url, { signal: AbortSignal.timeout(1000) });",
  "await Promise.race([stream.ended, wait(2000).then(() => assert.fail('late'))]);",
  "const end = performance.now() + 5000;",
  "assert.ok(performance.now() - start < 1000);",
  "for (let n = 0; n < 50 && !isThere(); n += 1) await pause(50);",
  "for (let n = 0; n < 50; n += 1) await new Promise((resolve) => setTimeout(resolve, 50));",
  'run(["--timeout", "5"]);',
  "run(`hook --timeout 2`);",
  "const script = `SvcGate(url, { timeoutMs: 5000 })`;",
];

suite("how long tests wait", () => {
  test("a test or a helper waits at least 20 seconds for something that works, or says why not", () => {
    const self = "test/repository/waits.test.ts";
    const paths = trackedPaths().filter((path) => helpers.test(path) && !simulated.test(path) && path !== self);
    assert.ok(paths.length > 400, "the files are there");
    const faults = paths.flatMap((path) =>
      shortWaits(readFileSync(join(root, path), "utf8"), extname(path) === ".py").map((line) => `${path}:${line}`),
    );
    assert.deepEqual(faults, []);
  });

  for (const text of short)
    control(`positive control: it finds ${text}`, () => {
      assert.equal(shortWaits(text).length, 1);
      assert.deepEqual(shortWaits(`${text} // short wait: a reason`), []);
      assert.deepEqual(shortWaits(`// short wait: a reason\n${text}`), []);
    });

  control("positive control: it finds a client of Python", () => {
    assert.equal(shortWaits("gate = SvcGate(url, timeout=2.0)", true).length, 1);
    assert.deepEqual(shortWaits("gate = SvcGate(url, timeout=20.0)\nother(timeout=20_000)", true), []);
  });

  test("it accepts a long wait, a moment of the future and a plain loop", () => {
    const text = `const patienceMs = 20_000;
run(["--timeout", "20"], { timeout: 60_000 });
const end = performance.now() + 30_000;
while (!isThere()) await Promise.race([ended, pause(50)]);
await pause(approval.decide_by - Date.now() + 50);
for (let n = 0; n < 1000 && !isThere(); n += 1) await pause(20);
for (let n = 0; n < 5; n += 1) await check(n);`;
    assert.deepEqual(shortWaits(text), []);
  });
});
