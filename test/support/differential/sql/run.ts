import pg from "pg";
import type { Json } from "../../contract-records.ts";
import type { PostgresServer } from "../../postgres-server.ts";
import { changesOf, listed, readState, showsMarker, type State } from "./canaries.ts";
import { productionNames, type Written } from "./grammar.ts";
import { reachedBy, readCatalogue, type Catalogue } from "./tree.ts";

/** The record of a text, or the reason of its doubt. */
export type Reader = (text: string) => Json | string;

export interface Failure {
  readonly text: string;
  readonly effects: readonly string[];
  readonly record: Json | string;
}

export interface Count {
  readonly generated: number;
  readonly executed: number;
}

export interface Outcome {
  readonly failures: readonly Failure[];
  readonly generated: number;
  /** Statements reported as harmless and sent to the server. */
  readonly executed: number;
  /** The sent statements that the server ran without an error. */
  readonly finished: number;
  readonly productions: ReadonlyMap<string, Count>;
  /** The server's messages for statements that it rejected, with their counts. */
  readonly rejections: ReadonlyMap<string, number>;
  readonly seconds: number;
}

/** Decides on the record alone, as contracts/sql.yaml does. */
export function isHarmless(record: Json | string): boolean {
  if (typeof record === "string") return false;
  const reads = record["reads"] as readonly string[];
  return record["readOnly"] === true && reads.every((table) => listed.includes(table.replace(/^public\./, "")));
}

const timeoutMs = 1000;
/** A statement that has no other effect gets this long, because the machine may be slow. */
const secondTimeoutMs = 60_000;
const batchSize = 50;

interface Ran {
  readonly effects: readonly string[];
  readonly error: string | undefined;
}

/** Runs statements in one session as the superuser, and observes their effects. */
export class Runner {
  readonly #server: PostgresServer;
  #client: pg.Client | undefined;
  #catalogue: Catalogue | undefined;
  #state: State = {};
  #trees: string[] = [];

  constructor(server: PostgresServer) {
    this.#server = server;
  }

  /** Connects, so that the server sends its tree of every statement as a notice. */
  async open(): Promise<Catalogue> {
    await this.close();
    const options = `-c statement_timeout=${timeoutMs} -c debug_print_parse=on -c debug_pretty_print=off -c client_min_messages=log`;
    this.#client = new pg.Client({
      connectionString: this.#server.url(),
      options: `${options} -c log_min_messages=panic -c lock_timeout=500`,
      types: { getTypeParser: () => (value: string | Buffer) => String(value) },
    });
    this.#client.on("error", () => undefined);
    this.#client.on("notice", ({ message = "", detail = "" }) => this.#trees.push(`${message} ${detail}`));
    await this.#client.connect();
    this.#catalogue ??= await readCatalogue(this.#client);
    this.#state = await readState(this.#client);
    return this.#catalogue;
  }

  async close(): Promise<void> {
    await this.#client?.end().catch(() => undefined);
    this.#client = undefined;
  }

  async #run(text: string): Promise<Ran> {
    const effects: string[] = [];
    let [shown, error, code]: (string | undefined)[] = ["", undefined, undefined];
    this.#trees = [];
    try {
      const results = await this.#client?.query({ text, rowMode: "array" });
      shown = JSON.stringify([results].flat().map((result) => result?.rows));
    } catch (caught) {
      const { message, detail, code: number } = caught as pg.DatabaseError;
      [shown, error, code] = [`${message} ${detail}`, message, number];
    }
    if (code === undefined && error !== undefined) effects.push(`the connection failed: ${error}`);
    for (const tree of this.#trees) {
      if (tree.startsWith("parse tree") && this.#catalogue !== undefined)
        effects.push(...reachedBy(tree, this.#catalogue));
      else if (showsMarker(tree)) effects.push("a notice shows a marker");
    }
    if (showsMarker(shown ?? "")) effects.push("the result shows a marker");
    // A query's duration is a documented limit, and a recursive query may never end.
    const isEndless = /\brecursive\b/i.test(text);
    const isCut = code === "57014" && !isEndless;
    if (isCut && (effects.length > 0 || (await this.#isCutAgain(text)))) effects.push(`it took over ${timeoutMs} ms`);
    return { effects, error };
  }

  async #isCutAgain(text: string): Promise<boolean> {
    await this.#client?.query(`SET statement_timeout = ${secondTimeoutMs}`);
    const again = this.#client?.query({ text, rowMode: "array" });
    const code = await again?.then(
      () => undefined,
      (caught: pg.DatabaseError) => caught.code,
    );
    await this.#client?.query(`SET statement_timeout = ${timeoutMs}`);
    return code === "57014";
  }

  async #changes(): Promise<readonly string[]> {
    if (this.#client === undefined) return [];
    const state = await readState(this.#client).catch((error: unknown) => ({ connection: String(error) }));
    const changes = changesOf(this.#state, state);
    this.#state = state;
    return changes;
  }

  /** Runs texts together. If something has changed afterwards, runs each one again alone. */
  async batch(texts: readonly string[]): Promise<readonly Ran[]> {
    const together: Ran[] = [];
    for (const text of texts) together.push(await this.#run(text));
    const changed = await this.#changes();
    if (changed.length === 0) return together;
    await this.open();
    const alone: Ran[] = [];
    for (const [index, text] of texts.entries()) {
      const { effects, error } = await this.#run(text);
      const own = await this.#changes();
      const all = [...new Set([...(together[index]?.effects ?? []), ...effects, ...own])];
      alone.push({ effects: all, error });
      if (own.length > 0 || /connection/.test(error ?? "")) await this.open();
    }
    if (alone.some(({ effects }) => effects.length > 0)) return alone;
    return alone.map(({ error }) => ({ error, effects: changed.map((change) => `in a batch: ${change}`) }));
  }
}

export interface RunOptions {
  readonly runner: Pick<Runner, "batch">;
  readonly reader: Reader;
  readonly statements: () => Written;
  readonly count: number;
  /** The run ends after this many failures. */
  readonly failuresMax?: number;
}

/** Writes statements, and runs the harmless ones. */
export async function runDifferential(options: RunOptions): Promise<Outcome> {
  const { runner, reader, statements, count, failuresMax = Infinity } = options;
  const startedAt = performance.now();
  const productions = new Map(productionNames.map((name) => [name, { generated: 0, executed: 0 }]));
  const [failures, rejections]: [Failure[], Map<string, number>] = [[], new Map()];
  let [generated, executed, finished] = [0, 0, 0];
  let waiting: { readonly text: string; readonly record: Json | string }[] = [];
  const flush = async (): Promise<void> => {
    const ran = await runner.batch(waiting.map(({ text }) => text));
    for (const [index, { effects, error }] of ran.entries()) {
      const sent = waiting[index];
      executed += 1;
      if (error === undefined) finished += 1;
      else rejections.set(error, (rejections.get(error) ?? 0) + 1);
      if (effects.length > 0 && sent !== undefined) failures.push({ ...sent, effects });
    }
    waiting = [];
  };
  for (; generated < count && failures.length < failuresMax; generated += 1) {
    const { text, productions: used } = statements();
    const record = reader(text);
    const harmless = isHarmless(record);
    for (const name of used) {
      const counted = productions.get(name) ?? { generated: 0, executed: 0 };
      productions.set(name, {
        generated: counted.generated + 1,
        executed: counted.executed + (harmless ? 1 : 0),
      });
    }
    if (harmless) waiting.push({ text, record });
    if (waiting.length >= batchSize) await flush();
  }
  await flush();
  const seconds = (performance.now() - startedAt) / 1000;
  return { failures, generated, executed, finished, productions, rejections, seconds };
}

/** Runs given texts with the same property. */
export async function replay(runner: Runner, reader: Reader, texts: readonly string[]): Promise<readonly Failure[]> {
  const harmless = texts.map((text) => ({ text, record: reader(text) })).filter(({ record }) => isHarmless(record));
  const failures: Failure[] = [];
  for (let at = 0; at < harmless.length; at += batchSize) {
    const batch = harmless.slice(at, at + batchSize);
    const ran = await runner.batch(batch.map(({ text }) => text));
    for (const [index, sent] of batch.entries()) {
      const effects = ran[index]?.effects ?? [];
      if (effects.length > 0) failures.push({ ...sent, effects });
    }
  }
  return failures;
}
