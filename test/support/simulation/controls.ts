import { decidesEarly } from "../faults/setup.ts";
import type { Mutation } from "../mutation/mutate.ts";
import type { Defect } from "./disk.ts";

/** A safeguard that the control removes. The simulation must notice its absence. */
export interface Control {
  readonly name: string;
  readonly mutations: readonly Mutation[];
  readonly defect?: Defect;
  /** True if only few histories show the defect. The test then runs histories that are made for rare events. */
  readonly isRare?: boolean;
  /** True if an operator's actions show the defect. Each life then has some actions. */
  readonly isOfErrands?: boolean;
  /** True if decisions show the defect. Each life then has many. */
  readonly isOfVotes?: boolean;
  /** True if repeats of checks show the defect. Each life then has many. */
  readonly isOfRepeats?: boolean;
  /** The fault that reports it, at least once. */
  readonly noticed: RegExp;
}

const addsEffects = "this.#addEffects(effects, false);";
const erasing = "eraseParts(this.#database, erasure);";
const keepsRows = "await store.commit(this.#rows, $$beside);";
/** Known rows are missing, or all rows are. */
const lost = /LOST|rows are missing|is gone or empty/;

export const controls: readonly Control[] = [
  {
    name: "a vote is answered before its row is durable",
    mutations: decidesEarly,
    isOfVotes: true,
    noticed: lost,
  },
  {
    name: "the row of a use is not written with the row of its check",
    mutations: [{ within: "BatchApprovals.finish", find: "uses.length + grants.length > 0", put: "false" }],
    isOfVotes: true,
    noticed: /no row names an approval for it|used the approval/,
  },
  {
    name: "the table of approvals is not written with the row of a use",
    mutations: [
      {
        within: "enact",
        find: "transaction.keepApproval(after);",
        put: 'if (after.status !== "used") transaction.keepApproval(after);',
      },
    ],
    isOfVotes: true,
    noticed: /does not follow from the rows before it|the approval of row/,
  },
  {
    name: "a recorded answer is written after the transaction of its row",
    mutations: [
      { within: "Writer.commit", find: "this.#repeats.keep(repeats);", put: "" },
      { within: "Writer.commit", find: "this.#meta = meta;", put: "this.#repeats.keep(repeats); $found" },
    ],
    isOfRepeats: true,
    noticed: /rows are of the repeats of/,
  },
  {
    name: "a recorded answer names the first row of its batch although approvals expired in it",
    mutations: [{ within: "decideBatch", find: "first + ahead + 1", put: "first + 1" }],
    isOfRepeats: true,
    isOfVotes: true,
    noticed: /was answered with/,
  },
  {
    name: "a recorded ALLOW outlives each act",
    mutations: [{ within: "endOfAllow", find: "!harmlessActs.has(act)", put: "false" }],
    isOfRepeats: true,
    noticed: /its answer did not end/,
  },
  {
    name: "the disk says that it has flushed the log, and has not",
    mutations: [],
    defect: { ignoresFlushes: "db-wal" },
    noticed: lost,
  },
  {
    name: "a commit is not flushed",
    mutations: [
      { within: "openForWriting", text: "synchronous = FULL", put: "synchronous = OFF" },
      { within: "openForWriting", find: '"wal 2"', put: '"wal 0"' },
    ],
    noticed: lost,
  },
  {
    name: "the answer leaves before the commit",
    mutations: [
      {
        within: "AppendTransaction.commit",
        find: keepsRows,
        put: "store.commit(this.#rows, $$beside).catch(() => undefined);",
      },
    ],
    noticed: lost,
  },
  {
    name: "a flush that failed is tried again, and believed",
    mutations: [],
    defect: { retriesFlushes: true },
    isRare: true,
    noticed: lost,
  },
  {
    name: "what a failed flush has left in the cache is built on",
    mutations: [{ within: "openForWriting", find: "flushAgain(folder, files.log);", put: "" }],
    isRare: true,
    noticed: /LOST|rows are missing|damaged/,
  },
  {
    name: "names that only the cache has are built on",
    mutations: [{ within: "flushAgain", find: 'flush(folder, "r")', put: "undefined" }],
    isRare: true,
    noticed: /is missing/,
  },
  {
    name: "the first signing key is recorded before its name is flushed",
    mutations: [{ within: "writeFirstKey", find: "await flushFolder(dirname(file));", put: "" }],
    isRare: true,
    noticed: /is missing/,
  },
  {
    name: "the pin and the signed head are written before the flush",
    mutations: [
      { within: "trailMs", value: "0" },
      {
        within: "AppendTransaction.commit",
        find: keepsRows,
        put: "committed({ head: this.#head, leaf, tree: this.#tree, checkpoint: await signed }); $found",
      },
    ],
    noticed: /a head over|the pin has seen|head pin has seen/,
  },
  {
    name: "the pin is forgotten",
    mutations: [{ within: "HeadPin.#write", find: "await writePin(pin, head);", put: "" }],
    noticed: /the pin is at row/,
  },
  {
    name: "the tail is not verified at the start, and the disk spoils what it holds",
    mutations: [{ within: "admit", find: "check.broken !== undefined", put: "false" }],
    defect: { spoils: "ledger.db" },
    noticed: /^(?:row \d+|the counter|after the crash: (?:SyntaxError|TypeError))/,
  },
  {
    name: "counters are written after the transaction of their rows",
    mutations: [
      { within: "Writer.commit", find: addsEffects, put: "" },
      { within: "Writer.commit", find: "this.#meta = meta;", put: `${addsEffects} $found` },
    ],
    noticed: /counter/,
  },
  {
    name: "a counter forgets what a call moved",
    mutations: [{ within: "RunningTotals.add", find: "addDecimals(before, amount)", put: "before" }],
    noticed: /counter/,
  },
  {
    name: "a refused call is kept all the same",
    mutations: [
      {
        within: "Writer.commit",
        last: `
          const kept = [...unpackRows(packed)];
          if (kept.length === 1 && kept[0]?.tool === "pay") throw new NotKept("disk-full", "not so");`,
      },
    ],
    noticed: /which was refused|UNIQUE constraint failed/,
  },
  {
    name: "parts are erased after the transaction of the row that says so",
    mutations: [
      { within: "Writer.commit", find: erasing, put: "" },
      { within: "Writer.commit", find: "this.#meta = meta;", put: `for (const erasure of erasures) ${erasing} $found` },
    ],
    isOfErrands: true,
    noticed: /is erased, and it is there/,
  },
  {
    name: "what is deleted stays in its page",
    mutations: [{ within: "openForWriting", text: "secure_delete = ON", put: "secure_delete = OFF" }],
    isOfErrands: true,
    noticed: /bytes of .* are in .*ledger\.db after|was erased, and is in .*ledger\.db$/,
  },
  {
    name: "the log keeps what was erased",
    mutations: [{ within: "scrub", text: "wal_checkpoint(TRUNCATE)", put: "wal_checkpoint(FULL)" }],
    isOfErrands: true,
    noticed: /bytes of .* are in .*ledger\.db-wal after|was erased, and is in .*ledger\.db-wal/,
  },
  {
    name: "the log is cut, and that is not flushed",
    mutations: [{ within: "scrub", find: "flushCut(folder, files.log);", put: "" }],
    isOfErrands: true,
    noticed: /bytes of .* are in .*ledger\.db-wal after it was said to be nowhere/,
  },
  {
    name: "a signing key has its name before it is flushed",
    mutations: [
      {
        within: "writeSigningKeys",
        find: "await replaceFile(file, text);",
        put:
          'const { rename, writeFile } = await import("node:fs/promises");' +
          "await writeFile(`${file}.new`, text); await rename(`${file}.new`, file);",
      },
    ],
    isOfErrands: true,
    noticed: /the signing key .* is not one or two private keys/,
  },
  {
    name: "the row of a rotation does not put its key on record",
    mutations: [
      { within: "PolicyChanges.#recordSigner", find: "transaction.commit(undefined, to)", put: "transaction.commit()" },
    ],
    isOfErrands: true,
    noticed: /rotates the key|signing key of the ledger|on record/,
  },
  {
    name: "heads of a rotation are signed by the new key alone",
    mutations: [{ within: "Signer.sign", find: "this.#keys.map($$each)", put: "this.#keys.slice(0, 1).map($$each)" }],
    isOfErrands: true,
    noticed: /is not signed by the key on record/,
  },
];
