import { AsyncLocalStorage } from "node:async_hooks";
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { test, type TestContext, type TestOptions } from "node:test";
import { fileURLToPath } from "node:url";
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
  /** The test's file, from the repository's folder. */
  readonly file: string;
  readonly title: string;
  readonly mutated: Set<string>;
  state: Report["state"];
}

type Titles = Readonly<Record<string, readonly string[]>>;

const folder = process.env[folderVariable];
const fresh = folder === undefined ? {} : freshIn(folder);
const controls: Control[] = [];
const running = new AsyncLocalStorage<Control>();
/** Files that were changed outside a control, such as in a hook: they count for each control of the process. */
const mutatedForAll = new Set<string>();

/**
 * Registers a positive control: a test that plants a fault and passes if the fault is noticed. It proves the tests, not
 * the product. A run skips it while everything that it depends on is as it was when it last noticed its fault;
 * CONTRIBUTING.md says how.
 */
export function control(title: string, ...[options, body]: [Body] | [TestOptions, Body]): void {
  const [given, run] = typeof options === "function" ? [{}, options] : [options, body as Body];
  const [location, file] = locateCall();
  const name = ownName(file, title);
  const isFresh = fresh[file]?.includes(name) === true;
  const own: Control = { file, title: name, state: isFresh ? "fresh" : "not run", mutated: new Set() };
  controls.push(own);
  const tags = [...(given.tags ?? []), `at:${location}`, `of:${file}`];
  void test(title, { ...given, tags, ...(isFresh && { skip: freshReason }) }, (t) =>
    running.run(own, async () => {
      await run(t);
      own.state = "noticed";
    }),
  );
}

/**
 * For Node, each control is in this file. Returns where `control` was called, as a line, a column and a path, and the
 * test's file: one process may run several files.
 */
function locateCall(): readonly [place: string, file: string] {
  const sites = getCallSites(50).slice(2);
  const { scriptName = "", lineNumber = 1, columnNumber = 1 } = sites[0] ?? {};
  const script = sites.find((site) => site.scriptName.endsWith(".test.ts"))?.scriptName ?? process.argv[1] ?? "";
  return [`${lineNumber}:${columnNumber}:${pathOf(scriptName)}`, posix(pathOf(script))];
}

function pathOf(script: string): string {
  return script.startsWith("file:") ? fileURLToPath(script) : script;
}

/** An event of Node's runner about a test. */
interface TestEvent {
  /** The file that the runner started. */
  readonly entryFile?: string;
  readonly tags?: readonly string[];
}

/** Gives an event the position where the control was called, for the list of failed tests. */
export function correctLocation(event: TestEvent): void {
  const [, line, column, path] = tagged(event, /^at:(\d+):(\d+):(.*)$/) ?? [];
  if (path !== undefined) Object.assign(event, { file: path, line: Number(line), column: Number(column) });
}

/** Returns the file of a control, or else the file that the runner started, from the repository's folder. */
export function fileOf(event: TestEvent): string {
  return tagged(event, /^of:(.*)$/)?.[1] ?? posix(event.entryFile ?? "");
}

function tagged({ tags = [] }: TestEvent, pattern: RegExp): readonly string[] | undefined {
  return tags.map((tag) => pattern.exec(tag)).find((found) => found !== null) ?? undefined;
}

/** Notes that the control that runs now changes this file of the repository. */
export function noteMutated(path: string): void {
  (running.getStore()?.mutated ?? mutatedForAll).add(posix(path));
}

/** Two controls of a file may have one title: the second is called `title (2)`. */
function ownName(file: string, title: string): string {
  const known = controls.filter((each) => each.file === file).map((each) => each.title);
  for (let count = 1; ; count += 1) {
    const name = count === 1 ? title : `${title} (${count})`;
    if (!known.includes(name)) return name;
  }
}

function posix(path: string): string {
  return relative(process.cwd(), path).split(sep).join("/");
}

function freshIn(location: string): Titles {
  const list = join(location, freshName);
  return existsSync(list) ? (JSON.parse(readFileSync(list, "utf8")) as Titles) : {};
}

if (folder !== undefined)
  process.once("exit", () => {
    const reports = controls.map(({ file, title, state, mutated }) => {
      const report: Report = { file, title, state, mutated: [...new Set([...mutated, ...mutatedForAll])].toSorted() };
      return `${JSON.stringify(report)}\n`;
    });
    appendFileSync(join(folder, `${process.pid}.jsonl`), reports.join(""));
  });
