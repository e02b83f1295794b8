import { existsSync } from "node:fs";
import { basename } from "node:path";
import type { Logger } from "pino";
import { Anchors, type AnchorSites } from "../anchoring.ts";
import type { PolicySet } from "../../contract/mod.ts";
import { openLedger, type InForce, type Ledger, type LedgerOptions } from "../../ledger/mod.ts";
import { bad, good, isWeaker, type Mode, type Result } from "../../wire/mod.ts";
import { Clock, systemTime } from "../core/clock.ts";
import { keptContracts, loadContracts, noContracts, renderDiagnostics } from "../core/contracts.ts";
import { resetWarnings } from "../core/counters.ts";
import { Gate, reloadCommand, type Reloaded } from "../core/gate.ts";
import type { Rate } from "../admin/keys/record.ts";
import type { Budget } from "../admission/queue.ts";
import { tellOfPin } from "../anchoring/pin-standing.ts";
import type { RefusedInputs } from "../core/refused-inputs.ts";
import type { GateObserver } from "../telemetry/observer.ts";

/** A start that cannot be: a sentence for the operator and the exit code. */
export class StartRefused extends Error {
  readonly exitCode: number;
  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Where a gate's contracts, mode and ledger come from: the root's, or a tenant's. */
export interface GateSource {
  /** For the log; null is the root. */
  readonly tenant: string | null;
  /** A mandate or a contract; undefined is `mandate.yaml` in the working folder, if it is there. */
  readonly mandate: string | undefined;
  /** The mode that this start sets; undefined keeps the ledger's last mode, else observe. */
  readonly mode: Mode | undefined;
  /** What sets it, for messages. */
  readonly modeSetting?: string | undefined;
  /** The mode that a tenant's own entry names, which each reload puts in force; undefined leaves what is in force. */
  readonly statedMode?: Mode | undefined;
  readonly ledger: LedgerOptions;
  /** How often each key of a tenant may ask; undefined is what holds for all. */
  readonly rate?: Rate | undefined;
  /** Evidence that is older is erased; undefined keeps it. */
  readonly retentionDays?: number | undefined;
  /** The operator takes responsibility for a clock that lies behind the last receipt. */
  readonly acceptClock: boolean;
  /** On a ledger that gates share: the contract of this start is put in force. */
  readonly acceptChange: boolean;
  /** On a ledger that gates share: this start may weaken the mode for all of them. */
  readonly acceptWeakerMode?: boolean | undefined;
  /** On a ledger that gates share: a stricter mode in force stays, and does not refuse this start. */
  readonly keepsStricterMode?: boolean | undefined;
}

export interface OpenGate {
  readonly gate: Gate;
  readonly ledger: Ledger;
}

/** A source whose ledger is open, and where nothing is decided yet. */
export interface OpenedGate extends OpenGate {
  /**
   * Puts in force what the source says: the first step of a start that the ledger keeps.
   *
   * @returns what changed; undefined if nothing changed
   * @throws {StartRefused}
   */
  begin(): Promise<Reloaded | undefined>;
}

/**
 * What the gates of one process share: the log, the observer, the memory for waiting calls, and the count of the inputs of
 * refused calls for each key.
 */
export interface SharedParts {
  /** The banner repeats the warnings of a start. */
  readonly log: Logger;
  readonly observer: GateObserver;
  readonly budget: Budget;
  readonly refusedInputs?: RefusedInputs | undefined;
  /** Who anchors the ledgers; undefined where nobody does. */
  readonly sites?: AnchorSites | undefined;
}

const defaultMandate = "mandate.yaml";

/**
 * Opens a ledger and the gate over it; the gate answers once it has begun.
 *
 * @param earlier what was in force when the source was last open in this process: it is taken up again as it was, so that
 *   only a reload changes it
 * @throws {StartRefused} or {LedgerRefused}, and then nothing is open
 */
export async function openFrom(source: GateSource, shared: SharedParts, earlier?: InForce): Promise<OpenedGate> {
  const { log } = shared;
  const read = earlier === undefined ? await requirePolicySet(source, log) : undefined;
  const ledger = await openLedger(source.ledger);
  const warnings = earlier === undefined ? [...ledger.warnings, ...(await resetWarnings(ledger))] : [];
  for (const warning of warnings) log.warn({ tenant: source.tenant }, warning);
  tellOfPin(ledger, { ...shared, tenant: source.tenant });
  const anchors = shared.sites && anchorsOf(source, ledger, { ...shared, sites: shared.sites });
  try {
    await anchors?.begin(earlier === undefined);
    const policySet = read ?? (await keptPolicySet(ledger, (earlier as InForce).contract));
    // The ledger keeps its mode, so a tenant that opens again needs no mode.
    const isAgain = earlier !== undefined;
    const mode = isAgain ? undefined : source.mode;
    const gate = overLedger({
      ...shared,
      source,
      policySet,
      mode,
      ledger,
      anchors,
      acceptChange: !isAgain && source.acceptChange,
    });
    return { ledger, gate, begin: () => begin(gate, { source, policySet, log }) };
  } catch (error) {
    await anchors?.close();
    await ledger.close();
    throw error;
  }
}

/** Those who anchor a ledger, told of its heads from now on. */
function anchorsOf(
  { tenant, ledger: { folder } }: GateSource,
  ledger: Ledger,
  { log, observer, sites }: SharedParts & { readonly sites: AnchorSites },
): Anchors {
  const anchors = new Anchors({ ...sites, ledger, folder, tenant, log, onFailure: (by) => observer.anchorFailed(by) });
  ledger.watchHeads((head) => anchors.follow(head));
  return anchors;
}

interface Parts extends SharedParts {
  readonly source: GateSource;
  readonly policySet: PolicySet;
  readonly mode: Mode | undefined;
  readonly ledger: Ledger;
  readonly anchors: Anchors | undefined;
  /** Of this start alone: a source that is opened again goes by what others have put in force since. */
  readonly acceptChange: boolean;
}

function overLedger(parts: Parts): Gate {
  const { source, log, observer, budget, refusedInputs, policySet, mode, ledger, anchors, acceptChange } = parts;
  const clock = new Clock(systemTime);
  const time = clock.read(ledger.head.at);
  if (!ledger.isShared && !time.ok && !source.acceptClock) {
    throw new StartRefused(
      `${time.problem}: set it right, or start once with --accept clock and checks wait until it has caught up`,
    );
  }
  const { tenant } = source;
  return new Gate({
    policySet,
    tenant,
    ledger,
    anchors,
    clock,
    mode,
    modeSetting: source.modeSetting,
    acceptChange,
    acceptWeakerMode: source.acceptWeakerMode,
    keepsStricterMode: source.keepsStricterMode,
    observer,
    budget,
    keepRefused: refusedInputs && ((call) => refusedInputs.kept(call, tenant)),
    retention:
      source.retentionDays === undefined ? undefined : { days: source.retentionDays, tenant: source.tenant, log },
    onDefect: ({ rule, defect }) => {
      observer.defect();
      log.error({ tenant, rule, err: defect }, "the engine failed on a rule; the call was blocked");
    },
    onFollow: ({ contract, mode: followed }) =>
      log.info({ tenant, contract, mode: followed }, "took up what another gate has put in force"),
  });
}

interface Beginning {
  readonly source: GateSource;
  /** What the source's files say. */
  readonly policySet: PolicySet;
  readonly log: Logger;
}

async function begin(gate: Gate, { source, policySet, log }: Beginning): Promise<Reloaded | undefined> {
  const { tenant } = source;
  const begun = await gate.begin();
  if (!begun.ok) throw new StartRefused(begun.problem.detail);
  const { folded = [], receipt, before, now } = begun.value ?? {};
  for (const { counter, rows, events } of folded) {
    if (rows > 0) log.info({ tenant, counter, rows, events }, "a new counter was folded from the receipts");
  }
  if (receipt !== undefined && before !== undefined && now !== undefined && before.mode !== now.mode)
    log[isWeaker(now.mode as Mode, before.mode as Mode) ? "warn" : "info"](
      { tenant, seq: receipt.seq },
      `the mode changed from ${before.mode} to ${now.mode}, as ${source.modeSetting} says`,
    );
  if (gate.policy.policySet.text !== policySet.text)
    log.warn(
      { tenant, inForce: gate.policy.contract },
      "the contract in force on the shared ledger is not the one in this gate's files. This gate uses the one in force; " +
        `run \`${reloadCommand(tenant)}\` to put the files in force`,
    );
  return begun.value;
}

async function requirePolicySet(source: GateSource, log: Logger): Promise<PolicySet> {
  const loaded = await loadPolicySet(source, log);
  if (!loaded.ok) throw new StartRefused(loaded.problem, 2);
  return loaded.value;
}

/**
 * Compiles what a source names, as it is on disk now.
 *
 * @returns every error of it as text for a terminal
 * @throws {NoSuchFile} when the mandate itself cannot be read
 */
export async function loadPolicySet({ mandate }: GateSource, log: Logger): Promise<Result<PolicySet, string>> {
  const file = mandate ?? defaultMandate;
  if (mandate === undefined && !existsSync(file)) {
    log.warn(
      `there is no ${defaultMandate} here, so no tool is routed and every verdict is BLOCK; \`svc-gate init\` writes one`,
    );
    return good(noContracts());
  }
  const compiled = await loadContracts(file, basename(file));
  return compiled.ok ? compiled : bad(renderDiagnostics(compiled.problem));
}

async function keptPolicySet(ledger: Ledger, digest: string): Promise<PolicySet> {
  const policySet = await keptContracts(ledger, digest);
  if (policySet === undefined) throw new StartRefused(`the contract ${digest} cannot be taken from the ledger`);
  return policySet;
}
