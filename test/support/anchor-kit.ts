import { createHash, sign, type KeyObject } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import pino, { type Logger } from "pino";
import { Anchors } from "../../packages/gate/src/server/anchoring/anchors.ts";
import type { CollectedCheckpoints } from "../../packages/gate/src/server/anchoring/collected.ts";
import type { AnchoredLog } from "../../packages/gate/src/server/anchoring/head.ts";
import { parsePolicy } from "../../packages/gate/src/server/anchoring/policy.ts";
import { parseSinks } from "../../packages/gate/src/server/anchoring/sinks.ts";
import { openCheckpoint } from "../../packages/core/src/record/tree/checkpoint.ts";
import { Frontier } from "../../packages/core/src/record/tree/merkle.ts";
import {
  publicBytes,
  signatureLine,
  signatureTypes,
  verifierKey,
  type VerifierKey,
} from "../../packages/core/src/record/tree/note.ts";
import { isConsistent } from "./tree-proofs.ts";
import { makeSigningKey, Signer } from "../../packages/gate/src/ledger/signing/signing-key.ts";
import type { Result } from "../../packages/core/src/wire/mod.ts";

/** Shared by the tests of anchors: a ledger that is only a tree, and a witness as in the text of C2SP tlog-witness. */

/** A growing tree, with its signed heads. */
export class FakeLog implements AnchoredLog {
  readonly name: string;
  readonly signer: Signer;
  readonly changesMade: { at: number; act: string; body: string }[] = [];
  readonly rows: AnchoredLog["rows"] = { changes: () => Promise.resolve(this.changesMade) };
  /** The text that makes its last rows differ from those of another side. */
  side = "";
  #frontier = new Frontier();
  readonly #leaves: string[] = [];
  readonly #nodes = new Map<string, Buffer>();

  constructor(name: string, key: KeyObject = makeSigningKey()) {
    this.name = name;
    this.signer = new Signer(name, { current: key, before: undefined });
  }

  get verifiers(): readonly VerifierKey[] {
    return this.signer.verifiers;
  }

  get size(): number {
    return this.#leaves.length;
  }

  /** Adds rows. On the same side, rows at the same index are the same in each log. */
  grow(rows: number, side = ""): this {
    this.side = side;
    for (let row = 0; row < rows; row += 1) {
      const leaf = createHash("sha256").update(`\0${side}${this.#leaves.length}`).digest("hex");
      this.#leaves.push(leaf);
      for (const { level, index, hash } of this.#frontier.append(leaf)) this.#nodes.set(`${level} ${index}`, hash);
    }
    return this;
  }

  /** Returns its signed head. */
  head(): string {
    return this.signer.sign({ origin: this.name, size: this.size, root: this.#frontier.root() });
  }

  checkpoint(): Promise<string> {
    return Promise.resolve(this.head());
  }

  hashes(level: number, from: number, count: number): Promise<Buffer> {
    const at = (index: number): Buffer => {
      const found = level === 0 ? Buffer.from(this.#leaves[index] ?? "", "hex") : this.#nodes.get(`${level} ${index}`);
      if (found?.length !== 32) throw new Error(`level ${level} has no hash ${index}`);
      return found;
    };
    return Promise.resolve(Buffer.concat(Array.from({ length: count }, (_, offset) => at(from + offset))));
  }
}

/** A witness's answer. */
export interface Said {
  readonly status: number;
  readonly type?: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Seen {
  readonly size: number;
  readonly root: Buffer;
  readonly note: string;
}

/** A witness, implemented naively from C2SP tlog-witness; `instead` replaces its answers. */
export class TestWitness {
  readonly key: VerifierKey;
  readonly #private: KeyObject = makeSigningKey();
  /** The logs whose keys it trusts, by origin. */
  readonly trusted = new Map<string, readonly VerifierKey[]>();
  readonly seen = new Map<string, Seen>();
  /** Each received request with its answer. */
  readonly requests: string[] = [];
  /** Replaces the specified answer; undefined means no answer at all. */
  instead: ((path: string, body: string) => Said | undefined) | undefined;
  /** Whether it serves its last seen heads. */
  isOpen = true;
  /** Called for each request, before the answer. */
  onRequest: ((body: string) => void) | undefined;
  url = "";

  constructor(name: string) {
    this.key = verifierKey(name, publicBytes(this.#private), signatureTypes.cosignature);
  }

  /** Listens until the test ends. */
  async start(t: Pick<TestContext, "after">): Promise<this> {
    const server = createServer((request, response) => void this.#serve(request, response));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => {
      server.close();
      server.closeAllConnections();
    });
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return this;
  }

  trust(log: AnchoredLog): this {
    this.trusted.set(log.name, log.verifiers);
    return this;
  }

  /** Returns one cosignature, as a line. */
  cosign(text: string, time: number = Math.floor(Date.now() / 1000)): string {
    const stamp = Buffer.alloc(8);
    stamp.writeBigUInt64BE(BigInt(time));
    const message = `cosignature/v1\ntime ${time}\n${text}`;
    return signatureLine(this.key, Buffer.concat([stamp, sign(null, Buffer.from(message), this.#private)]));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const body = Buffer.concat(pieces).toString("utf8");
    const path = request.url ?? "";
    this.onRequest?.(body);
    const said = this.instead === undefined ? this.answer(path, body) : this.instead(path, body);
    this.requests.push(`${path} ${body.split("\n")[0]} -> ${said?.status ?? "nothing"}`);
    if (said === undefined) return;
    response.writeHead(said.status, { "content-type": said.type ?? "text/plain", ...said.headers });
    response.end(said.body ?? "");
  }

  answer(path: string, body: string): Said {
    return path === "/add-checkpoint" ? this.#add(body) : this.#show(path);
  }

  #add(body: string): Said {
    const end = body.indexOf("\n\n");
    const [old = "", ...proof] = body.slice(0, end).split("\n");
    const note = body.slice(end + 2);
    const origin = note.slice(0, note.indexOf("\n"));
    const keys = this.trusted.get(origin);
    if (keys === undefined) return { status: 404 };
    const opened = openCheckpoint(note, keys);
    if (!opened.ok) return { status: 403 };
    const { size, root } = opened.value;
    const from = Number(/^old (\d+)$/.exec(old)?.[1] ?? Number.NaN);
    if (!(from <= size)) return { status: 400, body: "the old size is larger\n" };
    const before = this.seen.get(origin);
    if (from !== (before?.size ?? 0)) return { status: 409, type: "text/x.tlog.size", body: `${before?.size ?? 0}\n` };
    const hashes = proof.map((line) => Buffer.from(line, "base64"));
    const isProven =
      before === undefined
        ? hashes.length === 0
        : isConsistent({ from, size, fromRoot: before.root, root, proof: hashes });
    if (!isProven) return { status: 422, body: "the proof does not hold\n" };
    const line = this.cosign(opened.value.text);
    this.seen.set(origin, { size, root, note: note + line });
    return { status: 200, body: line };
  }

  #show(path: string): Said {
    const found = [...this.seen].find(
      ([origin]) => path === `/${createHash("sha256").update(origin).digest("hex")}/checkpoint`,
    );
    return found === undefined || !this.isOpen ? { status: 404 } : { status: 200, body: found[1].note };
  }
}

/** Returns a policy that wants this many of the witnesses. */
export function policyText(witnesses: readonly TestWitness[], quorum: number): string {
  const lines = witnesses.map(({ key, url }, at) => `witness w${at + 1} ${key.text} ${url}`);
  const names = witnesses.map((_, at) => `w${at + 1}`).join(" ");
  return `# whose word counts\n${lines.join("\n")}\ngroup enough ${quorum} ${names}\nquorum enough\n`;
}

/** Returns a log of lines, `level: sentence`. */
function linesLog(): { readonly log: Logger; readonly lines: string[] } {
  const lines: string[] = [];
  const write = (line: string): void => {
    const { level, msg } = JSON.parse(line) as { readonly level: number; readonly msg: string };
    lines.push(`${level}: ${msg}`);
  };
  return { log: pino({ base: null }, { write }), lines };
}

export interface Given {
  readonly log: FakeLog;
  readonly witnesses?: readonly TestWitness[];
  readonly quorum?: number;
  readonly sinks?: string;
  readonly collected?: CollectedCheckpoints | undefined;
  readonly folder: string;
  readonly acceptClaims?: boolean;
  readonly tenant?: string;
  /** How long a failing anchor is left alone, in milliseconds. */
  readonly retryMs?: number;
  /** How long its end waits for requests with the last head; long enough for every working anchor. */
  readonly endMs?: number;
}

export interface Opened {
  readonly anchors: Anchors;
  /** The lines of the log, `level: sentence`. */
  readonly lines: readonly string[];
  /** The name of the anchor, for each failure. */
  readonly failures: readonly string[];
}

/** Starts the anchors of a ledger, which receive each head; they end with the test. */
export function anchorsOf(t: Pick<TestContext, "after">, given: Given): Opened {
  const {
    witnesses = [],
    quorum = witnesses.length,
    sinks = "",
    collected,
    log: ledger,
    acceptClaims = false,
    tenant = null,
    retryMs = 1,
    endMs = 60_000,
  } = given;
  const policy = witnesses.length === 0 ? undefined : sound(parsePolicy(policyText(witnesses, quorum)));
  const { log, lines } = linesLog();
  const sites = { policy, sinks: sound(parseSinks(sinks)), collected, every: 1, acceptClaims };
  const failures: string[] = [];
  const pace = { betweenMs: 1, retryMs, retryMaxMs: 20 * retryMs };
  const onFailure = (by: string): void => void failures.push(by);
  const patience = { startMs: 60_000, endMs };
  const anchors = new Anchors({ ...sites, ledger, folder: given.folder, tenant, log, onFailure, pace, patience });
  t.after(() => anchors.close());
  return { anchors, lines, failures };
}

function sound<Value>(result: Result<Value, string>): Value {
  if (!result.ok) throw new Error(result.problem);
  return result.value;
}

/** Grows the ledger and announces the head to its anchors. */
export function grow({ anchors }: Opened, log: FakeLog, rows: number): void {
  log.grow(rows);
  anchors.follow({ size: log.size });
}

/** Waits until the condition is true; the test's own time limit is the bound. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 2));
}

export function vouchedBy({ anchors }: Opened, by: string): number | undefined {
  return anchors.vouched.find((vouched) => vouched.by === by)?.seq;
}

/** Starts a witness that knows the log. */
export async function witnessOf(t: Pick<TestContext, "after">, name: string, log: FakeLog): Promise<TestWitness> {
  return (await new TestWitness(name).start(t)).trust(log);
}
