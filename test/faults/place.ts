import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { apiKey, root, startGate, type GateProcess } from "../gate-process.ts";
import { contract, type Answered, type Load } from "./load.ts";
import { Reckoning } from "./reckoning.ts";

/** A gate's data folder and what it is started with. */
export interface Place {
  readonly data: string;
  readonly settings: Readonly<Record<string, string>>;
}

/** Another wording of one of the gate's sources: the first match of a regular expression, and what stands for it. */
export interface Change {
  /** Such as `src/ledger/pin.ts`. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

const preload = pathToFileURL(join(import.meta.dirname, "gate-preload.ts")).href;

/**
 * @param folder gets the contract; the data folder is in it unless it is named
 * @param changes a gate that is broken on purpose
 */
export function placeIn(
  folder: string,
  { data = join(folder, "data"), changes = [] as readonly Change[] } = {},
): Place {
  const mandate = join(folder, "load.yaml");
  mkdirSync(folder, { recursive: true });
  writeFileSync(mandate, contract);
  const settings = {
    SVC_MODE: "enforce",
    SVC_DATA_DIR: data,
    SVC_MANDATE: mandate,
    NODE_COMPILE_CACHE: join(root, "node_modules", ".cache", "compiled"),
    ...(changes.length === 0 ? {} : { NODE_OPTIONS: `--import=${preload}`, FAULTS_CHANGES: JSON.stringify(changes) }),
  };
  return { data, settings };
}

/** A gate that answers before it commits: what every campaign must notice. */
export const answersEarly: Change = {
  file: "src/ledger/stores/sqlite.ts",
  from: String.raw`await (this\.#writer\.call\("commit",[^;]*\));`,
  to: "setTimeout(() => void $1, 30);",
};

/** A store that asks for no flush at all. */
export const flushesNever: readonly Change[] = [
  { file: "src/ledger/stores/sqlite-file.ts", from: "PRAGMA synchronous = FULL;", to: "PRAGMA synchronous = OFF;" },
  { file: "src/ledger/stores/sqlite-file.ts", from: `"wal 2"`, to: `"wal 0"` },
];

/** What became of the answers that clients got before a fault. */
export interface Examined {
  readonly rows: number;
  /** Answers that are not in the ledger as they were given. */
  readonly lost: readonly Answered[];
}

/**
 * Starts the gate on what a fault has left: it serves, its chain verifies, its counters add up, and it goes on.
 *
 * @param answers which must all be there
 * @param further who asks again afterwards; nobody by default
 * @throws when the gate does not start, or anything is wrong with its ledger but a lost answer
 */
export async function examine(
  { data, settings }: Place,
  answers: readonly Answered[],
  further?: Load,
): Promise<Examined> {
  const gate = await startGate({ settings });
  const reckoning = new Reckoning();
  try {
    reckoning.follow(join(data, "ledger.db"));
    const lost = answers.filter((answer) => !reckoning.isKept(answer));
    await verifies(gate, reckoning.rows);
    const rows = reckoning.rows;
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
