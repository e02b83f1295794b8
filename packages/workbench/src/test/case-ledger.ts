import { hash } from "node:crypto";
import { noStops } from "../../../core/src/approvals/mod.ts";
import type { ActivePolicy, TotalSource } from "../../../gate/src/server/mod.ts";
import { AppendTransaction, ledgerTables, type LedgerHistory } from "../../../gate/src/ledger/mod.ts";
import { MemoryTables, openMemory } from "../../../records/src/mod.ts";
import { Frontier } from "../../../core/src/record/tree/mod.ts";

/** The ledger of one test case: the engine in memory, under transactions of the gate's ledger. No head is signed. */
export class CaseLedger {
  readonly isShared = false;
  readonly #engine: string;
  readonly #tables = new MemoryTables("test");
  readonly #store = openMemory(this.#tables);
  readonly tables: LedgerHistory["tables"] = this.#store.tables;
  readonly rows: TotalSource = { totals: (positions) => ledgerTables.totalsBefore(this.tables, positions) };
  #head = { seq: 0, hash: "0".repeat(64), at: 0 };
  #tree = new Frontier();

  /** Keeps the counters of a policy from the first row on. */
  constructor({ engine, counterDigests }: ActivePolicy) {
    this.#engine = engine;
    for (const [definition, digest] of counterDigests)
      this.#tables.counters.keep({ digest, definition, through: null, unknownThrough: -1 }, []);
  }

  async begin(): Promise<AppendTransaction> {
    return new AppendTransaction({
      head: this.#head,
      tree: this.#tree.copy(),
      sign: () => "",
      log: this.#tables.log,
      engine: this.#engine,
      store: await this.#store.begin(),
      stops: noStops,
      grants: [],
      digest: digestOfText,
      counterOf: (counter) => ({ ...counter, digest: digestOfText(counter.definition) }),
      committed: ({ head, tree }) => {
        this.#head = head;
        this.#tree = tree;
      },
    });
  }
}

function digestOfText(text: string): string {
  return hash("sha256", text, "hex");
}
