import { hash } from "node:crypto";
import { isMode, type Mode } from "../../../core/src/wire/mod.ts";
import { leafHash, parseLeaf, zeroHash } from "../../../core/src/record/entry/leaf.ts";
import type { HeadPin, PinnedHead } from "./history/pin.ts";
import { makeLedgerRows, type Rows } from "./history/history.ts";
import { hashReader, leavesOf } from "./history/table-reads.ts";
import type { DeliveryNotes, KeyNotes, LedgerStore, ScrubResult, Verification } from "./store/store.ts";
import type { StoredCounter, StoredHead, Tables } from "./store/tables.ts";
import type { InTurn } from "./store/steps.ts";
import { StopsAndGrants } from "./standing.ts";
import { keyDigester } from "./key-digests.ts";
import type { OpenSigner, SignerChange } from "./signing/signer.ts";
import { Frontier } from "../../../core/src/record/tree/merkle.ts";
import type { Link } from "../../../core/src/record/entry/verifier.ts";
import type { VerifierKey } from "../../../core/src/record/tree/note.ts";
import type { Signer } from "./signing/signing-key.ts";
import { entryBundle, levelSize, tileWidth, type HashReader, type Tile } from "../../../core/src/record/tree/tiles.ts";
import { AppendTransaction, type CommittedState, type TreeHead } from "./append-transaction.ts";
import type { FoldedEvent } from "./entries.ts";

export interface LedgerCheck extends Verification {
  /** The last row that something outside the ledger vouches for; undefined if nothing does. */
  readonly anchored: { readonly seq: number; readonly by: string } | undefined;
}

export interface LedgerParts {
  readonly store: LedgerStore;
  readonly head: Link;
  /**
   * A head that the history can never be behind: the last head if one gate owns the ledger, else the pin, which may be
   * at row 0.
   */
  readonly certain: Pick<Link, "hash" | "seq">;
  readonly tree: Frontier;
  readonly signer: OpenSigner;
  /** Reads the key in its file again. */
  readonly readSigner: () => Promise<Signer>;
  /** Undefined if nothing is pinned. */
  readonly pin: HeadPin | undefined;
  /** True if other gates may add rows. */
  readonly isShared: boolean;
  /** True if the pin is stored outside the data folder. */
  readonly isAnchored: boolean;
  readonly engine: string;
  /** Warnings for the operator from opening the ledger, each as a sentence. */
  readonly warnings: readonly string[];
}

export interface SignedHead {
  readonly size: number;
  readonly checkpoint: string;
}

/** The open ledger. One transaction at a time adds to it. */
export class Ledger {
  readonly #parts: LedgerParts;
  readonly #store: LedgerStore;
  readonly name: string;
  /** True if other gates may add rows. Then the time is that of the database. */
  readonly isShared: boolean;
  /** Warnings for the operator from opening the ledger, each as a sentence. */
  readonly warnings: readonly string[];
  /** The change of the signing key if it is not the one on record. The gate's next row must record it. */
  readonly signerChange: SignerChange | undefined;
  readonly tables: Tables;
  readonly rows: Rows;
  readonly keyNotes: KeyNotes;
  /** How far each endpoint of webhooks has got. */
  readonly deliveries: DeliveryNotes;
  /** Undefined if nothing is pinned. */
  readonly pin: Pick<HeadPin, "reading" | "watch"> | undefined;
  /** Returns the stored digest of a counter's key. */
  readonly keyDigest: (key: string) => string;
  #head: Link;
  #headLeaf: string | undefined;
  #tree: Frontier;
  #signer: Signer;
  /** The key on record that this gate's key will replace, until the row of the change is written. */
  #replaced: string | undefined;
  #checkpoint: string;
  readonly #headWatchers: ((head: SignedHead) => void)[] = [];
  #certain: LedgerParts["certain"];
  readonly #standing: StopsAndGrants;
  /** Reads hashes of the tree, from which any proof can be made; rejects if they do not exist. */
  readonly hashes: HashReader;

  constructor(parts: LedgerParts) {
    this.#parts = parts;
    this.#store = parts.store;
    this.name = parts.store.opened.log;
    this.isShared = parts.isShared;
    this.warnings = parts.warnings;
    this.signerChange = parts.signer.change;
    this.tables = parts.store.tables;
    this.rows = makeLedgerRows(this.tables);
    this.keyNotes = parts.store.keyNotes;
    this.deliveries = parts.store.deliveries;
    this.pin = parts.pin;
    this.#head = parts.head;
    this.#certain = parts.certain;
    this.#headLeaf = parts.store.opened.head?.leaf;
    this.#tree = parts.tree;
    this.#signer = parts.signer.signer;
    this.#replaced = parts.signer.change?.from;
    this.#checkpoint = this.#sign({ size: parts.tree.size, root: parts.tree.root() });
    this.keyDigest = keyDigester(parts.store.opened.counterSecret);
    const size = async (): Promise<number> => (this.isShared ? this.signedSize() : 0);
    this.#standing = new StopsAndGrants(this.tables, this.keyDigest, size);
    this.hashes = hashReader(this.tables);
  }

  /** The last row that this gate has seen. If no other gate adds rows, this is its own last row. */
  get head(): Link {
    return this.#head;
  }

  /** The ledger's mode before it was opened: from the last row, else from the store. */
  get modeAtOpen(): Mode | undefined {
    const { head, mode } = this.#store.opened;
    const kept = this.isShared ? mode : (parseLeaf(head?.leaf ?? "")?.mode ?? mode);
    return kept !== undefined && isMode(kept) ? kept : undefined;
  }

  /**
   * Starts a transaction. The transaction before it must have ended.
   *
   * @throws {NotKept} if the store cannot be reached now. Any other error is a fault: the disk failed, or the history
   *   is not the one that this gate has seen
   */
  async begin(): Promise<AppendTransaction> {
    const store = await this.#store.begin();
    try {
      const head = this.#follow(store.head, store.frontier);
      await this.#followSigner(store.signer);
      if (store.changed > this.#standing.through) await this.#standing.follow(store.changed);
      return new AppendTransaction({
        head,
        tree: this.#tree.copy(),
        sign: (grown) => this.#sign(grown),
        log: this.name,
        engine: this.#parts.engine,
        store,
        stops: this.#standing.stops,
        grants: this.#standing.grants,
        digest: this.keyDigest,
        counterOf: (counter) => ({ ...counter, digest: hash("sha256", counter.definition, "hex") }),
        committed: (reached) => this.#advance(reached),
      });
    } catch (error) {
      await store.abort();
      throw error;
    }
  }

  /**
   * Returns the current head. Others may have added rows, but the history must still contain the certain head. A row
   * that was only read is not certain: a database that has lost its standby may show rows that no standby has, and lose
   * them.
   */
  #follow(stored: StoredHead | undefined, frontier: string | undefined): Link {
    if (stored?.leaf === this.#headLeaf) return this.#head;
    const { seq = 0, leaf = "" } = stored ?? {};
    const { seq: reached, hash: expected } = this.#certain;
    const found = { seq, hash: seq === 0 ? zeroHash : leafHash(leaf), at: parseLeaf(leaf)?.at ?? 0 };
    if (seq < reached || (seq === reached && found.hash !== expected)) {
      throw new Error(
        `the ledger "${this.name}" ${seq < reached ? `ends at row ${seq}` : `has another row ${seq}`}, but this gate has ` +
          `seen row ${reached}: receipts are lost; restore the history before the gate decides anything`,
      );
    }
    const tree = frontier === undefined ? undefined : Frontier.parse(seq, frontier);
    if (tree === undefined)
      throw new Error(
        `the stored tree of the ledger "${this.name}" does not reach its last row ${seq}: something other than a gate has ` +
          "written to the database; run `svc-gate verify`, and restore the ledger from a backup",
      );
    this.#tree = tree;
    this.#head = found;
    this.#headLeaf = stored?.leaf;
    return found;
  }

  /** Follows a key that another gate has rotated: uses the new key if its file has it, and else signs nothing. */
  async #followSigner(recorded: string | undefined): Promise<void> {
    if (recorded === undefined || recorded === this.#replaced) return;
    this.#replaced = undefined;
    if ([this.#signer.current, this.#signer.before].includes(recorded)) return;
    this.#signer = await this.#parts.readSigner();
    if (this.#signer.current === recorded) return;
    throw new Error(
      `the key ${recorded} signs the heads of the ledger "${this.name}" now, but this gate has ${this.#signer.current}: ` +
        "give this gate the same key file, and start it again",
    );
  }

  /** The stops and grants when this gate last wrote or read the ledger. */
  get standing(): Readonly<Pick<StopsAndGrants, "grants" | "now" | "stops">> {
    return this.#standing;
  }

  #sign(grown: TreeHead): string {
    return this.#signer.sign({ origin: this.name, ...grown });
  }

  /** Moves to the head of a commit. The commit also makes all earlier rows certain, on every required standby. */
  #advance({ head, leaf, tree, checkpoint, stops, grants }: CommittedState): void {
    this.#head = head;
    this.#headLeaf = leaf;
    this.#tree = tree;
    this.#checkpoint = checkpoint;
    this.#certain = head;
    this.#standing.advance(head.seq, stops, grants);
    this.pinHead();
    for (const watch of this.#headWatchers) watch({ size: head.seq, checkpoint });
  }

  pinHead(): void {
    this.#parts.pin?.follow(() => this.#makePinnedHead());
  }

  #makePinnedHead(): PinnedHead {
    const { seq, hash: of } = this.#head;
    const root = this.#tree.root().toString("base64");
    return { log: this.name, seq, hash: of, root, checkpoint: this.#checkpoint };
  }

  /** Returns the last signed head, a C2SP checkpoint, which covers every answered check. */
  async checkpoint(): Promise<string> {
    const { record } = this.isShared ? await this.tables.head() : {};
    return record?.checkpoint ?? this.#checkpoint;
  }

  /** Returns the number of rows under the last signed head. */
  async signedSize(): Promise<number> {
    const [, size = "0"] = (await this.checkpoint()).split("\n");
    return Number(size);
  }

  /** The verifier keys that sign heads; the current key is first. */
  get verifiers(): readonly VerifierKey[] {
    return this.#signer.verifiers;
  }

  /** Calls a function with each head that this gate has signed, after the flush and before the answers. */
  watchHeads(watch: (head: SignedHead) => void): void {
    this.#headWatchers.push(watch);
  }

  /** Returns a tile or a bundle of leaves of the last signed tree; undefined if that tree has no such tile. */
  async tile({ level, index, width }: Tile): Promise<Buffer | undefined> {
    const size = await this.signedSize();
    const from = index * tileWidth;
    const all = level === "entries" ? size : levelSize(size, level);
    if (from + width > all) return undefined;
    if (level !== "entries") return this.hashes(level, from, width);
    return entryBundle(await leavesOf(this.tables, from + 1, width));
  }

  /** Stores the text of a contract, so that its rows can be decided again. */
  async keepContract(text: string): Promise<void> {
    await this.#store.keepContract(hash("sha256", text, "hex"), text);
  }

  /**
   * Stores a counter, outside a transaction. `folded` are additional events of older rows that match its definition. If
   * `through` is null, every row updates the counter from now on; otherwise it contains the events up to that row.
   */
  async keepCounter(counter: Omit<StoredCounter, "digest">, folded: readonly FoldedEvent[]): Promise<void> {
    const digest = hash("sha256", counter.definition, "hex");
    const effects = folded.map(({ key, ...event }) => ({ ...event, key: this.keyDigest(key) }));
    await this.#store.keepCounter({ ...counter, digest }, effects);
  }

  /** Clears the store's files of erased data, as far as possible; @see LedgerStore.scrub */
  scrub(rewrite: boolean): Promise<ScrubResult> {
    return this.#store.scrub(rewrite);
  }

  /** Verifies the whole chain during normal work, and compares it with the last certain row. */
  async verify(inTurn?: InTurn): Promise<LedgerCheck> {
    const { seq, hash: expected } = this.#certain;
    const check = await this.#store.verify(1, [{ seq, hash: expected, by: "gate that wrote it" }], inTurn);
    return {
      ...check,
      anchored: this.#parts.isAnchored ? { seq: this.pin?.reading.seq ?? seq, by: "head pin" } : undefined,
    };
  }

  /** Returns true if there is space for receipts, so that checks can be answered. */
  hasRoom(): Promise<boolean> {
    return this.#store.hasRoom();
  }

  /** Moves the pin to the head and closes the files. */
  async close(): Promise<void> {
    try {
      await this.#parts.pin?.settle();
    } finally {
      await this.#store.close();
    }
  }
}
