import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { apiKey, root, startGate, type GateProcess } from "../gate-process.ts";
import type { Mutation } from "../mutation/mutate.ts";
import { mutatedEnvironment, preload } from "../mutation/sources.ts";
import { contract, type Answered, type Load } from "./load.ts";
import { LedgerComparison } from "./ledger-comparison.ts";

/** A gate's data folder and its settings. */
export interface Setup {
  readonly data: string;
  readonly settings: Readonly<Record<string, string>>;
}

/**
 * @param folder gets the contract; the data folder is in it unless it is named
 * @param changes mutations that break the gate on purpose
 */
export function setupIn(
  folder: string,
  { data = join(folder, "data"), changes = [] as readonly Mutation[] } = {},
): Setup {
  const mandate = join(folder, "load.yaml");
  mkdirSync(folder, { recursive: true });
  writeFileSync(mandate, contract);
  const settings = {
    SVC_MODE: "enforce",
    SVC_DATA_DIR: data,
    SVC_MANDATE: mandate,
    NODE_COMPILE_CACHE: join(root, "node_modules", ".cache", "compiled"),
    ...(changes.length === 0 ? {} : { NODE_OPTIONS: `--import=${preload}`, ...mutatedEnvironment(changes) }),
  };
  return { data, settings };
}

/** A gate that answers a second before it commits, so that each kill under load loses an answer. */
export const answersEarly: Mutation = {
  within: "SqliteStore.#commit",
  find: 'await this.#writer.call("commit", $$batch);',
  put: 'setTimeout(() => void this.#writer.call("commit", $$batch), 1000);',
};

/** A gate that answers a decision while its transaction still waits. */
export const decidesEarly: readonly Mutation[] = [
  {
    within: "ApprovalDesk.decide",
    first: "let early; const isEarly = new Promise((resolve) => (early = resolve));",
  },
  {
    within: "ApprovalDesk.decide",
    find: "const done = await this.#options.exclusive($work);",
    put: `
      const answered = async (timed) => {
        const found = await this.#decideIn(timed, key, wanted, { changed, approved });
        if (!found.ok) return found;
        early(found);
        await new Promise((resolve) => setTimeout(resolve, 300));
        return found;
      };
      const done = await Promise.race([this.#options.exclusive(answered), isEarly]);`,
  },
];

/** A store that never flushes. */
export const flushesNever: readonly Mutation[] = [
  { within: "openForWriting", text: "synchronous = FULL", put: "synchronous = OFF" },
  { within: "openForWriting", find: '"wal 2"', put: '"wal 0"' },
];

/** The ledger's state for the answers that clients got before a fault. */
export interface Examined {
  readonly rows: number;
  /** Answers that are not in the ledger as given. */
  readonly lost: readonly Answered[];
}

/**
 * Starts the gate on the folder after a fault: it must serve, its chain must verify, its counters must be right, and it
 * must answer further calls.
 *
 * @param answers which must all be there
 * @param further makes calls afterwards; none by default
 * @throws if the gate does not start, or its ledger has a fault other than a lost answer
 */
export async function examine(
  { data, settings }: Setup,
  answers: readonly Answered[],
  further?: Load,
): Promise<Examined> {
  const gate = await startGate({ settings });
  const comparison = new LedgerComparison();
  try {
    comparison.follow(join(data, "ledger.db"));
    const lost = answers.filter((answer) => !comparison.isKept(answer));
    await verifies(gate, comparison.rows);
    const rows = comparison.rows;
    if (further !== undefined) {
      const before = further.answers.length;
      await further.run(gate.url, 1, 2);
      assert.equal(further.answers.length, before + 2, `it goes on: ${JSON.stringify(further.refusals)}`);
    }
    return { rows, lost };
  } finally {
    await gate.kill();
  }
}

export async function verifies({ url }: Pick<GateProcess, "url">, rows: number): Promise<void> {
  const response = await fetch(`${url}/ledger/verify`, {
    headers: { authorization: `Bearer ${apiKey}`, connection: "close" },
  });
  const { ok, rows: verified } = (await response.json()) as { ok: boolean; rows: number };
  assert.deepEqual({ ok, verified }, { ok: true, verified: rows });
}
