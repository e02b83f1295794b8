import { userInfo } from "node:os";
import { enterLost, resumeAfterRestore, type Resumed, type ResumedCounter } from "../gate/mod.ts";
import { visible } from "../wire/mod.ts";
import { enteredCounters, readEntered } from "./entered.ts";
import { ledgerPlace } from "./ledger-place.ts";
import { othersOf } from "./others.ts";
import { BadInput, type Outcome } from "./outcome.ts";
import { placeAll, planAll, type RestoreOptions } from "./restore.ts";

export interface ResumeOptions extends RestoreOptions {
  readonly afterRestore: boolean;
  readonly reason: string;
  readonly enter?: string | undefined;
  readonly by?: string | undefined;
  /** `signing-key`: the one that signed heads is lost. */
  readonly accept?: string | undefined;
}

type Place = Parameters<typeof resumeAfterRestore>[0];

/** `svc-gate resume`: the one way past a pin that has seen more than there is, as a row that says what is lost. */
export async function resumeCommand(backup: string | undefined, options: ResumeOptions): Promise<Outcome> {
  const { afterRestore, dataDir, enter, pin } = options;
  const tenant = options.tenant ?? null;
  const source = enter === undefined ? undefined : await readEntered(enter);
  const resuming = {
    by: readName(options.by ?? userInfo().username),
    reason: readReason(options.reason),
    enter: source && ((force: Parameters<typeof enteredCounters>[1]) => enteredCounters(source, force)),
  };
  const place: Place = {
    ...ledgerPlace(dataDir, tenant, pin),
    acceptSigningKey: readAccept(options.accept),
    askOthers: othersOf(tenant, options.seen ?? []),
  };
  if (afterRestore) return { exitCode: 0, text: await afterRestoring(place, resuming, backup, options) };
  if (enter === undefined || backup !== undefined)
    throw new BadInput("say --after-restore to go on past what was lost, or --enter FILE to state it later");
  return { exitCode: 0, text: enteredText(await enterLost(place, resuming)) };
}

async function afterRestoring(
  place: Place,
  resuming: Parameters<typeof resumeAfterRestore>[1],
  backup: string | undefined,
  options: ResumeOptions,
): Promise<string> {
  if (backup === undefined) return resumedText(await resumeAfterRestore(place, resuming));
  if (place.databaseUrl !== undefined)
    throw new BadInput("a PostgreSQL is restored by its own tools: leave the backup out, and this goes on in it");
  await putBack(backup, options);
  try {
    return resumedText(await resumeAfterRestore(place, resuming));
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    throw new BadInput(`${error.message}\nthe backup lies in ${place.folder} now: run this again without naming it`);
  }
}

/** One ledger: the loss of each is a row of its own. */
async function putBack(backup: string, options: ResumeOptions): Promise<void> {
  const plans = await planAll(backup, options, options.tenant ?? null);
  const [plan] = plans;
  if (plan !== undefined && plan.partings.length === 0 && plan.seen.length > 0)
    throw new BadInput(`nothing is lost: ${backup} has all that was seen; use \`svc-gate restore ${backup}\``);
  await placeAll(backup, options.dataDir, plans);
}

function resumedText(resumed: Awaited<ReturnType<typeof resumeAfterRestore>>): string {
  if (resumed === undefined) return "the loss was recorded before; the head pin is at that row now: start the gate";
  const { at, counters, lost, mode, parted, seq } = resumed;
  const [from, to] = lost;
  const rows = to === null ? `rows from ${from} on may be lost` : `rows ${from} to ${to} are lost`;
  const beside = parted === undefined ? "" : `, and row ${parted} is another one than was seen`;
  const unknown = counters.filter(({ isEntered }) => !isEntered);
  return [
    `row ${seq} records that ${rows}${beside}; the head pin is at it: start the gate`,
    `mode, keys and erasures are as they were before: the mode is ${mode}, and a key that was revoked since is good again`,
    ...(unknown.length === 0 ? [] : ["rules that read these counters block until:"]),
    ...unknown.map((counter) => `  ${counter.name}  ${untilText(counter, at)}`),
    ...counters.filter(({ isEntered }) => isEntered).map(({ name }) => `  ${name}  was entered, and is known`),
  ].join("\n");
}

function untilText({ window }: ResumedCounter, at: number): string {
  if (window.kind === "ever") return "what was lost of it is entered: it counts for ever";
  if (window.kind === "rolling") return new Date(at + window.ms).toISOString();
  const { unit, timezone } = window.calendar;
  return `the next ${unit} (${timezone}) begins`;
}

function enteredText({ counters, seq }: Resumed): string {
  return `row ${seq} enters what was lost of ${counters.map(({ name }) => name).join(", ")}: known again`;
}

function readAccept(what: string | undefined): boolean {
  if (what === undefined || what === "signing-key") return what !== undefined;
  throw new BadInput(`--accept takes signing-key here, not ${visible(what)}`);
}

const reasonCharactersMax = 500;

function readReason(reason: string): string {
  if (reason.trim() !== "" && reason.length <= reasonCharactersMax && !/\p{Cc}/u.test(reason)) return reason;
  throw new BadInput(`--reason is one line of at most ${reasonCharactersMax} characters that says why`);
}

function readName(name: string): string {
  if (/^[^\p{Cc}]{1,64}$/u.test(name)) return name;
  throw new BadInput(`${visible(name)} is no name: --by takes 1 to 64 characters`);
}
