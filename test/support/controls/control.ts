import { AsyncLocalStorage } from "node:async_hooks";
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { test, type TestContext, type TestOptions } from "node:test";
import { getCallSites } from "node:util";

/** The variable with the folder in which tools/test.ts and the tests of a run tell each other about controls. */
export const folderVariable = "TEST_CONTROLS";

/** The file in that folder with the controls that this run does not repeat: their titles, by the test's file. */
export const freshName = "fresh.json";

/** Why a control is skipped that would prove again what it proved before. */
export const freshReason = "fresh: nothing that it depends on has changed since it noticed its fault";

/** What one process reports about a control, as one line of JSON in that folder. */
export interface Report {
  readonly file: string;
  readonly title: string;
  readonly state: "fresh" | "noticed" | "not run";
  /** The files in which the control planted a fault. */
  readonly mutated: readonly string[];
}

type Body = (t: TestContext) => unknown;

interface Control {
  readonly title: string;
  readonly mutated: Set<string>;
  state: Report["state"];
}

const folder = process.env[folderVariable];
const file = posix(process.argv[1] ?? "");
const fresh = new Set(folder === undefined ? [] : freshTitles(folder));
const controls = new Map<string, Control>();
const running = new AsyncLocalStorage<Control>();
/** Files that were changed outside a control, such as in a hook: they count for each control of the test's file. */
const mutatedForAll = new Set<string>();

/**
 * Registers a positive control: a test that plants a fault and passes if the fault is noticed. It proves the tests, not
 * the product. A run skips it while everything that it depends on is as it was when it last noticed its fault;
 * CONTRIBUTING.md says how.
 */
export function control(title: string, ...[options, body]: [Body] | [TestOptions, Body]): void {
  const [given, run] = typeof options === "function" ? [{}, options] : [options, body as Body];
  const name = ownName(title);
  const isFresh = fresh.has(name);
  const own: Control = { title: name, state: isFresh ? "fresh" : "not run", mutated: new Set() };
  controls.set(name, own);
  const tags = [...(given.tags ?? []), placeTag()];
  void test(title, { ...given, tags, ...(isFresh && { skip: freshReason }) }, (t) =>
    running.run(own, async () => {
      await run(t);
      own.state = "noticed";
    }),
  );
}

/** For Node, each control is in this file. The tag has the place where `control` was called. */
function placeTag(): string {
  const { lineNumber = 1, columnNumber = 1 } = getCallSites(3)[2] ?? {};
  return `at:${lineNumber}:${columnNumber}`;
}

/** Gives an event of Node's runner the place where the control was called, for the list of failed tests. */
export function correctPlace(event: { readonly entryFile?: string; readonly tags?: readonly string[] }): void {
  const place = event.tags?.map((tag) => /^at:(\d+):(\d+)$/.exec(tag)).find((found) => found !== null);
  if (place === undefined) return;
  Object.assign(event, { file: event.entryFile, line: Number(place[1]), column: Number(place[2]) });
}

/** Notes that the control that runs now changes this file of the repository. */
export function noteMutated(path: string): void {
  (running.getStore()?.mutated ?? mutatedForAll).add(posix(path));
}

/** Two controls of a file may have one title: the second is called `title (2)`. */
function ownName(title: string): string {
  for (let count = 1; ; count += 1) {
    const name = count === 1 ? title : `${title} (${count})`;
    if (!controls.has(name)) return name;
  }
}

function posix(path: string): string {
  return relative(process.cwd(), path).split(sep).join("/");
}

function freshTitles(place: string): readonly string[] {
  const list = join(place, freshName);
  if (!existsSync(list)) return [];
  return (JSON.parse(readFileSync(list, "utf8")) as Readonly<Record<string, readonly string[]>>)[file] ?? [];
}

if (folder !== undefined)
  process.once("exit", () => {
    const reports = [...controls.values()].map(({ title, state, mutated }) => {
      const report: Report = { file, title, state, mutated: [...new Set([...mutated, ...mutatedForAll])].toSorted() };
      return `${JSON.stringify(report)}\n`;
    });
    appendFileSync(join(folder, `${process.pid}.jsonl`), reports.join(""));
  });
