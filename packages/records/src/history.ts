import { hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { loadFunctions, type PolicySet, type Diagnostic } from "../../core/src/contract/mod.ts";
import { recompile, type CompileOptions } from "../../readers/src/compile.ts";
import { outcomeRows, parseLeaf, type StoredRow } from "../../core/src/record/entry/mod.ts";
import { ledgerTables, type LedgerHistory, type Rows } from "../../gate/src/ledger/mod.ts";
import { good, visible, type Result } from "../../core/src/wire/mod.ts";
import { io, BadInput, readText } from "../../gate/src/cli/mod.ts";
import { ledgerSource, type DatabaseOption } from "../../gate/src/cli/ledger-source.ts";

/** A row of a ledger: its leaf, which is hashed, and the evidence that the leaf commits to. */
export type RecordedRow = Pick<StoredRow, "evidence" | "leaf" | "seq">;

/** Receipts to be read again, wherever they are stored. */
export interface History extends Pick<Rows<RecordedRow>, "scan"> {
  /** The number of rows; undefined if it is unknown before they are read. */
  readonly rows: number | undefined;
  /** Only if rows can be found without reading those before. */
  readonly rowsAt?: Rows<RecordedRow>["rowsAt"];
  /** The first row at or after a time, in milliseconds since the epoch, if it can be found without reading all rows. */
  readonly firstSince?: (at: number) => Promise<number>;
  /** The body of GET /rules by its SHA-256 in hex; undefined if it is unavailable. */
  contractText(digest: string): Promise<string | undefined>;
  /** A contract that is compiled already, by the digest of its text. */
  findCompiled?(digest: string): PolicySet | undefined;
  /** True if a counter has met rows that are older than it; if the ledger's counters are known. */
  readonly hasOlder?: (digest: string) => boolean;
  /** The digest of a counter's key in effects, if the ledger's secret is available. */
  readonly keyDigest: ((key: string) => string) | undefined;
}

/** Receipts that must be closed after they were read. */
export type OpenHistory = AsyncDisposable & History;

/** The contracts that receipts name. */
export type ContractSource = Pick<History, "findCompiled" | "contractText">;

/** The source of receipts; the first one that is given counts. */
export interface ReceiptSource {
  /** A running gate, and a file with a key of scope receipts. */
  readonly url?: string | undefined;
  readonly keyFile?: string | undefined;
  /** Receipts as GET /receipts shows them: JSON Lines, or pages of it. */
  readonly file?: string | undefined;
  /** Files with bodies of GET /rules: the contracts in force for the receipts of `file`. */
  readonly rules?: readonly string[];
  readonly database?: DatabaseOption;
  /** A data folder, whether or not a gate is serving it. */
  readonly folder: string;
}

/**
 * Opens receipts for reading.
 *
 * @throws {BadInput} or {LedgerRefused} with a sentence for the operator
 */
export async function openHistory({
  url,
  keyFile,
  file,
  rules = [],
  database,
  folder,
}: ReceiptSource): Promise<OpenHistory> {
  if (url !== undefined) return openGate(url, await readKey(keyFile));
  if (file !== undefined) return openFile(file, rules);
  const ledger = await ledgerSource(folder, database).open();
  return { ...ledgerHistory(ledger), [Symbol.asyncDispose]: () => ledger.close() };
}

/** The rows of a ledger through the last one when it was opened. */
export function ledgerHistory(ledger: LedgerHistory): History {
  const kept = new Map(ledger.counters.map((counter) => [counter.digest, counter]));
  return {
    ...ledger,
    scan: (from) => rowsThrough(ledger.rows, ledger.scan(from)),
    firstSince: (at) => ledgerTables.firstSince(ledgerTables.leafReader(ledger.tables), ledger.rows, at),
    hasOlder: (digest) => {
      const { folded = 0, unknownThrough = -1 } = kept.get(digest) ?? {};
      return folded > 0 || unknownThrough >= 0;
    },
  };
}

/** The rows of some slices through one row. */
export async function* rowsThrough(
  last: number,
  slices: AsyncIterable<readonly RecordedRow[]>,
): AsyncGenerator<readonly RecordedRow[]> {
  for await (const slice of slices) {
    const rows = slice.filter(({ seq }) => seq <= last);
    yield rows;
    if (rows.length < slice.length) return;
  }
}

/** The rows from one number up to another, one after another. */
export async function* eachRow(
  history: Pick<History, "scan">,
  first: number,
  end: number = Infinity,
): AsyncGenerator<RecordedRow> {
  for await (const slice of history.scan(first)) {
    for (const row of slice) {
      if (row.seq >= end) return;
      yield row;
    }
  }
}

/** Compiles the contract of a receipt, by the digest that it names; undefined if its text is unavailable. */
export async function contractOf(
  history: ContractSource,
  named: string,
  options: CompileOptions = {},
): Promise<Result<PolicySet, readonly Diagnostic[]> | undefined> {
  const known = options.probe === undefined ? history.findCompiled?.(named.replace(/^sha256:/, "")) : undefined;
  if (known !== undefined) return good(known);
  const text = await history.contractText(named.replace(/^sha256:/, ""));
  if (text === undefined) return undefined;
  const compiled = recompile(text, options);
  if (compiled.ok) await loadFunctions(compiled.value);
  return compiled;
}

export async function rowOf(history: Pick<History, "scan">, seq: number): Promise<RecordedRow | undefined> {
  for await (const slice of history.scan(seq)) return slice.find((row) => row.seq === seq);
  return undefined;
}

/** Rows by their numbers, in order. */
export async function rowsAt(history: History, rows: readonly number[]): Promise<readonly RecordedRow[]> {
  if (history.rowsAt !== undefined) return history.rowsAt(rows);
  const found = [];
  for (const seq of rows) found.push(await rowOf(history, seq));
  return found.filter((row) => row !== undefined);
}

async function readKey(file: string | undefined): Promise<string> {
  const given = io().env["SVC_API_KEY"];
  if (file === undefined && given !== undefined) return given;
  if (file === undefined) throw new BadInput("a gate needs a key: name its file with --key-file");
  return (await readText(file)).trim();
}

const pageRows = 1000;

/** Pages descend from a number, so the oldest rows are requested with the number just above them. */
async function openGate(base: string, key: string): Promise<OpenHistory> {
  const ask = async (path: string): Promise<Response> => {
    try {
      return await fetch(`${base.replace(/\/$/, "")}${path}`, {
        headers: { authorization: `Bearer ${key}` },
        redirect: "error",
      });
    } catch (error) {
      const { cause } = error as { readonly cause?: NodeJS.ErrnoException };
      const why = cause?.code ?? cause?.message ?? String(error);
      throw new BadInput(`${base} does not answer (${why}): is a gate listening there?`);
    }
  };
  const page = async (query: string): Promise<readonly RecordedRow[]> => {
    const answer = await ask(`/receipts?kind=all&${query}`);
    if (!answer.ok) throw new BadInput(`${base} answered ${answer.status} to GET /receipts: ${await detailOf(answer)}`);
    return readReceipts(await answer.text(), `${base}/receipts`);
  };
  const rows = (await page("limit=1")).at(-1)?.seq ?? 0;
  return {
    rows,
    scan: (from) => scanAscending(from, rows, page),
    rowsAt: async (numbers) => (await Promise.all(numbers.map((seq) => page(`before=${seq + 1}&limit=1`)))).flat(),
    firstSince: async (at) => ((await page(`until=${at}&limit=1`)).at(-1)?.seq ?? 0) + 1,
    contractText: async (digest) => {
      const answer = await ask(`/rules?contract=sha256:${digest}`);
      if (!answer.ok) return undefined;
      const text = await answer.text();
      // The gate is not trusted: the text must match its digest.
      return hash("sha256", text, "hex") === digest ? text : undefined;
    },
    keyDigest: undefined,
    [Symbol.asyncDispose]: async () => undefined,
  };
}

async function detailOf(answer: Response): Promise<string> {
  try {
    return ((await answer.json()) as { readonly detail?: string }).detail ?? "without a detail";
  } catch {
    return "not a gate's answer";
  }
}

async function* scanAscending(
  from: number,
  last: number,
  page: (query: string) => Promise<readonly RecordedRow[]>,
): AsyncGenerator<readonly RecordedRow[]> {
  for (let next = from; next <= last; next += pageRows) {
    const upTo = Math.min(next + pageRows, last + 1);
    yield await page(`before=${upTo}&limit=${upTo - next}`);
  }
}

/** The members of a receipt from GET /receipts that are needed here. */
type ShownReceipt = Omit<RecordedRow, "evidence"> & { readonly evidence: readonly string[] };

async function openFile(file: string, rules: readonly string[]): Promise<OpenHistory> {
  const texts = new Map<string, string>();
  for (const name of rules) {
    const text = await readText(name);
    texts.set(hash("sha256", text, "hex"), text);
  }
  await readText(file);
  let named: Promise<ReadonlyMap<number, RecordedRow>> | undefined;
  return {
    rows: undefined,
    scan: (from) => readLines(file, from),
    rowsAt: async (rows) => {
      const found = await (named ??= namedRows(file));
      return rows.flatMap((seq) => found.get(seq) ?? []);
    },
    contractText: async (digest) => texts.get(digest),
    keyDigest: undefined,
    [Symbol.asyncDispose]: async () => undefined,
  };
}

/** The rows of outcomes, and those that they name: a file has no index. */
async function namedRows(file: string): Promise<ReadonlyMap<number, RecordedRow>> {
  const named = new Set<number>();
  for await (const rows of readLines(file, 1)) {
    for (const { seq, leaf: text, evidence } of rows) {
      const leaf = parseLeaf(text);
      const outcome = leaf && outcomeRows.readOutcome(leaf, evidence);
      for (const row of outcome === undefined ? [] : [seq, outcome.row, ...outcome.before]) named.add(row);
    }
  }
  const found = new Map<number, RecordedRow>();
  for await (const rows of readLines(file, 1)) for (const row of rows) if (named.has(row.seq)) found.set(row.seq, row);
  return found;
}

async function* readLines(file: string, from: number): AsyncGenerator<readonly RecordedRow[]> {
  let [line, before] = [0, 0];
  for await (const text of createInterface({ input: createReadStream(file, "utf8"), crlfDelay: Infinity })) {
    line += 1;
    if (text.trim() === "") continue;
    const rows = readReceipts(text, `${file}:${line}`);
    for (const { seq } of rows) {
      if (seq <= before)
        throw new BadInput(`${file}:${line}: receipt ${seq} follows receipt ${before}: write the oldest first`);
      before = seq;
    }
    yield rows.filter(({ seq }) => seq >= from);
  }
}

/** Oldest first: a receipt, or a page of GET /receipts, whose newest row is first. */
function readReceipts(text: string, source: string): readonly RecordedRow[] {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch (error) {
    throw new BadInput(
      `${source}: ${visible((error as Error).message)}; each line is a receipt, or a page of GET /receipts`,
    );
  }
  const page = (found as { readonly receipts?: unknown } | null)?.receipts;
  const receipts = Array.isArray(page) ? page.toReversed() : [found];
  if (!receipts.every(isReceipt))
    throw new BadInput(
      `${source}: not a receipt as GET /receipts shows it: \`seq\`, \`leaf\` and \`evidence\` are needed`,
    );
  return receipts.map(({ seq, leaf, evidence }) => ({ seq, leaf, evidence: evidence.join("~") }));
}

function isReceipt(value: unknown): value is ShownReceipt {
  const { seq, leaf, evidence } = (value ?? {}) as Partial<ShownReceipt>;
  return (
    Number.isSafeInteger(seq) &&
    typeof leaf === "string" &&
    Array.isArray(evidence) &&
    evidence.every((part) => typeof part === "string")
  );
}
