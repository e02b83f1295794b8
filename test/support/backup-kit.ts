import assert from "node:assert/strict";
import { mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { backupCommand, type BackupOptions } from "../../packages/gate/src/cli/backup.ts";
import { resumeCommand, type ResumeOptions } from "../../packages/gate/src/cli/resume.ts";
import { stopCommand } from "../../packages/gate/src/cli/stop.ts";
import { check, startGate, temporaryFolder, type Running } from "./gate.ts";

const wallet =
  "{ type: object, required: [wallet], properties: { wallet: { type: string }, level: { type: number } } }";
export const purse = `contract: purse
platform: ${wallet}
tools:
  pay:
    input:
      type: object
      additionalProperties: false
      required: [amount, to]
      properties: { amount: { type: number, minimum: 0 }, to: { type: string } }
    requires: [{ when: platform.present, reason: no wallet }]
    otherwise: ALLOW
counters:
  spent: { of: [pay], per: platform.wallet, sum: input.amount, within: 24h }
  calls: { of: [pay], per: [session, key], within: day, timezone: UTC }
  all: { of: [pay], per: gate, within: 1h }
  payees: { of: [pay], per: gate, remembers: input.to }
rules:
  - { rule: budget, on: [pay], when: counters.spent >= 100, verdict: BLOCK, reason: "{counters.spent} is spent" }
  - { rule: often, on: [pay], when: counters.calls > 90 || counters.all > 90, verdict: BLOCK, reason: "often" }
  - { rule: stranger, on: [pay], when: "!(input.to in counters.payees)", verdict: ESCALATE, reason: "{input.to} is new" }
`;

export const payment = (to = "x", amount = 10): object => ({
  tool_name: "pay",
  tool_input: { amount, to },
  session_id: "s",
  platform_state: { wallet: "w" },
});

/** The folders of a gate, with its pin on another disk. */
export interface Site {
  readonly t: TestContext;
  readonly folder: string;
  readonly data: string;
  readonly pin: string;
  readonly backup: string;
}

export function siteOf(t: TestContext): Site {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, "other"));
  const pin = join(folder, "other", "head.pin");
  return { t, folder, data: join(folder, "data"), pin, backup: join(folder, "backup") };
}

export function serve({ t, folder, pin }: Site, text = purse, mandate?: string): Promise<Running> {
  const files = { contracts: { "purse.yaml": text }, ...(mandate === undefined ? {} : { mandate }) };
  return startGate(t, { folder, ...files, flags: { pin } });
}

export async function calls(site: Site, count: number): Promise<void> {
  const gate = await serve(site);
  for (let call = 0; call < count; call += 1) assert.equal((await check(gate, payment())).status, 200);
  await gate.stop();
}

export function backUp({ data, backup }: Site, over: Partial<BackupOptions> = {}): ReturnType<typeof backupCommand> {
  return backupCommand(backup, { dataDir: data, withSigningKey: true, json: false, ...over });
}

/** Runs `svc-gate resume`. After a restore it leaves a stop of every call in force. */
export function resume(site: Site, over: Partial<ResumeOptions> = {}, from?: string): ReturnType<typeof resumeCommand> {
  const { data, pin } = site;
  return resumeCommand(from, { dataDir: data, pin, afterRestore: true, reason: "r", by: "Ada", ...over });
}

/** Resumes after a restore, and lifts the stop: one more row. */
export async function resumeAndLift(...args: Parameters<typeof resume>): ReturnType<typeof resumeCommand> {
  const resumed = await resume(...args);
  const [{ data, pin }] = args;
  await stopCommand({ dataDir: data, pin, lift: true, tool: [], keep: false, list: false, json: false });
  return resumed;
}

/** Makes two answered calls, a backup and two more calls, and moves the data folder away. */
export async function lose(site: Site): Promise<void> {
  await calls(site, 2);
  await backUp(site);
  await calls(site, 2);
  renameSync(site.data, join(site.folder, "old"));
}

export async function reasonOf(gate: Running, body = payment()): Promise<string> {
  return (await check(gate, body)).json.reason;
}

export const refusedWith =
  (pattern: RegExp) =>
  (error: unknown): boolean =>
    error instanceof Error && pattern.test(error.message);
