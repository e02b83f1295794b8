import { createHash } from "node:crypto";
import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freshName, type Report } from "../../test/support/controls/control.ts";
import { Inputs, isKept, keyOf, lockFile, readLock, writeLock, type Lock } from "../../test/support/controls/lock.ts";

/** What the lock said before a run. */
export interface Prepared {
  /** Where the run and its tests tell each other about controls. */
  readonly folder: string;
  /** Draws a tenth of the fresh controls, which then run too. A stale control that does not run then fails the run. */
  readonly seed: string | undefined;
  readonly fresh: ReadonlySet<string>;
  /** Files of documents and deployment that need not run. */
  readonly leftOut: readonly string[];
  readonly startedMs: number;
}

/** How tests ended, by file and title. */
export interface Ends {
  readonly failed: ReadonlySet<string>;
  readonly skipped: ReadonlySet<string>;
  /** The files that ended without a failure. */
  readonly passedFiles: ReadonlySet<string>;
}

export interface Judged {
  readonly lines: readonly string[];
  readonly failed: boolean;
}

/**
 * Tells the tests which controls are fresh. Stale is a control without a line in the lock, or one that depends on
 * something that has changed since.
 */
export function prepareControls(
  folder: string,
  { seed, files, all }: { readonly seed: string | undefined; readonly files: readonly string[]; readonly all: boolean },
): Prepared {
  const startedMs = Date.now();
  const inputs = new Inputs();
  const known = [...currentLock().values()].filter(({ file }) => files.includes(file));
  const fresh = known.filter((line) => inputs.isFresh(line));
  const skipped = all ? [] : fresh.filter((line) => seed === undefined || !isDrawn(seed, keyOf(line)));
  const byFile = Map.groupBy(skipped, ({ file }) => file);
  const titles = [...byFile].map(([file, lines]) => [file, lines.map(({ title }) => title)] as const);
  writeFileSync(join(folder, freshName), JSON.stringify(Object.fromEntries(titles)));
  const ofFile = Map.groupBy(known, ({ file }) => file);
  const leftOut = [...byFile].flatMap(([file, lines]) =>
    lines.some(({ title }) => title === "") && lines.length === ofFile.get(file)?.length ? [file] : [],
  );
  return { folder, seed, startedMs, fresh: new Set(fresh.map(keyOf)), leftOut };
}

/** Writes to the lock which controls noticed their faults, and says what ran and what did not. */
export function judgeControls(prepared: Prepared, ends: Ends): Judged {
  const reports = globSync(join(prepared.folder, "*.jsonl")).flatMap(reportsIn);
  const all = [...reports, ...reportsOfFiles(ends)];
  const text = writeLock(changedLock(currentLock(), all, prepared, ends));
  if (!existsSync(lockFile) || readFileSync(lockFile, "utf8") !== text) writeFileSync(lockFile, text);
  const ran = reports.filter((report) => hasNoticed(report, ends));
  const drawn = ran.filter((report) => prepared.fresh.has(keyOf(report)));
  const notRun = reports.filter(({ state, ...key }) => state === "not run" && !prepared.fresh.has(keyOf(key)));
  const skipped = reports.filter(({ state }) => state === "fresh").length;
  const counts = `${skipped} fresh, ${ran.length - drawn.length} stale that noticed their fault`;
  const seed = prepared.seed === undefined ? "" : ` (CONTROLS_SEED=${prepared.seed})`;
  const mustRun = prepared.seed !== undefined && notRun.length > 0;
  const why = mustRun
    ? "never ran as they are now: run them where they can run, and commit test/controls.lock"
    : "did not run";
  return {
    failed: mustRun,
    lines: [
      `controls: ${counts}, ${drawn.length} fresh that ran again${seed}, ${notRun.length} stale that did not run`,
      ...(notRun.length > 0 ? [`these controls ${why}:`] : []),
      ...notRun.map(({ file, title }) => `  ${file}: ${title}`),
      `${prepared.leftOut.length} files of documents and deployment are fresh: nothing that they read has changed`,
    ],
  };
}

/** A whole file is kept if each of its tests ran and passed. */
function reportsOfFiles({ passedFiles, skipped }: Ends): readonly Report[] {
  const files = [...passedFiles].filter(
    (file) => isKept(file) && ![...skipped].some((key) => key.startsWith(`${file} `)),
  );
  return files.map((file) => ({ file, title: "", state: "noticed", mutated: [] }));
}

/** One control in ten, drawn from the seed. */
function isDrawn(seed: string, key: string): boolean {
  return createHash("sha256").update(`${seed} ${key}`).digest().readUInt32BE() % 10 === 0;
}

export function currentLock(): Lock {
  return readLock(existsSync(lockFile) ? readFileSync(lockFile, "utf8") : "");
}

function reportsIn(path: string): readonly Report[] {
  const lines = readFileSync(path, "utf8").split("\n");
  return lines.filter(Boolean).map((line) => JSON.parse(line) as Report);
}

/** The second control of one title has a number, which the runner of the tests does not know. */
function ended(keys: ReadonlySet<string>, report: Report): boolean {
  return keys.has(keyOf(report)) || keys.has(keyOf(report).replace(/ \(\d+\)$/, ""));
}

function hasNoticed(report: Report, { failed, skipped }: Ends): boolean {
  return report.state === "noticed" && !ended(failed, report) && !ended(skipped, report);
}

function changedLock(lock: Lock, reports: readonly Report[], { startedMs }: Prepared, ends: Ends): Lock {
  const inputs = new Inputs();
  const registered = new Set(reports.map(keyOf));
  const isGone = (file: string, key: string): boolean =>
    !existsSync(file) || (ends.passedFiles.has(file) && !registered.has(key));
  const kept = new Map([...lock].filter(([key, { file }]) => !isGone(file, key)));
  for (const report of reports) {
    const { file, title, mutated } = report;
    if (ended(ends.failed, report)) kept.delete(keyOf(report));
    const digest = inputs.digestOf(report);
    // What changed during the run may have been read before or after it changed.
    if (digest === undefined || !hasNoticed(report, ends) || inputs.changedSince(startedMs, report)) continue;
    kept.set(keyOf(report), { file, title, mutated, digest });
  }
  return kept;
}
