import { createWriteStream } from "node:fs";
import { lstat, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { LedgerRefused } from "../../../gate/src/ledger/errors.ts";
import type { LedgerHistory } from "../../../gate/src/ledger/mod.ts";
import {
  evidenceDigest,
  leafHash,
  missingParts,
  parseLeaf,
  partText,
  readCall,
  readCutInput,
  type Leaf,
  type StoredRow,
} from "../../../core/src/record/entry/mod.ts";
import { io, BadInput, notWritten, type Outcome } from "../../../gate/src/cli/mod.ts";
import { csvLine } from "./csv.ts";
import { showExport } from "./show.ts";

export const readableFormats = ["csv", "jsonl"] as const;
export type ReadableFormat = (typeof readableFormats)[number];

export function isReadableFormat(text: string): text is ReadableFormat {
  return readableFormats.some((format) => format === text);
}

export interface ReadableOptions {
  readonly format: ReadableFormat;
  /** The first and the last row, both included. */
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly open: () => Promise<LedgerHistory>;
}

/** Writes the readable fields of receipts into a file, or to standard output if its name is `-`. */
export async function exportReadable(target: string, { format, from, to, open }: ReadableOptions): Promise<Outcome> {
  const first = readRow("--from", from) ?? 1;
  const last = readRow("--to", to);
  if (last !== undefined && first > last)
    throw new BadInput(`--from ${first} is after --to ${last}: no row is in between`);
  const file = target === "-" ? target : await fileOf(target, format);
  await using history = await open();
  using progress = showExport(last ?? history.rows);
  const written = { rows: 0 };
  const lines = Readable.from(
    formatReadableLines(history, { format, first, last: last ?? history.rows }, written, (row) => progress.at(row)),
  );
  try {
    if (file === "-") await pipeline(lines, io().stdout, { end: false });
    else await writeFile(lines, file);
  } catch (error) {
    // The reader has closed the pipe, as `head` does.
    if (file !== "-" || (error as NodeJS.ErrnoException).code !== "EPIPE") throw error;
  }
  return { exitCode: 0, text: file === "-" ? "" : `${file}: ${written.rows} receipts` };
}

function readRow(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^[1-9][0-9]{0,14}$/.test(text)) return Number(text);
  throw new BadInput(`${option} must be the number of a row, from 1, not "${text}"`);
}

/** For a folder, this is the file `receipts.csv` or `receipts.jsonl` in it. */
async function fileOf(target: string, format: ReadableFormat): Promise<string> {
  const isFolder = await stat(target).then(
    (found) => found.isDirectory(),
    () => false,
  );
  return isFolder ? join(target, `receipts.${format}`) : target;
}

/**
 * Writes a temporary file, for its owner only, and renames it once it is complete. A link, a device or a pipe is
 * written directly.
 */
async function writeFile(lines: Readable, file: string): Promise<void> {
  const isPlain = (await lstat(file).catch(() => undefined))?.isFile() ?? true;
  const written = isPlain ? `${file}.new` : file;
  try {
    await pipeline(lines, createWriteStream(written, { mode: 0o600, flush: isPlain }));
    if (isPlain) await rename(written, file);
  } catch (error) {
    if (isPlain) await rm(written, { force: true });
    throw (error as NodeJS.ErrnoException).syscall === undefined ? error : notWritten(file, error);
  }
}

interface ReadableRange {
  readonly format: ReadableFormat;
  readonly first: number;
  readonly last: number;
}

async function* formatReadableLines(
  history: LedgerHistory,
  { format, first, last }: ReadableRange,
  written: { rows: number },
  passed: (row: number) => void,
): AsyncGenerator<string> {
  if (format === "csv") yield csvLine(Object.keys(readableFields));
  for await (const slice of first <= last ? history.scan(first) : []) {
    const rows = slice.filter(({ seq }) => seq <= last);
    if (rows.length > 0) yield rows.map(format === "csv" ? csvOf : jsonOf).join("");
    written.rows += rows.length;
    passed(rows.at(-1)?.seq ?? last);
    if (rows.length < slice.length) return;
  }
}

/** A row with its leaf and its call, from disclosures whose digests are recomputed. */
interface ReadableRow extends Pick<StoredRow, "evidence" | "seq"> {
  readonly leaf: Leaf;
  readonly hash: string;
  readonly call: ReturnType<typeof readCall>;
}

type CsvCell = string | number | null | readonly string[];

/** The readable fields of a row, in their order. */
const readableFields: Readonly<Record<string, (row: ReadableRow) => CsvCell>> = {
  seq: ({ seq }) => seq,
  at: ({ leaf }) => new Date(leaf.at).toISOString(),
  act: ({ leaf }) => leaf.act,
  key: ({ leaf }) => leaf.key,
  session: ({ call }) => call?.session_id ?? null,
  tool: ({ call, leaf }) => call?.tool ?? leaf.tool,
  verdict: ({ leaf }) => leaf.verdict,
  answered: ({ leaf }) => leaf.answered,
  mode: ({ leaf }) => leaf.mode,
  rule: ({ leaf }) => leaf.rule,
  reason: ({ evidence }) => JSON.parse(partText(evidence, "reason") ?? "null") as string | null,
  contract: ({ leaf }) => leaf.contract,
  hash: ({ hash }) => hash,
  erased: ({ evidence }) => missingParts(evidence),
};

function csvOf(row: StoredRow): string {
  const read = readable(row);
  return csvLine(Object.values(readableFields).map((valueOf) => cell(valueOf(read))));
}

function cell(value: CsvCell): string {
  return typeof value === "object" ? (value ?? []).join(" ") : String(value);
}

/**
 * Input and facts are the received texts, with digits and escapes unchanged. If the input was not stored whole, it is
 * null, and `input_cut` has its size, start and digest. `sent_as` is the alias under which a call was sent.
 */
function jsonOf(row: StoredRow): string {
  const read = readable(row);
  const { call, evidence, leaf } = read;
  const fields = Object.fromEntries(Object.entries(readableFields).map(([name, valueOf]) => [name, valueOf(read)]));
  const [input, platform] = (["input", "platform"] as const).map((name) => partText(evidence, name) ?? "null");
  const cut = leaf.act === null ? readCutInput(evidence) : undefined;
  const alias = call?.alias === undefined ? "" : `"sent_as":${JSON.stringify(call.alias)},`;
  const inputs = cut === undefined ? `"input":${input}` : `"input":null,"input_cut":${JSON.stringify(cut)}`;
  return `${JSON.stringify(fields).slice(0, -1)},${alias}${inputs},"platform":${platform}}\n`;
}

function readable({ seq, leaf: text, evidence }: StoredRow): ReadableRow {
  const leaf = parseLeaf(text);
  if (leaf === undefined || evidenceDigest(evidence) !== leaf.evidence)
    throw new LedgerRefused(`row ${seq} was changed after it was written: run \`svc-gate verify\``);
  return { seq, evidence, leaf, hash: leafHash(text), call: readCall(leaf, evidence) };
}
