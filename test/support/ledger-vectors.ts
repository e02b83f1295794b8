/**
 * Writes or compares spec/vectors/chains: eleven worked rows, made by the ledger itself with fixed salts and a fixed
 * secret.
 *
 *     node test/support/ledger-vectors.ts --write
 */
import crypto from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import type { CheckEntry, CounterEvent } from "../../packages/gate/src/ledger/mod.ts";

export const vectorFile: string = fileURLToPath(new URL("../../spec/vectors/chains/rows.json", import.meta.url));

const about = [
  "Eleven worked rows of one ledger. `given` is what the gate handed over; everything else follows from it, from the salts",
  "in the disclosures, and from counter_secret: a move's key is HMAC-SHA256 under that text. Recomputed by",
  "test/unit/ledger/entry/format.test.ts and test/support/recompute_chain.py; written by `node test/support/ledger-vectors.ts --write`.",
].join(" ");
const log = "example.org/worked";
const engine = "svc-gate/1.0.0";
const counterSecret = "0f".repeat(32);
const contracts = ["contract: payments\n", "contract: mail\nsummary: 目 \u{1f4b3}\n"];

type Given = Omit<CheckEntry, "contract"> & { readonly contract: 0 | 1; readonly moves: readonly CounterEvent[] };

const definitions = ['{"counting":"attempts","of":["payment.send"],"per":["session"]}', '{"sum":"input.amount"}'];
const [calls = "", spent = ""] = definitions.map((definition) => crypto.hash("sha256", definition, "hex"));

const base: Given = {
  at: 1_790_000_000_000,
  keyName: "default",
  mode: "enforce",
  toolName: "payment.send",
  routed: true,
  sessionId: "run-1",
  inputText: '{"amount":10,"currency":"USD"}',
  platformText: null,
  verdict: "ALLOW",
  answered: "ALLOW",
  reason: "Svc: the payee is registered, and 10 USD is within every limit",
  rule: "payments.$otherwise",
  contract: 0,
  outcome: { counters: {}, errors: {}, fired: [] },
  moves: [],
};

/** The purpose of each of the eleven rows, and its difference from the simplest row. */
const rows: readonly (readonly [title: string, over: Partial<Given>])[] = [
  ["the first row: nothing but a call", {}],
  [
    "a snapshot, and observe mode: answered is not what was reached",
    {
      at: base.at + 1,
      mode: "observe",
      platformText: '{"monthly_spend_usd":190,"approved_payees":["0xabc","0xdef"],"now_epoch":1790000000}',
      verdict: "BLOCK",
      rule: "payments.within-monthly-budget",
      reason: "Svc: 20 USD would carry the wallet past its budget of 200 USD a month, of which 190 USD is spent",
      outcome: { counters: {}, errors: {}, fired: ["payments.within-monthly-budget"] },
    },
  ],
  [
    "assist mode softens a BLOCK; two counters moved, one by a fraction",
    {
      at: base.at + 1,
      mode: "assist",
      verdict: "BLOCK",
      answered: "ESCALATE",
      rule: "payments.within-payment-limit",
      outcome: {
        counters: { "payments.calls": "0", "payments.spent": "1234.5" },
        errors: {},
        fired: ["payments.within-payment-limit"],
      },
      moves: [
        { counter: calls, key: '[["session","default","run-1"]]', amount: "1" },
        { counter: spent, key: '[["gate"]]', amount: "60.05" },
      ],
    },
  ],
  [
    "an unknown tool: the leaf names none",
    {
      toolName: "never.heard-of",
      routed: false,
      verdict: "BLOCK",
      answered: "BLOCK",
      rule: "$route",
      reason: 'Svc: no contract routes the tool "never.heard-of"',
    },
  ],
  ["no session", { at: base.at + 70_000, sessionId: null }],
  [
    "names in other scripts, and characters that JSON escapes",
    { toolName: '支払い/送金 "x\\y"', sessionId: "läuft-\u{1f680}-\u007f\u0001", keyName: "café" },
  ],
  [
    "numbers as they were sent: large, small, negative zero, an exponent",
    { inputText: '{"amount":123456789012345678901234567890.10,"rate":1E-400,"zero":-0,"more":1.0e+5}' },
  ],
  [
    "escapes stay as they were sent, white space outside strings does not",
    { inputText: '{"note":"\\u00e4\\/ \\ud83d\\ude80","text":" two  blanks\\t","é":[1,[2,{"a":null}]]}' },
  ],
  [
    "a rule that could not be evaluated, under another contract",
    {
      contract: 1,
      toolName: "mail.send",
      verdict: "BLOCK",
      answered: "BLOCK",
      rule: "mail.$requires.2",
      outcome: { counters: {}, errors: { "mail.ratio": "division by zero" }, fired: [] },
    },
  ],
  [
    "the longest legal names",
    {
      contract: 1,
      toolName: "t".repeat(256),
      sessionId: "s".repeat(256),
      keyName: "k".repeat(64),
      at: base.at + 86_400_000,
      moves: [{ counter: calls, key: '[["key","default"]]', amount: "1" }],
    },
  ],
  [
    "a call by the key of an agent's host, which names an approval",
    {
      at: base.at + 86_400_001,
      keyName: "laptop",
      keyKind: "host",
      approvalId: `apr_3_${"5".repeat(32)}`,
      platformText: '{"cwd":"/home/anna"}',
    },
  ],
];

interface Worked {
  readonly title: string;
  readonly given: Given;
  readonly entry: CheckEntry;
}

function worked(): readonly Worked[] {
  let at = base.at;
  return rows.map(([title, over]) => {
    at = over.at ?? at;
    const given = { ...base, ...over, at };
    const { moves: _, contract, ...rest } = given;
    return { title, given, entry: { ...rest, contract: crypto.hash("sha256", contracts[contract] ?? "", "hex") } };
  });
}

/** Returns the text of the file, as the ledger makes it today. */
async function makeVectors(): Promise<string> {
  const restore = fixRandomness();
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-vectors-"));
  try {
    // Loaded late, because it reads its random source when it is first used.
    const { leafHash } = await import("../../packages/core/src/record/entry/mod.ts");
    const { openLedger } = await import("../../packages/gate/src/ledger/mod.ts");
    await (await openLedger({ folder, engine, name: log })).close();
    fixSecret(folder);
    const ledger = await openLedger({ folder, engine });
    for (const contract of contracts) await ledger.keepContract(contract);
    for (const definition of definitions)
      await ledger.keepCounter({ definition, through: null, unknownThrough: -1 }, []);
    for (const { given, entry } of worked()) {
      const batch = await ledger.begin();
      batch.append(entry, given.moves);
      await batch.commit();
    }
    await ledger.close();
    const database = new DatabaseSync(join(folder, "ledger.db"), { readOnly: true });
    const stored = database.prepare("SELECT seq, leaf, evidence FROM receipts ORDER BY seq").all();
    database.close();
    const made = worked();
    const shown = stored.map(({ leaf, evidence }, index) => ({
      title: made[index]?.title,
      given: made[index] && onTheWire(made[index].given),
      leaf: String(leaf),
      hash: leafHash(String(leaf)),
      evidence: String(evidence).split("~"),
    }));
    const file = { about, log, engine, counter_secret: counterSecret, contracts, counters: definitions, rows: shown };
    return `${JSON.stringify(file, null, 1)}\n`;
  } finally {
    restore();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Names in other languages' style; the texts of input and platform are as received. */
function onTheWire(given: Given): object {
  const { keyName, keyKind, approvalId, toolName, sessionId, inputText, platformText, ...same } = given;
  return {
    ...same,
    key: keyName,
    // The members of a call that most calls do not have.
    ...(keyKind !== undefined && { rare: { approval: approvalId, key_kind: keyKind } }),
    tool_name: toolName,
    session_id: sessionId,
    input: inputText,
    platform: platformText,
  };
}

/** Fixed salts: SHA-256 of a running number. */
function fixRandomness(): () => void {
  const original = crypto.randomFillSync;
  let blocks = 0;
  crypto.randomFillSync = ((target: Buffer) => {
    for (let at = 0; at < target.length; at += 32) {
      blocks += 1;
      crypto.hash("sha256", `salt ${blocks}`, "buffer").copy(target, at);
    }
    return target;
  }) as typeof crypto.randomFillSync;
  syncBuiltinESMExports();
  return () => {
    crypto.randomFillSync = original;
    syncBuiltinESMExports();
  };
}

function fixSecret(folder: string): void {
  const database = new DatabaseSync(join(folder, "ledger.db"));
  const signer = database.prepare("SELECT value FROM meta WHERE name = 'signer'").get()?.["value"];
  const update = database.prepare("UPDATE meta SET value = ? WHERE name = ?");
  update.run(counterSecret, "counter_secret");
  update.run(
    crypto.hash("sha256", JSON.stringify({ layout: "2", log, counter_secret: counterSecret, signer }), "hex"),
    "check",
  );
  database.close();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv[2] === "--write") writeFileSync(vectorFile, await makeVectors());
  else if (process.argv[2] === "--print") process.stdout.write(await makeVectors());
  else throw new Error("usage: node test/support/ledger-vectors.ts --write | --print");
}
