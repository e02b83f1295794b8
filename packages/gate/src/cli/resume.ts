import { userInfo } from "node:os";
import { resetCounters, resumeAfterRestore, type ResumeResult, type ResumedCounter } from "../server/mod.ts";
import { dataFolder } from "../ledger/mod.ts";
import { visible } from "../../../core/src/wire/mod.ts";
import { locateOffline } from "./offline-ledger.ts";
import { othersOf } from "./others.ts";
import { BadInput, type Outcome } from "./outcome.ts";
import { restoreAll, planAll, type RestoreOptions } from "./restore.ts";

export interface ResumeOptions extends RestoreOptions {
  readonly afterRestore: boolean;
  readonly reason: string;
  /** Counters that count from zero, starting at this row. */
  readonly reset?: readonly string[] | undefined;
  readonly by?: string | undefined;
  /** `signing-key`: the key that signed heads is lost. */
  readonly accept?: string | undefined;
}

type LedgerToResume = Parameters<typeof resumeAfterRestore>[0];

/**
 * `svc-gate resume`: the only way to continue if the pin has seen more rows than exist. Writes a row that records the
 * loss.
 */
export async function resumeCommand(backup: string | undefined, options: ResumeOptions): Promise<Outcome> {
  const { afterRestore, dataDir, pin, reset = [] } = options;
  const tenant = options.tenant ?? null;
  const resuming = {
    by: readName(options.by ?? userInfo().username),
    reason: readReason(options.reason),
    reset,
  };
  const target: LedgerToResume = {
    ...locateOffline(dataDir, tenant, pin),
    acceptSigningKey: readAccept(options.accept),
    askOthers: othersOf(tenant, options.seen ?? []),
  };
  if (afterRestore) return { exitCode: 0, text: await afterRestoring(target, resuming, backup, options) };
  if (reset.length === 0 || backup !== undefined)
    throw new BadInput("add --after-restore to continue after data loss, or --reset CONTRACT.COUNTER later");
  return { exitCode: 0, text: resetText(await resetCounters(target, resuming)) };
}

async function afterRestoring(
  target: LedgerToResume,
  resuming: Parameters<typeof resumeAfterRestore>[1],
  backup: string | undefined,
  options: ResumeOptions,
): Promise<string> {
  if (backup === undefined) return resumedText(await resumeAfterRestore(target, resuming), target.tenant);
  if (target.databaseUrl !== undefined)
    throw new BadInput("a PostgreSQL is restored with its own tools: omit the backup, and run this after its restore");
  await putBack(backup, options);
  try {
    return resumedText(await resumeAfterRestore(target, resuming), target.tenant);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    throw new BadInput(
      `${error.message}\nthe backup is now in ${dataFolder.ledgerFolder(target.dataDir, target.tenant)}: run this again without naming it`,
    );
  }
}

/** Restores one ledger: each loss has its own row. */
async function putBack(backup: string, options: ResumeOptions): Promise<void> {
  const plans = await planAll(backup, options, options.tenant ?? null);
  const [plan] = plans;
  if (plan !== undefined && plan.divergences.length === 0 && plan.seen.length > 0)
    throw new BadInput(`nothing is lost: ${backup} has every row that was seen; use \`svc-gate restore ${backup}\``);
  await restoreAll(backup, options.dataDir, plans);
}

function resumedText(resumed: Awaited<ReturnType<typeof resumeAfterRestore>>, tenant: string | null): string {
  if (resumed === undefined) return "the loss was recorded before; the head pin is at that row now: start the gate";
  const { at, counters, forked, lost, mode, seq } = resumed;
  const [from, to] = lost;
  const of = tenant === null ? "" : ` --tenant ${tenant}`;
  const rows =
    to === null
      ? `rows from ${from} on may be lost`
      : from === to
        ? `row ${from} is lost`
        : `rows ${from} to ${to} are lost`;
  const fork = forked === undefined ? "" : `, and row ${forked} differs from the one that was observed`;
  const unknown = counters.filter(({ isReset }) => !isReset);
  return [
    `row ${seq} records that ${rows}${fork}; the head pin is at it: start the gate`,
    `mode, keys and erasures are those of the last remaining row: the mode is ${mode}, and a key that was revoked after it is valid again`,
    `every call is stopped: check what the agents did meanwhile, then run \`svc-gate stop --lift${of}\``,
    ...(unknown.length === 0 ? [] : ["rules that read these counters block until:"]),
    ...unknown.map((counter) => `  ${counter.name}  ${untilText(counter, at)}`),
    ...counters.filter(({ isReset }) => isReset).map(({ name }) => resetLine(name, seq)),
  ].join("\n");
}

function untilText({ name, window }: ResumedCounter, at: number): string {
  if (window.kind === "ever") return `it is reset: it has no window (svc-gate resume --reset ${name} --reason "...")`;
  if (window.kind === "rolling") return new Date(at + window.ms).toISOString();
  const { unit, timezone } = window.calendar;
  return `the next ${unit} (${timezone}) starts`;
}

function resetText({ counters, seq }: ResumeResult): string {
  return [`row ${seq} resets counters:`, ...counters.map(({ name }) => resetLine(name, seq))].join("\n");
}

function resetLine(name: string, seq: number): string {
  return `  ${name}  counts from zero: calls before row ${seq} no longer count`;
}

function readAccept(what: string | undefined): boolean {
  if (what === undefined || what === "signing-key") return what !== undefined;
  throw new BadInput(`--accept must be signing-key here, not ${visible(what)}`);
}

const reasonCharactersMax = 500;

function readReason(reason: string): string {
  if (reason.trim() !== "" && reason.length <= reasonCharactersMax && !/\p{Cc}/u.test(reason)) return reason;
  throw new BadInput(`--reason must be one line of at most ${reasonCharactersMax} characters`);
}

function readName(name: string): string {
  if (/^[^\p{Cc}]{1,64}$/u.test(name)) return name;
  throw new BadInput(`${visible(name)} is not a name: --by must have 1 to 64 characters`);
}
