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
    linesOf(history, { format, first, last: last ?? history.rows }, written, (row) => progress.at(row)),
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

interface Wanted {
  readonly format: ReadableFormat;
  readonly first: number;
  readonly last: number;
}

async function* linesOf(
  history: LedgerHistory,
  { format, first, last }: Wanted,
  written: { rows: number },
  passed: (row: number) => void,
): AsyncGenerator<string> {
  if (format === "csv") yield csvLine(readableFields);
  for await (const slice of first <= last ? history.scan(first) : []) {
    const rows = slice.filter(({ seq }) => seq <= last);
    if (rows.length > 0) yield rows.map(format === "csv" ? csvOf : jsonOf).join("");
    written.rows += rows.length;
    passed(rows.at(-1)?.seq ?? last);
    if (rows.length < slice.length) return;
  }
}

const readableFields = [
  "seq",
  "at",
  "act",
  "key",
  "session",
  "tool",
  "verdict",
  "answered",
  "mode",
  "rule",
  "reason",
  "contract",
  "hash",
  "erased",
] as const;

type ReadableRow = Readonly<Record<(typeof readableFields)[number], string | number | null | readonly string[]>>;

function csvOf(row: StoredRow): string {
  const fields = readable(row);
  return csvLine(readableFields.map((name) => cell(fields[name])));
}

function cell(value: ReadableRow[keyof ReadableRow]): string {
  return typeof value === "object" ? (value ?? []).join(" ") : String(value);
}

/**
 * Input and facts are the received texts, with digits and escapes unchanged. If the input was not stored whole, it is
 * null, and `input_cut` has its size, beginning and digest. `sent_as` is the alias under which a call was sent.
 */
function jsonOf(row: StoredRow): string {
  const fields = readable(row);
  const [input, platform] = (["input", "platform"] as const).map((name) => partText(row.evidence, name) ?? "null");
  const cut = fields.act === null ? readCutInput(row.evidence) : undefined;
  const leaf = parseLeaf(row.leaf);
  const sentAs = leaf && readCall(leaf, row.evidence)?.alias;
  const alias = sentAs === undefined ? "" : `"sent_as":${JSON.stringify(sentAs)},`;
  const inputs = cut === undefined ? `"input":${input}` : `"input":null,"input_cut":${JSON.stringify(cut)}`;
  return `${JSON.stringify(fields).slice(0, -1)},${alias}${inputs},"platform":${platform}}\n`;
}

/** The readable fields of a row, from its leaf and from disclosures whose digests are recomputed. */
function readable({ seq, leaf: text, evidence }: StoredRow): ReadableRow {
  const leaf = parseLeaf(text);
  if (leaf === undefined || evidenceDigest(evidence) !== leaf.evidence)
    throw new LedgerRefused(`row ${seq} was changed after it was written: run \`svc-gate verify\``);
  const call = readCall(leaf, evidence);
  const reason = partText(evidence, "reason");
  return {
    seq,
    at: new Date(leaf.at).toISOString(),
    act: leaf.act,
    key: leaf.key,
    session: call?.session_id ?? null,
    tool: call?.tool ?? leaf.tool,
    verdict: leaf.verdict,
    answered: leaf.answered,
    mode: leaf.mode,
    rule: leaf.rule,
    reason: reason === undefined ? null : (JSON.parse(reason) as string),
    contract: leaf.contract,
    hash: leafHash(text),
    erased: missingParts(evidence),
  };
}
