import { DatabaseSync } from "node:sqlite";

/**
 * The meaning of each byte of a SQLite file, by the file format (sqlite.org/fileformat2.html), as far as a small ledger
 * uses it. SQLite itself only gives the first page of each tree.
 */

/**
 * `unused` bytes are those that nobody reads by the format: between pointers and cells, in freed blocks, and fragments
 * of them.
 */
export type Part = "cell" | "file header" | "page header" | "pointers" | "unused";

export interface Region {
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
  readonly part: Part;
  /** The table or index. */
  readonly tree: string;
  /** For a cell of a table with row numbers. */
  readonly row: number | undefined;
  /** The offset of the first column's type, in such a cell. */
  readonly firstType: number | undefined;
}

/** @throws if the file has what a small ledger never has: overflow pages, free pages */
export function mapFile(file: string, bytes: Buffer): readonly Region[] {
  const regions: Region[] = [];
  for (const [tree, root] of roots(file)) walkTree({ bytes, tree, regions }, root);
  const sorted = regions.filter(({ from, to }) => to > from).toSorted((a, b) => a.from - b.from);
  for (const [index, { to }] of sorted.entries()) {
    const next = sorted[index + 1]?.from ?? bytes.length;
    if (next !== to) throw new Error(`bytes ${to} to ${next} are not known`);
  }
  return sorted;
}

interface Mapping {
  readonly bytes: Buffer;
  readonly tree: string;
  readonly regions: Region[];
}

const pageBytes = 8192;
const fileHeaderBytes = 100;

function roots(file: string): readonly (readonly [tree: string, page: number])[] {
  const database = new DatabaseSync(file, { readOnly: true });
  const found = database.prepare("SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0").all();
  database.close();
  return [["sqlite_schema", 1], ...found.map(({ name, rootpage }) => [String(name), Number(rootpage)] as const)];
}

/** 5: inner page of a table; 13: leaf of one; 2 and 10: the same of an index. */
function walkTree({ bytes, tree, regions }: Mapping, page: number): void {
  const base = (page - 1) * pageBytes;
  const header = base + (page === 1 ? fileHeaderBytes : 0);
  const nothing = { tree, row: undefined, firstType: undefined };
  const add = (part: Part, from: number, to: number): void => void regions.push({ from, to, part, ...nothing });
  if (page === 1) add("file header", 0, fileHeaderBytes);
  const type = bytes[header] ?? 0;
  const isInner = type === 2 || type === 5;
  const pointers = header + (isInner ? 12 : 8);
  const cells = bytes.readUInt16BE(header + 3);
  const content = base + bytes.readUInt16BE(header + 5);
  add("page header", header, pointers);
  add("pointers", pointers, pointers + 2 * cells);
  add("unused", pointers + 2 * cells, content);
  const used: Region[] = [];
  for (let cell = 0; cell < cells; cell += 1) {
    const from = base + bytes.readUInt16BE(pointers + 2 * cell);
    const { child, ...cellAt } = readCell(bytes, type, from);
    used.push({ from, part: "cell", tree, ...cellAt });
    if (child !== undefined) walkTree({ bytes, tree, regions }, child);
  }
  if (isInner) walkTree({ bytes, tree, regions }, bytes.readUInt32BE(header + 8));
  for (let block = bytes.readUInt16BE(header + 1); block !== 0; block = bytes.readUInt16BE(base + block))
    used.push({ from: base + block, to: base + block + 4, part: "page header", ...nothing });
  let at = content;
  for (const region of used.toSorted((a, b) => a.from - b.from)) {
    add("unused", at, region.from);
    regions.push(region);
    at = region.to;
  }
  add("unused", at, base + pageBytes);
}

interface Cell {
  readonly to: number;
  readonly row: number | undefined;
  readonly firstType: number | undefined;
  readonly child: number | undefined;
}

function readCell(bytes: Buffer, type: number, from: number): Cell {
  const child = type === 2 || type === 5 ? bytes.readUInt32BE(from) : undefined;
  const first = readVarint(bytes, child === undefined ? from : from + 4);
  if (type === 5) return { to: first.to, row: undefined, firstType: undefined, child };
  const second = type === 13 ? readVarint(bytes, first.to) : undefined;
  const local = type === 13 ? pageBytes - 35 : Math.floor(((pageBytes - 12) * 64) / 255) - 23;
  if (first.value > local) throw new Error(`the cell at ${from} goes on elsewhere`);
  const record = (second ?? first).to;
  const firstType = second === undefined ? undefined : readVarint(bytes, record).to;
  return { to: Math.max(record + first.value, from + 4), row: second?.value, firstType, child };
}

function readVarint(bytes: Buffer, from: number): { readonly value: number; readonly to: number } {
  let value = 0;
  for (let at = from; ; at += 1) {
    const byte = bytes[at] ?? 0;
    value = value * 128 + (byte & 127);
    if (byte < 128) return { value, to: at + 1 };
  }
}
