import { createHash } from "node:crypto";
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { applyAct, openApproval, type Approval, type ApprovalRequest } from "../../packages/core/src/approvals/mod.ts";
import type { Canonical } from "../../packages/core/src/wire/mod.ts";
import { zeroHash } from "../../packages/core/src/record/entry/leaf.ts";
import { openLedger, type CheckEntry, type CounterEvent, type Ledger } from "../../packages/gate/src/ledger/mod.ts";
import type { Leaf } from "../../packages/core/src/record/entry/mod.ts";

/** Shared by the tests of the ledger: a temporary folder, entries, a small ledger with one of everything. */

export function sha256(text: string | Uint8Array): string {
  return createHash("sha256").update(text).digest("hex");
}

const folders: string[] = [];
process.once("exit", () => folders.forEach(removeFolder));

/** Makes a folder that is removed with this process, if nobody removes it before. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-test-"));
  folders.push(folder);
  return folder;
}

/** Removes a folder, even if an open ledger still writes to it or a test has made it read-only. */
export function removeFolder(folder: string): void {
  const options = { recursive: true, force: true, maxRetries: 20 } as const;
  try {
    rmSync(folder, options);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EACCES") throw error;
    makeWritable(folder);
    rmSync(folder, options);
  }
}

function makeWritable(folder: string): void {
  chmodSync(folder, 0o700);
  for (const inner of readdirSync(folder, { withFileTypes: true }))
    if (inner.isDirectory()) makeWritable(join(folder, inner.name));
}

/**
 * Makes a folder that is removed after the test. A ledger closed later may still write to it; then it is removed with
 * the process.
 */
export function temporaryFolder(t: Pick<TestContext, "after">): string {
  const folder = newFolder();
  t.after(() => removeFolder(folder));
  return folder;
}

export const engine = "svc-gate/test";
export const contracts: readonly [string, string] = ["contract: first\n", "contract: second, with 目 and \u{1f511}\n"];
export const at0 = 1_790_000_000_000;

export function entry(over: Partial<CheckEntry> = {}): CheckEntry {
  return {
    at: at0,
    keyName: "default",
    mode: "enforce",
    toolName: "payment.send",
    routed: true,
    sessionId: "run-1",
    inputText: '{"amount":10}',
    platformText: null,
    verdict: "ALLOW",
    answered: "ALLOW",
    reason: "Svc: the payee is registered, and 10 USD is within every limit",
    rule: "payments.$otherwise",
    contract: sha256(contracts[0]),
    outcome: { counters: {}, errors: {}, fired: [] },
    ...over,
  };
}

/** Commits one batch. */
export async function append(
  ledger: Ledger,
  rows: readonly (readonly [CheckEntry, readonly CounterEvent[]])[],
): Promise<void> {
  const batch = await ledger.begin();
  for (const [row, moves] of rows) batch.append(row, moves);
  await batch.commit();
}

/** Counters by the way in which they got their events. */
export const definitions = {
  live: "moved from row 1",
  mixed: "folded at row 6, then moved",
  folded: "folded once",
} as const;

const tools = ["payment.send", "mail.send", "never.heard-of", "payment.send", "目-tool", "shell"];

function rowOf(seq: number): readonly [CheckEntry, readonly CounterEvent[]] {
  const late = seq > 6;
  const tool = tools[seq % tools.length] ?? "";
  const verdict = (["ALLOW", "BLOCK", "ESCALATE"] as const)[seq % 3] ?? "ALLOW";
  const moves: CounterEvent[] = [];
  if (seq % 3 !== 1) moves.push({ counter: sha256(definitions.live), key: `run-${seq % 2}`, amount: `${seq}.25` });
  if (late && seq % 2 === 0) moves.push({ counter: sha256(definitions.mixed), key: "gate", amount: "1" });
  const row = entry({
    at: at0 + Math.floor(seq / 2) * 1000,
    toolName: tool,
    routed: tool !== "never.heard-of",
    sessionId: seq % 4 === 0 ? null : `run-${seq % 2}`,
    platformText: seq % 3 === 0 ? `{"monthly_spend_usd":${seq}.50,"note":"ä \\u00e4"}` : null,
    mode: (["observe", "assist", "enforce"] as const)[seq % 3] ?? "observe",
    verdict,
    answered: seq % 3 === 0 ? "ALLOW" : verdict,
    contract: sha256(contracts[late ? 1 : 0]),
  });
  return [row, moves];
}

export const sampleRows = 17;
/** The rows of the sample whose approvals are denied and open. */
export const [deniedRow, openRow] = [13, 15];
/** The row of a call that failed. The next row has its outcome. */
export const failedRow = 16;

/**
 * Makes a closed ledger of seventeen rows, two contracts, three counters of which two were folded later, two approvals,
 * two recorded answers, and an outcome.
 */
export async function makeSample(folder: string, pinFile?: string): Promise<void> {
  const ledger = await openLedger({ folder, engine, pinFile, name: "example.org/sample" });
  await fillSample(ledger);
  await ledger.close();
}

/** Makes the same ledger and leaves it open. */
export async function fillSample(ledger: Ledger): Promise<void> {
  const keep = (definition: string, through: number | null, found: readonly number[]): Promise<void> =>
    ledger.keepCounter(
      { definition, through, unknownThrough: -1 },
      found.map((seq) => ({
        counter: sha256(definition),
        key: "gate",
        amount: String(seq),
        seq,
        at: rowOf(seq)[0].at,
      })),
    );
  await ledger.keepContract(contracts[0]);
  await keep(definitions.live, null, []);
  await append(ledger, [1, 2, 3].map(rowOf));
  await append(ledger, [4, 5, 6].map(rowOf));
  await ledger.keepContract(contracts[1]);
  await keep(definitions.mixed, 4, [1, 4]);
  await keep(definitions.mixed, 6, [6]);
  await keep(definitions.mixed, null, []);
  await keep(definitions.folded, 6, [2, 3]);
  for (let seq = 7; seq < deniedRow; seq += 1) await append(ledger, [rowOf(seq)]);
  await deny(ledger, await park(ledger));
  await park(ledger);
  await fail(ledger);
}

/** Appends a call that was let through, and its outcome, which takes its amount back. */
export async function fail(ledger: Ledger, at = at0 + failedRow * 1000): Promise<void> {
  const [contract, mode] = [sha256(contracts[1]), "enforce"] as const;
  const called = await ledger.begin();
  const event = { counter: sha256(definitions.live), key: "run-1", amount: "7.5" };
  const { seq, hash, effects } = called.append(entry({ at, contract, mode }), [event]);
  await called.commit();
  const transaction = await ledger.begin();
  const outcome = { row: seq, hash, status: "failed", may_lower: true, before: [] } as const;
  const reason = `Svc: the outcome of row ${seq} is failed`;
  transaction.outcome({ outcome, at: at + 1000, by: "books", reason, contract, mode, added: [], taken: effects });
  await transaction.commit();
}

/** Appends a call that waits for a person. It reserves an amount, and its answer is recorded for repeats. */
export async function park(ledger: Ledger): Promise<Approval> {
  const transaction = await ledger.begin();
  const row = transaction.head.seq + 1;
  const asking: ApprovalRequest = {
    attach: sha256(`attach ${row}`),
    binding: sha256(`binding ${row}`),
    batch: true,
    causes: { "payments.large": sha256("large") },
    decide_by: at0 + 3_600_000,
    use_within: 600_000,
    needs: [{ by: ["finance"], of: 1 }],
    pins: {},
    shown: { counters: {}, facts: {} },
  };
  const { at, keyName, toolName, sessionId, rule } = entry({ at: at0 + row * 1000, rule: "payments.large" });
  const outcome = {
    approval: asking as unknown as Canonical,
    asked: { how: "opened" },
    counters: {},
    errors: {},
    fired: [],
  };
  const call = entry({ at, rule, contract: sha256(contracts[1]), verdict: "ESCALATE", answered: "ESCALATE", outcome });
  const reservation = { counter: sha256(definitions.live), key: "run-1", amount: `${row}.5`, held: true } as const;
  const { hash } = transaction.append(call, [reservation]);
  const opening = { row, hash, at, key: keyName, session: sessionId, tool: toolName, rule, asking, own: [] };
  const approval = openApproval(opening);
  transaction.keepApproval(approval);
  const answer = { row, at, bodyDigest: sha256(`body ${row}`), reason: "Svc: \0", approval: null };
  transaction.recordAnswer(transaction.repeatId(keyName, sha256(`call ${row}`).slice(0, 32)), answer);
  await transaction.commit();
  return approval;
}

/** Denies a parked call. */
export async function deny(ledger: Ledger, approval: Approval, at = at0 + (approval.row + 1) * 1000): Promise<void> {
  const transaction = await ledger.begin();
  const { row, hash } = approval;
  const denial = { row, hash, person: "anna", comment: "", until: at + 86_400_000, scope: "call" } as const;
  const act = { act: "approval.deny", ...denial } as const;
  const reason = `Svc: anna denied the call of row ${row}`;
  transaction.change({
    at,
    by: "laptop",
    act: act.act,
    body: denial,
    reason,
    contract: sha256(contracts[1]),
    mode: "enforce",
  });
  transaction.release(row, []);
  const after = applyAct(approval, act, { seq: transaction.head.seq, at, by: "laptop" });
  if (after !== undefined) transaction.keepApproval(after);
  await transaction.commit();
}

/** Returns a leaf of a check, or of an administrative event, in which only its number matters. */
export function leafOf(seq: number, act: string | null): Leaf {
  const kind = act === null ? "check" : "change";
  const nothing = { answered: null, contract: null, key: null, mode: null, rule: null, tool: null, verdict: null };
  return {
    ...nothing,
    act,
    at: seq,
    check: null,
    engine: "e",
    evidence: "",
    kind,
    log: "l",
    prev: zeroHash,
    seq,
    v: 1,
  };
}
