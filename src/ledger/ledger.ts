import { createHmac, hash } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { addDecimals, canonical, type Canonical, type Mode, type Verdict } from "../wire/mod.ts";
import { makeEvidence } from "./evidence.ts";
import { leafHash, leafText, parseLeaf } from "./leaf.ts";
import { HeadPin, readPin, writePin, type Pin } from "./pin.ts";
import { callText } from "./verifier.ts";
import { asDurable, receiptJson, type Durable, type Receipt } from "./receipt.ts";
import { inspectSqlite, openSqlite, readSqlite } from "./stores/sqlite.ts";
import {
  LedgerRefused,
  type LedgerStore,
  type RowQuery,
  type StoredCounter,
  type StoredEffect,
  type StoredLookup,
  type StoredRow,
  type Verification,
} from "./stores/store.ts";

export interface LedgerOptions {
  /** Made with mode 0700 where it is not there. */
  readonly folder: string;
  /** Where the head pin is kept; in the folder when undefined, which anchors nothing outside it. */
  readonly pinFile?: string | undefined;
  /** The name of a new ledger, at most 100 bytes; a random one when undefined. */
  readonly name?: string | undefined;
  /** What writes the receipts, such as `svc-gate/1.0.0`. */
  readonly engine: string;
  /** The operator says that the ledger is whole though its pin is not there. */
  readonly acceptMissingPin?: boolean;
}

/** One decided and answered check, as the gate hands it over. */
export interface CheckEntry {
  /** Milliseconds since the epoch, not less than in the row before. */
  readonly at: number;
  readonly keyName: string;
  readonly mode: Mode;
  readonly toolName: string;
  /** Does a contract route the tool? The leaf names it only then. */
  readonly routed: boolean;
  readonly sessionId: string | null;
  readonly inputText: string;
  readonly platformText: string | null;
  readonly verdict: Verdict;
  readonly answered: Verdict;
  readonly reason: string;
  readonly rule: string;
  /** SHA-256 of the body of GET /rules, in hex. */
  readonly contract: string;
  readonly outcome: Canonical;
}

/** Events of a counter: `counter` is the digest of its definition, `key` the plain text of its key. */
export interface CounterMove {
  readonly counter: string;
  readonly key: string;
  readonly amount: string;
}

export interface CounterLookup {
  readonly counter: string;
  readonly key: string;
  readonly after: number;
}

export interface LedgerHead {
  readonly seq: number;
  readonly hash: string;
  /** Milliseconds; 0 before the first row. */
  readonly at: number;
}

export interface LedgerCheck extends Verification {
  /** The last row that something outside the ledger's folder vouches for; undefined when nothing does. */
  readonly anchored: { readonly seq: number; readonly by: string } | undefined;
}

const tailRows = 1000;
const nameBytesMax = 100;

/**
 * Opens the ledger of a folder, or begins one where none ever was.
 *
 * @throws {LedgerRefused} with a sentence for the operator, when it must not be served
 */
export async function openLedger(options: LedgerOptions): Promise<Ledger> {
  const { folder, name } = options;
  if (name !== undefined && !isName(name)) {
    throw new LedgerRefused(
      `the ledger's name must be 1 to ${nameBytesMax} bytes of visible characters without + " \\, such as example.org/payments`,
    );
  }
  await makeFolder(folder);
  const pinFile = options.pinFile ?? join(folder, "head.pin");
  const pin = await readPin(pinFile);
  const store = await openSqlite({ folder, log: name, mustExist: pin !== undefined });
  try {
    return await admit(store, pin, pinFile, options);
  } catch (error) {
    await store.close();
    throw error;
  }
}

export interface InspectOptions extends Pick<LedgerOptions, "folder" | "pinFile"> {
  /** Order, links and hashes of the leaves, and nothing of what they commit to. */
  readonly chainAlone?: boolean;
}

/**
 * Walks the ledger of a folder from outside, whether a gate is serving it or not, and holds it against its pin.
 *
 * @throws {LedgerRefused} when there is none, or its pin is damaged
 */
export async function inspectLedger({ folder, pinFile, chainAlone }: InspectOptions): Promise<LedgerCheck> {
  const pin = await readPin(pinFile ?? join(folder, "head.pin"));
  const anchors = pin === undefined || pin.seq === 0 ? [] : [{ seq: pin.seq, hash: pin.hash, by: "head pin" }];
  const check = await inspectSqlite(folder, {
    anchors,
    chainAlone: chainAlone === true,
    mustExist: pin !== undefined,
  });
  if (pin !== undefined && pin.log !== check.log)
    throw new LedgerRefused(
      `the head pin is of the ledger "${pin.log}", the file is "${check.log}": put the right file back`,
    );
  return {
    ...check,
    anchored: pin === undefined || pinFile === undefined ? undefined : { seq: pin.seq, by: "head pin" },
  };
}

/** A ledger that is read from outside, whether a gate is serving it or not. */
export interface LedgerHistory {
  readonly name: string;
  /** The number of its last row when it was opened; 0 when there is none. */
  readonly rows: number;
  /** Stored rows oldest first, in slices. */
  scan(from: number): AsyncIterable<readonly StoredRow[]>;
  /** The body of GET /rules, by its SHA-256 in hex. */
  contractText(digest: string): Promise<string | undefined>;
  /** The digest under which a counter's key stands in effects. */
  keyDigest(key: string): string;
  close(): Promise<void>;
}

/** @throws {LedgerRefused} when there is none, or it cannot be read */
export async function readLedger(folder: string): Promise<LedgerHistory> {
  const { log, counterSecret, ...history } = await readSqlite(folder);
  return { ...history, name: log, keyDigest: keyDigester(counterSecret) };
}

/** Digests counters' keys: HMAC-SHA256 with the ledger's own secret, in hex. The latest are remembered. */
function keyDigester(secret: string): (key: string) => string {
  const digests = new Map<string, string>();
  return (key) => {
    const known = digests.get(key);
    if (known !== undefined) return known;
    const digest = createHmac("sha256", secret).update(key).digest("hex");
    if (digests.size >= 4096) digests.clear();
    digests.set(key, digest);
    return digest;
  };
}

/** What a signed note takes as the name of its key, and what stands in a leaf as it is. */
function isName(name: string): boolean {
  return Buffer.byteLength(name) <= nameBytesMax && name.isWellFormed() && /^[^\s\p{C}+"\\]+$/u.test(name);
}

async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new LedgerRefused(
      `the data folder ${folder} cannot be made (${(error as NodeJS.ErrnoException).code}): make it, or name another with SVC_DATA_DIR`,
    );
  }
}

/** Holds what was opened against the pin and its own tail before anything is served. */
async function admit(
  store: LedgerStore,
  pin: Pin | undefined,
  pinFile: string,
  options: LedgerOptions,
): Promise<Ledger> {
  const { log, head } = store.opened;
  if (options.name !== undefined && options.name !== log) {
    throw new LedgerRefused(
      `the ledger in ${options.folder} is called "${log}", not "${options.name}": remove SVC_LEDGER_NAME, or name another folder`,
    );
  }
  if (pin === undefined && head !== undefined && options.acceptMissingPin !== true) {
    throw new LedgerRefused(
      `the ledger has ${head.seq} rows but its head pin ${pinFile} is not there: ` +
        "restore it, or verify the ledger and start once with --accept missing-pin",
    );
  }
  if (pin !== undefined) await holdAgainstPin(store, pin);
  const check = await store.verify(Math.max(1, (head?.seq ?? 0) - tailRows), []);
  if (check.broken !== undefined) {
    throw new LedgerRefused(
      `the ledger is damaged at row ${check.broken.seq}: ${check.broken.problem}; run \`svc-gate verify\`, and restore it from a backup`,
    );
  }
  const at = head === undefined ? 0 : (parseLeaf(head.leaf)?.at ?? 0);
  const current: LedgerHead = { seq: check.head.seq, hash: check.head.hash, at };
  await placePin(pinFile, { log, seq: current.seq, hash: current.hash });
  return new Ledger(store, current, new HeadPin(pinFile), options);
}

async function placePin(file: string, pin: Pin): Promise<void> {
  try {
    await writePin(file, pin);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new LedgerRefused(
      `the head pin ${file} cannot be written (${code}): SVC_PIN names a file that this user can write`,
    );
  }
}

async function holdAgainstPin(store: LedgerStore, pin: Pin): Promise<void> {
  const { log, head } = store.opened;
  if (pin.log !== log)
    throw new LedgerRefused(
      `the head pin is of the ledger "${pin.log}", the file is "${log}": put the right file back`,
    );
  const reached = head?.seq ?? 0;
  if (pin.seq > reached) {
    throw new LedgerRefused(
      `the ledger ends at row ${reached}, and its head pin has seen row ${pin.seq}: rows are missing from its end; restore the file`,
    );
  }
  for await (const [row] of pin.seq === 0 ? [] : store.scan(pin.seq)) {
    if (row !== undefined && row.seq === pin.seq && leafHash(row.leaf) === pin.hash) return;
    throw new LedgerRefused(
      `row ${pin.seq} of the ledger is not the one that its head pin has seen: the history was changed; restore the file`,
    );
  }
}

/** The open ledger. It owns the head of the chain; one batch at a time adds to it. */
export class Ledger {
  readonly #store: LedgerStore;
  readonly #pin: HeadPin;
  readonly #options: LedgerOptions;
  /** The digest under which a counter's key is kept. */
  readonly keyDigest: (key: string) => string;
  #head: LedgerHead;

  constructor(store: LedgerStore, head: LedgerHead, pin: HeadPin, options: LedgerOptions) {
    this.#store = store;
    this.#head = head;
    this.#pin = pin;
    this.#options = options;
    this.keyDigest = keyDigester(store.opened.counterSecret);
  }

  get name(): string {
    return this.#store.opened.log;
  }

  get head(): LedgerHead {
    return this.#head;
  }

  /** The counter definitions that it keeps the events of. */
  get counters(): readonly StoredCounter[] {
    return this.#store.opened.counters;
  }

  /**
   * Begins a batch: what the counters stood at before it. The batch before must be committed or given up.
   *
   * @throws a fault of the disk
   */
  async begin(lookups: readonly CounterLookup[]): Promise<Batch> {
    const stored = lookups.map(({ counter, key, after }): StoredLookup => ({
      counter,
      key: this.keyDigest(key),
      after,
    }));
    const values = await this.#store.begin(stored);
    const known = new Map(stored.map((lookup, at) => [lookupId(lookup), values[at]]));
    return new Batch({
      head: this.#head,
      log: this.name,
      engine: this.#options.engine,
      known,
      digest: (key) => this.keyDigest(key),
      commit: (rows, effects, head) => this.#commit(rows, effects, head),
    });
  }

  async #commit(rows: readonly StoredRow[], effects: readonly StoredEffect[], head: LedgerHead): Promise<void> {
    await this.#store.commit(rows, effects);
    this.#head = head;
    this.#pin.follow({ log: this.name, seq: head.seq, hash: head.hash });
  }

  /** Keeps the text of a contract, so that its rows can be decided again. */
  async keepContract(text: string): Promise<void> {
    await this.#store.keepContract(hash("sha256", text, "hex"), text);
  }

  /**
   * Keeps a counter. `folded` are events of older rows that its definition would have counted, added to those it has.
   * With `through` null it is kept up with every row from now on, else it holds what came through that row.
   */
  async keepCounter(
    counter: Omit<StoredCounter, "digest">,
    folded: readonly (CounterMove & { readonly seq: number; readonly at: number })[],
  ): Promise<void> {
    const digest = hash("sha256", counter.definition, "hex");
    const effects = folded.map(({ key, ...event }): StoredEffect => ({ ...event, key: this.keyDigest(key) }));
    await this.#store.keepCounter({ ...counter, digest }, effects);
  }

  /** Rows newest first, as the JSON texts of GET /receipts, in slices. */
  async *receipts(query: RowQuery): AsyncGenerator<readonly { readonly seq: number; readonly json: string }[]> {
    for await (const slice of this.#store.read(query))
      yield slice.map((row) => ({ seq: row.seq, json: receiptJson(row) }));
  }

  /** Stored rows oldest first, in slices: for folds over the history. */
  rows(from: number): AsyncIterable<readonly StoredRow[]> {
    return this.#store.scan(from);
  }

  /** A contract's text by its SHA-256 in hex; undefined where no row was ever decided under it. */
  contractText(digest: string): Promise<string | undefined> {
    return this.#store.contractText(digest);
  }

  /** Walks the whole chain beside everything else, and holds it against the head that this owner wrote. */
  async verify(): Promise<LedgerCheck> {
    const { seq, hash: expected } = this.#head;
    const check = await this.#store.verify(1, [{ seq, hash: expected, by: "gate that wrote it" }]);
    return { ...check, anchored: this.#options.pinFile === undefined ? undefined : { seq, by: "head pin" } };
  }

  /** Is there room for receipts, so that checks can be answered? */
  hasRoom(): Promise<boolean> {
    return this.#store.hasRoom();
  }

  /** Moves the pin to the head and lets the files go. */
  async close(): Promise<void> {
    try {
      await this.#pin.settle();
    } finally {
      await this.#store.close();
    }
  }
}

function lookupId({ counter, key, after }: StoredLookup): string {
  return `${counter} ${key} ${after}`;
}

interface BatchContext {
  readonly head: LedgerHead;
  readonly log: string;
  readonly engine: string;
  readonly known: ReadonlyMap<string, string | undefined>;
  readonly digest: (key: string) => string;
  readonly commit: (rows: readonly StoredRow[], effects: readonly StoredEffect[], head: LedgerHead) => Promise<void>;
}

/** Rows that become durable together. Each call of it sees the counters as the calls before it left them. */
export class Batch {
  readonly #context: BatchContext;
  readonly #rows: StoredRow[] = [];
  readonly #effects: StoredEffect[] = [];
  readonly #receipts: Receipt[] = [];
  /** For each counter and key what this batch has added, one sum per moment. */
  readonly #moved = new Map<string, { readonly at: number; sum: string }[]>();
  #head: LedgerHead;

  constructor(context: BatchContext) {
    this.#context = context;
    this.#head = context.head;
  }

  /** A counter as the batch so far leaves it; undefined where its history is not known. */
  value({ counter, key, after }: CounterLookup): string | undefined {
    const digest = this.#context.digest(key);
    const before = this.#context.known.get(lookupId({ counter, key: digest, after }));
    if (before === undefined) return undefined;
    const moved = this.#moved.get(`${counter} ${digest}`) ?? [];
    return moved.reduce((total, { at, sum }) => (at > after ? addDecimals(total, sum) : total), before);
  }

  /** Gives the check its row: place in the chain, evidence, hash. Nothing is durable yet. */
  append(entry: CheckEntry, moves: readonly CounterMove[]): void {
    const seq = this.#head.seq + 1;
    const effects = moves.length === 0 ? noEffects : this.#effectsOf(moves, seq, entry.at);
    const call = callText(entry.toolName, entry.sessionId);
    const effectsText =
      effects.length === 0 ? "[]" : canonical(effects.map(({ amount, counter, key }) => ({ amount, counter, key })));
    const evidence = makeEvidence([
      call,
      entry.inputText,
      entry.platformText ?? "null",
      JSON.stringify(entry.reason),
      canonical(entry.outcome),
      effectsText,
    ]);
    const leaf = leafText({
      answered: entry.answered,
      at: entry.at,
      contract: `sha256:${entry.contract}`,
      engine: this.#context.engine,
      evidence: evidence.digest,
      key: entry.keyName,
      kind: "check",
      log: this.#context.log,
      mode: entry.mode,
      prev: this.#head.hash,
      rule: entry.rule,
      seq,
      tool: entry.routed ? entry.toolName : null,
      v: 1,
      verdict: entry.verdict,
    });
    this.#head = { seq, hash: leafHash(leaf), at: entry.at };
    this.#rows.push({
      seq,
      leaf,
      evidence: evidence.stored,
      session: entry.sessionId,
      tool: entry.toolName,
      verdict: entry.verdict,
    });
    this.#receipts.push({ seq, hash: this.#head.hash });
  }

  /**
   * Makes all of it durable with one flush, in order.
   *
   * @returns one receipt for each appended check
   * @throws {NotKept} when nothing was kept; any other rejection is a fault
   */
  async commit(): Promise<readonly Durable<Receipt>[]> {
    if (this.#rows.length > 0) await this.#context.commit(this.#rows, this.#effects, this.#head);
    return this.#receipts.map(asDurable);
  }

  /** Two counters of one definition are one counter: a call moves it once under one key. */
  #effectsOf(moves: readonly CounterMove[], seq: number, at: number): readonly StoredEffect[] {
    const distinct = new Map<string, StoredEffect>();
    for (const { counter, key, amount } of moves) {
      const digest = this.#context.digest(key);
      distinct.set(`${counter} ${digest}`, { seq, at, counter, key: digest, amount });
    }
    for (const [id, effect] of distinct) this.#move(id, effect);
    const effects = [...distinct].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, effect]) => effect);
    this.#effects.push(...effects);
    return effects;
  }

  #move(id: string, { at, amount }: StoredEffect): void {
    const moved = this.#moved.get(id);
    const last = moved?.at(-1);
    if (moved === undefined) this.#moved.set(id, [{ at, sum: amount }]);
    else if (last?.at === at) last.sum = addDecimals(last.sum, amount);
    else moved.push({ at, sum: amount });
  }
}

const noEffects: readonly StoredEffect[] = [];
