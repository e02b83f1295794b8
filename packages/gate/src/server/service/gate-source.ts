import { existsSync } from "node:fs";
import { basename } from "node:path";
import type { Logger } from "pino";
import type { Stops } from "../../../../core/src/approvals/mod.ts";
import type { Anchors, AnchorSites } from "../anchoring/anchors.ts";
import type { PolicySet } from "../../../../core/src/contract/mod.ts";
import { openLedger, type InForce, type Ledger, type LedgerOptions } from "../../ledger/mod.ts";
import { bad, good, isWeaker, type Mode, type Result } from "../../../../core/src/wire/mod.ts";
import type { KeyDeciders } from "../approvals/deciders.ts";
import { Clock, systemTime } from "../policy/clock.ts";
import {
  besideMandate,
  recompileContracts,
  loadContracts,
  noContracts,
  renderDiagnostics,
} from "../policy/contracts.ts";
import { resetWarnings } from "./counters.ts";
import type { Notifier } from "../notify/notifier.ts";
import { Gate } from "./gate.ts";
import type { ReloadResult } from "./policy-changes.ts";
import { reloadCommand } from "../policy/reload-row.ts";
import type { Rate } from "../settings/rate.ts";
import type { QueueBudget } from "../admission/queue.ts";
import { logPinFailures } from "../anchoring/pin-standing.ts";
import type { RefusedInputs } from "../core/refused-inputs.ts";
import type { GateObserver } from "../telemetry/observer.ts";
import { StartRefused } from "../errors.ts";
import { LedgerRefused } from "../../ledger/errors.ts";
import { isLater, recordedPolicy } from "../policy/active-policy.ts";

/** The source of a gate's contracts, mode and ledger, for the root or a tenant. */
export interface GateSource {
  /** For the log; null is the root. */
  readonly tenant: string | null;
  /** A mandate or a contract; undefined means `mandate.yaml` in the working folder, if it exists. */
  readonly mandate: string | undefined;
  /** The mode that this start sets; undefined keeps the ledger's last mode, else observe. */
  readonly mode: Mode | undefined;
  /** The setting that names the mode, for messages. */
  readonly modeSetting?: string | undefined;
  /** The mode in a tenant's own entry, which each reload puts in force; undefined keeps the mode in force. */
  readonly statedMode?: Mode | undefined;
  readonly ledger: LedgerOptions;
  /** The rate of each key of a tenant; undefined means the rate of the gate. */
  readonly rate?: Rate | undefined;
  /** Evidence that is older is erased; undefined keeps it. */
  readonly retentionDays?: number | undefined;
  /** Accepts a clock that is behind the last receipt. */
  readonly acceptClock: boolean;
  /** On a shared ledger: puts this start's contract in force. */
  readonly acceptChange: boolean;
  /** On a shared ledger: this start may weaken the mode for all gates. */
  readonly acceptWeakerMode?: boolean | undefined;
  /** On a shared ledger: keeps a stricter mode in force and does not refuse this start. */
  readonly keepsStricterMode?: boolean | undefined;
}

/** A source whose ledger is open, before any decision. */
export interface OpenedGate {
  readonly gate: Gate;
  readonly ledger: Ledger;
  /**
   * Puts the source's contract and mode in force. This is the first step of a start that changes the ledger.
   *
   * @returns the change; undefined if nothing changed
   * @throws {StartRefused}
   */
  readonly start: () => Promise<ReloadResult | undefined>;
}

/**
 * The parts that the gates of one process share: the log, the observer, the memory for waiting calls, and the count of
 * the inputs of refused calls for each key.
 */
export interface SharedParts {
  /** The log. The banner repeats its warnings during a start. */
  readonly log: Logger;
  readonly observer: GateObserver;
  readonly budget: QueueBudget;
  readonly refusedInputs?: RefusedInputs | undefined;
  /** The anchors of the ledgers; undefined if there are none. */
  readonly sites?: AnchorSites | undefined;
  /** Sends events to endpoints; undefined if there are none. */
  readonly notifier?: Notifier | undefined;
  /** Who may decide calls; by default nobody. */
  readonly deciders?: KeyDeciders | undefined;
  /** The stops of the root, for the tenants; undefined for the root itself. */
  readonly rootStops?: (() => Promise<Stops>) | undefined;
}

const defaultMandate = "mandate.yaml";

/**
 * Opens a ledger and its gate. The gate answers after it has started.
 *
 * @param earlier the policy when the source was last open in this process. It is used again unchanged, so only a reload
 *   changes it
 * @throws {StartRefused} or {LedgerRefused}; then nothing stays open
 */
export async function openFrom(source: GateSource, shared: SharedParts, earlier?: InForce): Promise<OpenedGate> {
  const { log } = shared;
  const read = earlier === undefined ? await requirePolicySet(source, log) : undefined;
  const ledger = await openLedger(source.ledger);
  const warnings = earlier === undefined ? [...ledger.warnings, ...(await resetWarnings(ledger))] : [];
  for (const warning of warnings) log.warn({ tenant: source.tenant }, warning);
  logPinFailures(ledger, { ...shared, tenant: source.tenant });
  const anchors = shared.sites && (await anchorsOf(source, ledger, { ...shared, sites: shared.sites }));
  try {
    await anchors?.start(earlier === undefined);
    const policySet = read ?? (await recompilePolicySet(ledger, (earlier as InForce).contract));
    // The ledger keeps its mode, so a tenant that opens again needs no mode.
    const isAgain = earlier !== undefined;
    const mode = isAgain ? undefined : source.mode;
    const acceptChange = !isAgain && source.acceptChange;
    const gate = overLedger({ ...shared, source, policySet, mode, ledger, anchors, acceptChange });
    return { gate, ledger, start: () => startGate(gate, { source, policySet, log, isAgain }) };
  } catch (error) {
    await anchors?.close();
    await ledger.close();
    throw error;
  }
}

/**
 * Makes the gate of a ledger that is open already, for an operator's acts. The policy is that of the last row: no file
 * is read, and nothing is put in force.
 *
 * @throws {LedgerRefused} if a later version of the gate wrote the ledger
 */
export async function asRecorded(source: GateSource, ledger: Ledger, shared: SharedParts): Promise<Gate> {
  const { contract, mode, engine: writer } = await recordedPolicy(ledger);
  if (isLater(writer))
    throw new LedgerRefused(`a later version of the gate (${writer}) wrote this ledger: use that version`);
  // A contract of another version may not compile here, or to another text: then no name is an alias. Rows keep the digest.
  const text = (await ledger.rows.contractText(contract)) ?? "";
  const policySet = { ...((await recompileContracts(ledger.rows, contract)) ?? noContracts()), text };
  const parts = { ...shared, policySet, mode: mode as Mode, ledger, anchors: undefined, acceptChange: false };
  const gate = overLedger({ ...parts, source: { ...source, acceptClock: true } });
  await gate.senders?.look();
  await gate.passHead(true); // The stops and the policy are those of the last row from here on.
  return gate;
}

/** Makes the anchors of a ledger, which receive its heads from now on. Their code is loaded if there are any. */
async function anchorsOf(
  { tenant, ledger: { folder } }: GateSource,
  ledger: Ledger,
  { log, observer, sites }: SharedParts & { readonly sites: AnchorSites },
): Promise<Anchors> {
  const anchoring = await import("../anchoring/anchors.ts");
  const anchors = new anchoring.Anchors({
    ...sites,
    ledger,
    folder,
    tenant,
    log,
    onFailure: (by) => observer.countAnchorFailure(by),
  });
  ledger.watchHeads((head) => anchors.follow(head));
  return anchors;
}

interface Parts extends SharedParts {
  readonly source: GateSource;
  readonly policySet: PolicySet;
  readonly mode: Mode | undefined;
  readonly ledger: Ledger;
  readonly anchors: Anchors | undefined;
  /** Only for this start: a source that is opened again uses the contract that others have put in force since. */
  readonly acceptChange: boolean;
}

function overLedger(parts: Parts): Gate {
  const { source, log, observer, refusedInputs, ledger, deciders, notifier } = parts;
  const { tenant, modeSetting, acceptWeakerMode, keepsStricterMode, retentionDays: days } = source;
  const clock = new Clock(systemTime);
  const time = clock.read(ledger.head.at);
  if (!ledger.isShared && !time.ok && !source.acceptClock) {
    throw new StartRefused(
      `${time.problem}: correct the clock, or start once with --accept clock; then checks wait until the clock has caught up`,
    );
  }
  return new Gate({
    ...parts,
    tenant,
    clock,
    modeSetting,
    acceptWeakerMode,
    keepsStricterMode,
    deciders: deciders?.of(tenant),
    senders: notifier?.wants(tenant) ? (events) => notifier.sendersOf({ tenant, ledger, events }) : undefined,
    keepRefused: refusedInputs && ((call) => refusedInputs.toStoredCall(call, tenant)),
    retention: days === undefined ? undefined : { days, tenant, log },
    onDefect: ({ rule, defect }) => {
      observer.countDefect();
      log.error({ tenant, rule, err: defect }, "the engine failed on a rule; the call was blocked");
    },
    onFollow: ({ contract, mode: followed }) =>
      log.info({ tenant, contract, mode: followed }, "this gate follows a policy that another gate has put in force"),
  });
}

interface GateStart {
  readonly source: GateSource;
  /** The contracts in the source's files. */
  readonly policySet: PolicySet;
  readonly log: Logger;
  /** True if the source was open in this process before. */
  readonly isAgain: boolean;
}

async function startGate(
  gate: Gate,
  { source, policySet, log, isAgain }: GateStart,
): Promise<ReloadResult | undefined> {
  const { tenant } = source;
  const started = await gate.start();
  if (!started.ok) throw new StartRefused(started.problem.detail);
  const { folded = [], receipt, before, now } = started.value ?? {};
  for (const { counter, rows, events } of folded) {
    if (rows > 0) log.info({ tenant, counter, rows, events }, "a new counter was folded from the receipts");
  }
  if (receipt !== undefined && before !== undefined && now !== undefined && before.mode !== now.mode)
    log[isWeaker(now.mode as Mode, before.mode as Mode) ? "warn" : "info"](
      { tenant, seq: receipt.seq },
      `the mode changed from ${before.mode} to ${now.mode}, as set by ${source.modeSetting}`,
    );
  if (gate.policy.policySet.text !== policySet.text)
    log.warn(
      { tenant, inForce: gate.policy.contract },
      "the contract in force on the shared ledger is not the one in this gate's files. This gate uses the one in force; " +
        `run \`${reloadCommand(tenant)}\` to put the files in force`,
    );
  if (gate.ledger.standing.stops.active.length > 0 && !isAgain)
    log.warn({ tenant }, "a stop is in force, so calls are blocked: `svc-gate stop --list` shows it");
  return started.value;
}

async function requirePolicySet(source: GateSource, log: Logger): Promise<PolicySet> {
  const loaded = await loadPolicySet(source, log);
  if (!loaded.ok) throw new StartRefused(loaded.problem, 2);
  return loaded.value;
}

/**
 * Compiles the contracts of a source, as they are on disk now.
 *
 * @returns the contracts, or all errors as text for a terminal
 * @throws {NoSuchFile} if the mandate itself cannot be read
 */
export async function loadPolicySet({ mandate, tenant }: GateSource, log: Logger): Promise<Result<PolicySet, string>> {
  const file = mandate ?? defaultMandate;
  if (mandate === undefined && !existsSync(file)) {
    log.warn(
      `the working folder has no ${defaultMandate}, so every tool is unknown and every verdict is BLOCK: \`svc-gate init\` writes one`,
    );
    return good(noContracts());
  }
  const compiled = await loadContracts(file, basename(file));
  if (compiled.ok) return compiled;
  // An administrator of a tenant has nothing to do with the machine's folders.
  const shown = tenant === null ? compiled.problem.map((each) => besideMandate(each, file)) : compiled.problem;
  return bad(renderDiagnostics(shown));
}

async function recompilePolicySet(ledger: Ledger, digest: string): Promise<PolicySet> {
  const policySet = await recompileContracts(ledger.rows, digest);
  if (policySet === undefined)
    throw new StartRefused(`the contract ${digest} in the ledger does not compile under this version`);
  return policySet;
}
