import { randomBytes } from "node:crypto";
import type { StoredRow } from "../../../core/src/record/entry/row.ts";
import { keyIn, keyText, type Entry } from "../../../gate/src/ledger/engine.ts";
import { CounterTables } from "./counter-tables.ts";

type KeptEntries = {
  readonly [T in "approvals" | "contracts" | "nodes" | "outcomes" | "repeats"]: Map<string, Entry<T>>;
};

/** What a ledger in memory consists of. It can be opened again after a close. */
export class MemoryLedger {
  readonly log: string;
  readonly counterSecret: string = randomBytes(32).toString("hex");
  readonly rows: StoredRow[] = [];
  readonly counters: CounterTables = new CounterTables();
  /** Entries by the texts of their keys. */
  readonly kept: KeptEntries = {
    approvals: new Map(),
    contracts: new Map(),
    nodes: new Map(),
    outcomes: new Map(),
    repeats: new Map(),
  };
  readonly deliveries: Map<string, string> = new Map();
  readonly uses: Map<string, number> = new Map();
  signer: string | undefined;
  mode: string | undefined;
  firstKey: string | undefined;
  /** True if a call was ever parked for a person. */
  hasApprovals = false;
  wasOpened = false;
  isOpen = false;

  /** @param log the ledger's name */
  constructor(log: string = randomBytes(8).toString("hex")) {
    this.log = log;
  }

  get head(): StoredRow | undefined {
    return this.rows.at(-1);
  }

  keep<T extends keyof KeptEntries>(table: T, entry: Entry<T>): void {
    const kept: Map<string, Entry<T>> = this.kept[table];
    kept.set(keyText(keyIn(table, entry)), entry);
  }
}
