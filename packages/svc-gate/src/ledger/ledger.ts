import { createHmac, hash } from "node:crypto";
import { isMode, type Mode } from "../wire/mod.ts";
import { partText } from "./entry/evidence.ts";
import { leafHash, parseLeaf, zeroHash } from "./entry/leaf.ts";
import { readerOf } from "./tree/reader.ts";
import type { HeadPin, PinFailure, PinnedHead, PinReading } from "./history/pin.ts";
import { rowQuery, type ReceiptQuery } from "./history/query.ts";
import { receiptJson } from "./entry/receipt.ts";
import type { LedgerStore, RowQuery, Scrubbed, StoredCounter, StoredHead, Verification } from "./store/store.ts";
import type { StoredRow } from "./entry/row.ts";
import { changeColumns } from "./entry/row.ts";
import type { OpenSigner, SignerChange } from "./tree/signer.ts";
import { Frontier } from "./tree/merkle.ts";
import type { VerifierKey } from "./tree/note.ts";
import type { Signer } from "./tree/signing-key.ts";
import { entryBundle, levelSize, tileWidth, type HashReader, type Tile } from "./tree/tiles.ts";
import {
  AppendTransaction,
  type FoldedEvent,
  type LedgerHead,
  type Reached,
  type TreeHead,
} from "./append-transaction.ts";

export interface LedgerCheck extends Verification {
  /** The last row that something outside the ledger vouches for; undefined when nothing does. */
  readonly anchored: { readonly seq: number; readonly by: string } | undefined;
}

/** A person's act, as its row records it. */
export interface Change {
  readonly seq: number;
  readonly at: number;
  /** The name of the key that did it. */
  readonly by: string;
  /** Such as `keys.create`. */
  readonly act: string;
  /** JSON: what exactly was done. */
  readonly body: string;
  /** What was in force after it; SHA-256 in hex. */
  readonly contract: string;
  readonly mode: Mode;
  readonly engine: string;
}

export interface LedgerParts {
  readonly store: LedgerStore;
  readonly head: LedgerHead;
  /** What the history can never be behind: the head where one gate owns it, else the pin, which may be at row 0. */
  readonly certain: Pick<LedgerHead, "hash" | "seq">;
  /** The tree at the head. */
  readonly tree: Frontier;
  readonly signer: OpenSigner;
  /** Takes up the key that its file holds now. */
  readonly readSigner: () => Promise<Signer>;
  /** Undefined where nothing is pinned. */
  readonly pin: HeadPin | undefined;
  /** May other gates add rows? */
  readonly isShared: boolean;
  /** Does the pin lie outside what it pins? */
  readonly isAnchored: boolean;
  readonly engine: string;
  /** What the operator should know since the ledger was opened, each as a sentence. */
  readonly warnings: readonly string[];
}

/** A head with its signature. */
export interface SignedHead {
  readonly size: number;
  /** The signed checkpoint. */
  readonly checkpoint: string;
}

/** The open ledger. One transaction at a time adds to it. */
export class Ledger {
  readonly #parts: LedgerParts;
  readonly #store: LedgerStore;
  /** The digest under which a counter's key is kept. */
  readonly keyDigest: (key: string) => string;
  #head: LedgerHead;
  #headLeaf: string | undefined;
  #tree: Frontier;
  #signer: Signer;
  /** The key on record that this gate's own is to take the place of, until its row says so. */
  #replaced: string | undefined;
  #checkpoint: string;
  readonly #headWatchers: ((head: SignedHead) => void)[] = [];
  #certain: LedgerParts["certain"];

  constructor(parts: LedgerParts) {
    this.#parts = parts;
    this.#store = parts.store;
    this.#head = parts.head;
    this.#certain = parts.certain;
    this.#headLeaf = parts.store.opened.head?.leaf;
    this.#tree = parts.tree;
    this.#signer = parts.signer.signer;
    this.#replaced = parts.signer.change?.from;
    this.#checkpoint = this.#sign({ size: parts.tree.size, root: parts.tree.root() });
    this.keyDigest = keyDigester(parts.store.opened.counterSecret);
  }

  get name(): string {
    return this.#store.opened.log;
  }

  /** What the operator should know since the ledger was opened, each as a sentence. */
  get warnings(): readonly string[] {
    return this.#parts.warnings;
  }

  /** The last row that this gate has seen: its own, where no other gate adds rows. */
  get head(): LedgerHead {
    return this.#head;
  }

  /** May other gates add rows? Then the time is the one that they share. */
  get isShared(): boolean {
    return this.#parts.isShared;
  }

  /** The ledger's mode before it was opened: from the last row, else from the store. */
  get modeAtOpen(): Mode | undefined {
    const { head, mode } = this.#store.opened;
    const kept = this.isShared ? mode : (parseLeaf(head?.leaf ?? "")?.mode ?? mode);
    return kept !== undefined && isMode(kept) ? kept : undefined;
  }

  /** What was noted of the first key when the ledger was opened; undefined where nothing was, and where gates share it. */
  get firstKey(): string | undefined {
    return this.#store.opened.firstKey;
  }

  /** Keeps a note of the first key, outside a transaction. */
  keepFirstKey(note: string): Promise<void> {
    return this.#store.keyNotes.keepFirst(note);
  }

  /** The counter definitions that it keeps the events of. */
  counters(): Promise<readonly StoredCounter[]> {
    return this.#store.history.counters();
  }

  /**
   * Begins a transaction. The transaction before must have ended.
   *
   * @throws {NotKept} where the engine cannot be reached now. Anything else is a fault: the disk, or a history that is
   *   not the one this gate has seen
   */
  async begin(): Promise<AppendTransaction> {
    const store = await this.#store.begin();
    try {
      const head = this.#follow(store.head, store.frontier);
      await this.#followSigner(store.signer);
      return new AppendTransaction({
        head,
        tree: this.#tree.copy(),
        sign: (grown) => this.#signer.signAside({ origin: this.name, ...grown }),
        log: this.name,
        engine: this.#parts.engine,
        store,
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
   * Where the history stands now; it may have grown by rows of others, and never be behind or beside what is certain.
   * A row that was only read is not: a database that has lost its standby may show what no standby has, and lose it.
   */
  #follow(stored: StoredHead | undefined, frontier: string | undefined): LedgerHead {
    if (stored?.leaf === this.#headLeaf) return this.#head;
    const { seq = 0, leaf = "" } = stored ?? {};
    const { seq: reached, hash: expected } = this.#certain;
    const found = { seq, hash: seq === 0 ? zeroHash : leafHash(leaf), at: parseLeaf(leaf)?.at ?? 0 };
    if (seq < reached || (seq === reached && found.hash !== expected)) {
      throw new Error(
        `the ledger "${this.name}" ${seq < reached ? `ends at row ${seq}` : `has another row ${seq}`}, and this gate has ` +
          `seen row ${reached}: rows that were answered are gone; restore the history before anything is decided on it`,
      );
    }
    const tree = frontier === undefined ? undefined : Frontier.parse(seq, frontier);
    if (tree === undefined)
      throw new Error(
        `the tree that is kept of the ledger "${this.name}" does not reach its last row ${seq}: something other than a gate has ` +
          "written to the database; run `svc-gate verify`, and restore the ledger from a backup",
      );
    this.#tree = tree;
    this.#head = found;
    this.#headLeaf = stored?.leaf;
    return found;
  }

  /** Another gate has rotated the key: this one takes up the new one if its file has it, and signs nothing else. */
  async #followSigner(recorded: string | undefined): Promise<void> {
    if (recorded === undefined || recorded === this.#replaced) return;
    this.#replaced = undefined;
    if ([this.#signer.current, this.#signer.before].includes(recorded)) return;
    this.#signer = await this.#parts.readSigner();
    if (this.#signer.current === recorded) return;
    throw new Error(
      `the heads of the ledger "${this.name}" are signed by the key ${recorded} now, and this gate has ${this.#signer.current}: ` +
        "give it the same file, and start it again",
    );
  }

  #sign(grown: TreeHead): string {
    return this.#signer.sign({ origin: this.name, ...grown });
  }

  /** A COMMIT of this gate makes all rows before it certain too, wherever they must be. */
  #advance({ head, leaf, tree, checkpoint }: Reached): void {
    this.#head = head;
    this.#headLeaf = leaf;
    this.#tree = tree;
    this.#checkpoint = checkpoint;
    this.#certain = head;
    this.pinHead();
    for (const watch of this.#headWatchers) watch({ size: head.seq, checkpoint });
  }

  /** Has the pin follow the head. */
  pinHead(): void {
    this.#parts.pin?.follow(() => this.#pinned());
  }

  /** The state of the pin; undefined if nothing is pinned. */
  get pin(): PinReading | undefined {
    return this.#parts.pin?.reading;
  }

  /** Calls the function after each write of the pin: with the failure, or undefined. */
  watchPin(watch: (failure: PinFailure | undefined) => void): void {
    this.#parts.pin?.watch(watch);
  }

  #pinned(): PinnedHead {
    const { seq, hash: of } = this.#head;
    const root = this.#tree.root().toString("base64");
    return { log: this.name, seq, hash: of, root, checkpoint: this.#checkpoint };
  }

  /** The last head that was signed, and under which every answered check is: a C2SP checkpoint. */
  async checkpoint(): Promise<string> {
    return (await this.#store.checkpoint()) ?? this.#checkpoint;
  }

  /** Who signs heads, as others know them; the current key first. */
  get verifiers(): readonly VerifierKey[] {
    return this.#signer.verifiers;
  }

  /** The key that signs is another than the one on record: the gate's next act is the row that says so. */
  get signerChange(): SignerChange | undefined {
    return this.#parts.signer.change;
  }

  /** Has a function told each head that this gate has signed, after its flush and before its answers leave. */
  watchHeads(watch: (head: SignedHead) => void): void {
    this.#headWatchers.push(watch);
  }

  /** Hashes of the tree, from which any proof can be made; rejects where they are not there. */
  readonly hashes: HashReader = (level, from, count) => readerOf(this.#store.history)(level, from, count);

  /** A tile, or a bundle of leaves, of the tree that was signed last; undefined where that has none so wide. */
  async tile({ level, index, width }: Tile): Promise<Buffer | undefined> {
    const [, size = "0"] = (await this.checkpoint()).split("\n");
    const from = index * tileWidth;
    const all = level === "entries" ? Number(size) : levelSize(Number(size), level);
    if (from + width > all) return undefined;
    if (level !== "entries") return this.hashes(level, from, width);
    return entryBundle(await this.#store.history.leaves(from + 1, width));
  }

  /** Keeps the text of a contract, so that its rows can be decided again. */
  async keepContract(text: string): Promise<void> {
    await this.#store.keepContract(hash("sha256", text, "hex"), text);
  }

  /**
   * Keeps a counter, outside a transaction. `folded` are events of older rows that its definition would have counted, added to
   * those it has. With `through` null it is kept up with every row from now on, else it holds what came through that row.
   */
  async keepCounter(counter: Omit<StoredCounter, "digest">, folded: readonly FoldedEvent[]): Promise<void> {
    const digest = hash("sha256", counter.definition, "hex");
    const effects = folded.map(({ key, ...event }) => ({ ...event, key: this.keyDigest(key) }));
    await this.#store.keepCounter({ ...counter, digest }, effects);
  }

  /** Rows newest first, as the JSON texts of GET /receipts, in slices. */
  async *receipts(query: ReceiptQuery): AsyncGenerator<readonly { readonly seq: number; readonly json: string }[]> {
    for await (const slice of this.#store.read(await rowQuery(this.#store, query)))
      yield slice.map((row) => ({ seq: row.seq, json: receiptJson(row) }));
  }

  /** Stored rows oldest first, in slices: for folds over the history. */
  rows(from: number): AsyncIterable<readonly StoredRow[]> {
    return this.#store.history.scan(from);
  }

  /**
   * What people did, oldest first.
   *
   * @param after only rows past this one
   */
  async changes(after: number): Promise<readonly Change[]> {
    const found: Change[] = [];
    const newest = { before: Number.MAX_SAFE_INTEGER, limit: Number.MAX_SAFE_INTEGER };
    for await (const slice of this.#store.read({ ...newest, verdict: changeColumns.verdict })) {
      found.push(...slice.filter(({ seq }) => seq > after).flatMap(changeOf));
      if ((slice.at(-1)?.seq ?? Infinity) <= after) break;
    }
    return found.toReversed();
  }

  /** Stored rows newest first, in slices. */
  find(query: RowQuery): AsyncIterable<readonly StoredRow[]> {
    return this.#store.read(query);
  }

  /** Clears the engine's files of what was erased, as far as it can; @see LedgerStore.scrub */
  scrub(rewrite: boolean): Promise<Scrubbed> {
    return this.#store.scrub(rewrite);
  }

  /** A contract's text by its SHA-256 in hex; undefined where no row was ever decided under it. */
  contractText(digest: string): Promise<string | undefined> {
    return this.#store.history.contractText(digest);
  }

  /** Walks the whole chain beside everything else, and holds it against the last row that is certain. */
  async verify(): Promise<LedgerCheck> {
    const { seq, hash: expected } = this.#certain;
    const check = await this.#store.verify(1, [{ seq, hash: expected, by: "gate that wrote it" }]);
    return { ...check, anchored: this.#parts.isAnchored ? { seq: this.pin?.seq ?? seq, by: "head pin" } : undefined };
  }

  /** Is there room for receipts, so that checks can be answered? */
  hasRoom(): Promise<boolean> {
    return this.#store.hasRoom();
  }

  /** When each API key was last used, in milliseconds, as far as it was noted. */
  uses(): Promise<ReadonlyMap<string, number>> {
    return this.#store.keyNotes.uses();
  }

  /** Notes when keys were used; best effort. */
  keepUses(uses: ReadonlyMap<string, number>): Promise<void> {
    return this.#store.keyNotes.keepUses(uses);
  }

  /** Moves the pin to the head and lets the files go. */
  async close(): Promise<void> {
    try {
      await this.#parts.pin?.settle();
    } finally {
      await this.#store.close();
    }
  }
}

function changeOf({ leaf, evidence }: StoredRow): readonly Change[] {
  const { seq, at, key, act, contract, mode, engine } = parseLeaf(leaf) ?? {};
  const body = partText(evidence, "input");
  if (seq === undefined || at === undefined || act === undefined || act === null || body === undefined) return [];
  if (typeof mode !== "string" || !isMode(mode) || engine === undefined) return [];
  return [{ seq, at, by: key ?? "", act, body, contract: (contract ?? "").replace(/^sha256:/, ""), mode, engine }];
}

/** A cache of 4,096 keys of this length takes a few megabytes. A longer key is digested each time. */
const keyCachedMax = 512;

/** Digests counters' keys: HMAC-SHA256 with the ledger's own secret, in hex. Recent short keys are cached. */
export function keyDigester(secret: string): (key: string) => string {
  const digests = new Map<string, string>();
  return (key) => {
    const known = digests.get(key);
    if (known !== undefined) return known;
    const digest = createHmac("sha256", secret).update(key).digest("hex");
    if (key.length > keyCachedMax) return digest;
    if (digests.size >= 4096) digests.clear();
    digests.set(key, digest);
    return digest;
  };
}
