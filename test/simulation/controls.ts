import type { Defect } from "./disk.ts";
import type { Edit } from "./sources.ts";

/** A thing that keeps the promises, taken away. The simulation must notice that it is gone. */
export interface Control {
  readonly name: string;
  readonly edits: readonly Edit[];
  readonly defect?: Defect;
  /** It shows in few histories: those that are made for what chance seldom hits upon. */
  readonly isRare?: boolean;
  /** It shows in what an operator does: each life has errands. */
  readonly isOfErrands?: boolean;
  /** What it is noticed by, at least once. */
  readonly noticed: RegExp;
}

const file = "ledger/stores/sqlite-file.ts";
const writer = "ledger/stores/sqlite-writer.ts";
const eraser = "ledger/stores/sqlite-erase.ts";
/** Rows that somebody knows of are gone, or all are. */
const lost = /LOST|rows are missing|is gone or empty/;

export const controls: readonly Control[] = [
  {
    name: "the disk says that it has flushed, and has not",
    edits: [],
    defect: { ignoresFlushes: true },
    noticed: lost,
  },
  {
    name: "a commit is not flushed",
    edits: [
      { file, from: "PRAGMA synchronous = FULL", to: "PRAGMA synchronous = OFF" },
      { file, from: '"wal 2"', to: '"wal 0"' },
    ],
    noticed: lost,
  },
  {
    name: "the answer leaves before the commit",
    edits: [
      {
        file: "ledger/turn.ts",
        from: "await store.commit(this.#rows, this.#effects, { inForce, signer, tree, erasures: this.#erasures });",
        to: "store.commit(this.#rows, this.#effects, { inForce, signer, tree }).catch(() => undefined);",
      },
    ],
    noticed: lost,
  },
  {
    name: "a flush that failed is tried again, and believed",
    edits: [],
    defect: { retriesFlushes: true },
    isRare: true,
    noticed: lost,
  },
  {
    name: "what a failed flush has left in the cache is built on",
    edits: [{ file, from: "flushAgain(folder, files.log);", to: "" }],
    isRare: true,
    noticed: /LOST|rows are missing|damaged/,
  },
  {
    name: "names that only the cache has are built on",
    edits: [{ file: "ledger/stores/sqlite-log.ts", from: 'flush(folder, "r");', to: "return;" }],
    isRare: true,
    noticed: /is not there/,
  },
  {
    name: "the first signing key is recorded before its name is flushed",
    edits: [{ file: "ledger/tree/signing-key.ts", from: "await flushFolder(dirname(file));", to: "" }],
    isRare: true,
    noticed: /is not there/,
  },
  {
    name: "the pin and the signed head are written before the flush",
    edits: [
      { file: "ledger/pin.ts", from: "const trailMs = 1000", to: "const trailMs = 0" },
      {
        file: "ledger/turn.ts",
        from: "await store.commit(this.#rows",
        to: "committed({ head: this.#head, leaf, tree: this.#tree, checkpoint: await signed }); await store.commit(this.#rows",
      },
    ],
    noticed: /a head over|the pin has seen|head pin has seen/,
  },
  {
    name: "the pin is forgotten",
    edits: [{ file: "ledger/pin.ts", from: "await writePin(pin, head);", to: "void writePin;" }],
    noticed: /the pin is at row/,
  },
  {
    name: "the tail is not verified at the start, and the disk spoils what it holds",
    edits: [
      {
        file: "ledger/opening.ts",
        from: "if (check.broken !== undefined)",
        to: "if (check.rows < 0 && check.broken !== undefined)",
      },
    ],
    defect: { spoils: "ledger.db" },
    noticed: /^(?:row \d+|the counter|after the crash: (?:SyntaxError|TypeError))/,
  },
  {
    name: "counters are written after the transaction of their rows",
    edits: [
      { file: writer, from: "for (const effect of effects) this.#addEffect(effect, false);", to: "" },
      {
        file: writer,
        from: "this.#meta = meta;\n    this.#asked.clear();",
        to: "for (const effect of effects) this.#addEffect(effect, false); this.#meta = meta; this.#asked.clear();",
      },
    ],
    noticed: /counter/,
  },
  {
    name: "a counter forgets what a call moved",
    edits: [{ file: writer, from: "addDecimals(before, amount);", to: "before;" }],
    noticed: /counter/,
  },
  {
    name: "a refused call is kept all the same",
    edits: [
      {
        file: writer,
        from: "this.#foldBack(logPagesMax);\n  }\n\n  /** What the log",
        to:
          "this.#foldBack(logPagesMax);\n" +
          'if (rows.length === 1 && rows[0]?.tool === "pay") throw new NotKept("disk-full", "not so");\n' +
          "  }\n\n  /** What the log",
      },
    ],
    noticed: /which was refused|UNIQUE constraint failed/,
  },
  {
    name: "parts are erased after the transaction of the row that says so",
    edits: [
      { file: writer, from: "for (const erasure of erasures) eraseParts(this.#database, erasure);", to: "" },
      {
        file: writer,
        from: "this.#meta = meta;\n    this.#asked.clear();",
        to: "for (const erasure of erasures) eraseParts(this.#database, erasure); this.#meta = meta; this.#asked.clear();",
      },
    ],
    isOfErrands: true,
    noticed: /is erased, and it is there/,
  },
  {
    name: "what is deleted stays in its page",
    edits: [{ file, from: "PRAGMA secure_delete = ON;", to: "PRAGMA secure_delete = OFF;" }],
    isOfErrands: true,
    noticed: /bytes of .* are in .*ledger\.db after|was erased, and is in .*ledger\.db$/,
  },
  {
    name: "the log keeps what was erased",
    edits: [{ file: eraser, from: "wal_checkpoint(TRUNCATE)", to: "wal_checkpoint(FULL)" }],
    isOfErrands: true,
    noticed: /bytes of .* are in .*ledger\.db-wal after|was erased, and is in .*ledger\.db-wal/,
  },
  {
    name: "the log is cut, and that is not flushed",
    edits: [{ file: eraser, from: "flushCut(folder, files.log);", to: "void flushCut;" }],
    isOfErrands: true,
    noticed: /bytes of .* are in .*ledger\.db-wal after it was said to be nowhere/,
  },
  {
    name: "a signing key has its name before it is flushed",
    edits: [
      {
        file: "ledger/tree/signing-key.ts",
        from: "await replaceFile(file, text);",
        to:
          'void replaceFile; const { rename, writeFile } = await import("node:fs/promises");' +
          "await writeFile(`${file}.new`, text); await rename(`${file}.new`, file);",
      },
    ],
    isOfErrands: true,
    noticed: /the signing key .* is not one or two private keys/,
  },
  {
    name: "the row of a rotation does not put its key on record",
    edits: [{ file: "gate/gate.ts", from: "await turn.commit(undefined, to);", to: "await turn.commit();" }],
    isOfErrands: true,
    noticed: /rotates the key|holds|is on record/,
  },
  {
    name: "heads of a rotation are signed by the new key alone",
    edits: [
      {
        file: "ledger/tree/signing-key.ts",
        from: "lines = this.#keys.map(",
        to: "lines = this.#keys.slice(0, 1).map(",
      },
    ],
    isOfErrands: true,
    noticed: /is not signed by the key on record/,
  },
];
