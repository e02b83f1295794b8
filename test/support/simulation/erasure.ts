import type { Disk } from "./disk.ts";
import type { Outside } from "./outside.ts";
import { disclosuresOf, leafOf, part, type Row } from "./rows.ts";

/** The parts of a check's evidence that may be erased. */
const erasable = ["call", "input", "outcome", "platform", "reason"];

/**
 * Checks that the missing parts are exactly those that rows list as erased: a row and the erasures that it lists became
 * durable together. An erasure that was confirmed is permanent.
 */
export function erasureProblem(rows: readonly Row[], { erased }: Outside): string | undefined {
  const said = new Map<string, number>();
  for (const { seq, name, by } of rows.flatMap(saidBy(rows))) said.set(`${seq} ${name}`, by);
  for (const row of rows) {
    const there = disclosuresOf(row);
    for (const name of erasable) {
      const [by, isThere] = [said.get(`${row.seq} ${name}`), there.has(name)];
      if (isThere && erased.has(`${row.seq} ${name}`))
        return `LOST: ${name} of row ${row.seq} was erased, and is there`;
      if (isThere && by !== undefined)
        return `row ${by} says that ${name} of row ${row.seq} is erased, and it is there`;
      if (!isThere && by === undefined)
        return `${name} of row ${row.seq} is missing, and no row says that it was erased`;
    }
    const isFound = row.session !== null || row.tool !== "";
    if (!there.has("call") && isFound) return `row ${row.seq} has lost its call, and is found by it`;
  }
  return undefined;
}

interface Said {
  readonly seq: number;
  readonly name: string;
  /** The row that lists it. */
  readonly by: number;
}

/** Skips rows of administrative events. */
function saidBy(rows: readonly Row[]): (row: Row) => readonly Said[] {
  return (row) => {
    const { act, seq: by } = leafOf(row);
    if (act !== "erase") return [];
    const body = part(row, "input") as {
      readonly parts: readonly string[];
      readonly rows: readonly [number, number][];
    };
    return body.rows.flatMap(([from, to]) =>
      rows
        .slice(from - 1, to)
        .filter((each) => leafOf(each).kind === "check")
        .flatMap(({ seq }) => body.parts.map((name) => ({ seq, name, by }))),
    );
  };
}

/** Returns the missing parts of some rows, as texts that were in them and are in no row now. */
export function forgotten(rows: readonly Row[], { texts }: Outside, keys: Iterable<string>): readonly Forgotten[] {
  const there = new Map(rows.map((row) => [row.seq, disclosuresOf(row)]));
  const all = rows.map(({ evidence, session }) => `${evidence} ${session}`).join("\n");
  return [...keys].flatMap((key) => {
    const [seq = "", name = ""] = key.split(" ");
    if (there.get(Number(seq))?.has(name) !== false) return [];
    return (texts.get(key) ?? [])
      .filter((text) => !all.includes(text))
      .map((text) => ({ what: `${name} of row ${seq}`, bytes: Buffer.from(text) }));
  });
}

interface Forgotten {
  readonly what: string;
  readonly bytes: Buffer;
}

/** Returns the visible part of a text in base64: its whole groups of three bytes. */
export function inBase64(text: string, disclosure: string): string {
  const from = Buffer.from(disclosure, "base64url").indexOf(text);
  return disclosure.slice(Math.ceil(from / 3) * 4, Math.floor((from + text.length) / 3) * 4);
}

/** Returns the positions on the disk that still contain an erased text. */
export function remainsProblem(disk: Disk, texts: readonly Forgotten[], when: string): string | undefined {
  for (const [file, content] of disk.contents()) {
    const found = texts.find(({ bytes }) => content.includes(bytes));
    if (found !== undefined) return `bytes of ${found.what} are in ${file} ${when}`;
  }
  return undefined;
}
