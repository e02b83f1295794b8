/**
 * Writes or reads spec/vectors/exports: exports as folders, and every case as its difference from one of them.
 *
 *     node test/support/exports/vectors.ts --write
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { exportCases } from "./cases.ts";
import { cutInputs } from "./cut-inputs.ts";
import type { Files } from "./fixture.ts";
import { bases, type ExportCase, type Expected } from "./ground.ts";
import { proofCases } from "./proofs.ts";

export const vectorFolder: string = fileURLToPath(new URL("../../../spec/vectors/exports", import.meta.url));

/** One step from a base to a case. */
type Change =
  | { readonly remove: string }
  /** The first bytes of a file of the base, under another name. */
  | { readonly copy: string; readonly to: string; readonly bytes: number }
  /** Replaces `cut` bytes at `at` by those of `put`, in base64; a missing file is empty. */
  | { readonly edit: string; readonly at: number; readonly cut: number; readonly put: string };

export interface Vector {
  readonly name: string;
  readonly base: string;
  readonly keys: readonly string[];
  readonly witnesses: readonly string[];
  readonly expected: Expected;
  readonly changes: readonly Change[];
}

/** Returns the text of cases.json. */
export function vectorsText(): string {
  const about =
    "Exports that hold, and exports that do not. Each is a copy of the folder `base` with `changes` made to it, in order: " +
    "`remove` a file; `copy` the first `bytes` bytes of one of the base's files; in `edit`, `cut` bytes from `at` on are replaced by " +
    "`put`, base64 (a file that is not there is empty). Then it is verified with `keys` and `witnesses`. " +
    "Written by `node test/support/exports/vectors.ts --write`, from test/support/exports/cases.ts.";
  const lines = exportCases.map((each) => JSON.stringify(vectorOf(each)));
  return `{"about":${JSON.stringify(about)},\n"cases":[\n${lines.join(",\n")}\n]}\n`;
}

/** Returns the text of proofs.json. */
export function proofsText(): string {
  const about =
    "Files .tlog-proof that hold, and that do not: `text` is verified with `keys`; of one that holds, `leaf_seq` is its row. " +
    "Written by `node test/support/exports/vectors.ts --write`, from test/support/exports/proofs.ts.";
  const lines = proofCases.map(({ name, text, keys, expected }) => JSON.stringify({ name, text, keys, expected }));
  return `{"about":${JSON.stringify(about)},\n"cases":[\n${lines.join(",\n")}\n]}\n`;
}

/** Returns the text of cut-inputs.json. */
export function cutInputsText(): string {
  const about =
    "Inputs that a gate did not keep whole: `value` is the value of the part `input` for a call that sent `input`, whose sensitive " +
    "members are `sensitive`. Row `row` of the folder `cut` has it. " +
    "Written by `node test/support/exports/vectors.ts --write`, from test/support/exports/cut-inputs.ts.";
  return `{"about":${JSON.stringify(about)},\n"cases":[\n${cutInputs.map((each) => JSON.stringify(each)).join(",\n")}\n]}\n`;
}

function vectorOf({ name, files, keys, witnesses, expected }: ExportCase): Vector {
  const tried = [...bases].map(([base, from]) => ({ base, changes: changesFrom(from, files) }));
  const [nearest] = tried.toSorted((a, b) => JSON.stringify(a.changes).length - JSON.stringify(b.changes).length);
  if (nearest === undefined) throw new Error("the case has no base");
  return { name, base: nearest.base, keys, witnesses, expected, changes: nearest.changes };
}

function changesFrom(base: Files, files: Files): readonly Change[] {
  const made = [...files].flatMap(([path, bytes]): readonly Change[] => {
    const before = base.get(path);
    if (before?.equals(bytes) === true) return [];
    const longer = [...base].find(([, other]) => bytes.length > 40 && other.subarray(0, bytes.length).equals(bytes));
    if (before === undefined && longer !== undefined) return [{ copy: longer[0], to: path, bytes: bytes.length }];
    return [{ edit: path, ...replaced(before ?? Buffer.alloc(0), bytes) }];
  });
  const gone = [...base.keys()].filter((path) => !files.has(path)).map((path) => ({ remove: path }));
  return [...made, ...gone];
}

function replaced(from: Buffer, to: Buffer): { readonly at: number; readonly cut: number; readonly put: string } {
  const shorter = Math.min(from.length, to.length);
  let at = 0;
  while (at < shorter && from[at] === to[at]) at += 1;
  let same = 0;
  while (same < shorter - at && from.at(-1 - same) === to.at(-1 - same)) same += 1;
  return { at, cut: from.length - at - same, put: to.subarray(at, to.length - same).toString("base64") };
}

/** Returns the stored cases. */
export function readVectors(): readonly Vector[] {
  const { cases } = JSON.parse(readFileSync(join(vectorFolder, "cases.json"), "utf8")) as {
    readonly cases: readonly Vector[];
  };
  return cases;
}

/** Makes the folder of a case. */
export function writeVector({ base, changes }: Vector, folder: string): void {
  const from = join(vectorFolder, base);
  cpSync(from, folder, { recursive: true });
  for (const change of changes) {
    if ("remove" in change) rmSync(join(folder, change.remove));
    else if ("copy" in change)
      writeFile(join(folder, change.to), readFileSync(join(from, change.copy)).subarray(0, change.bytes));
    else {
      const file = join(folder, change.edit);
      const before = existsSync(file) ? readFileSync(file) : Buffer.alloc(0);
      const { at, cut, put } = change;
      writeFile(file, Buffer.concat([before.subarray(0, at), Buffer.from(put, "base64"), before.subarray(at + cut)]));
    }
  }
}

function writeFile(file: string, bytes: Buffer): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, bytes);
}

/** Returns the files below a folder in the form of a case. */
export function filesOf(folder: string): Files {
  const paths = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    paths.map(({ parentPath, name }) => {
      const file = join(parentPath, name);
      return [file.slice(folder.length + 1), readFileSync(file)];
    }),
  );
}

function writeVectors(): void {
  rmSync(vectorFolder, { recursive: true, force: true });
  for (const [base, files] of bases)
    for (const [path, bytes] of files) writeFile(join(vectorFolder, base, path), bytes);
  writeFileSync(join(vectorFolder, "cases.json"), vectorsText());
  writeFileSync(join(vectorFolder, "proofs.json"), proofsText());
  writeFileSync(join(vectorFolder, "cut-inputs.json"), cutInputsText());
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv[2] !== "--write") throw new Error("usage: node test/support/exports/vectors.ts --write");
  writeVectors();
}
