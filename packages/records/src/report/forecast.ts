import { hash } from "node:crypto";
import { attachText, waitingIfFull, type OpenLimits } from "../../../core/src/approvals/mod.ts";
import { causesOf, requirementFor } from "../../../core/src/contract/mod.ts";
import { visible, type ForecastJson } from "../../../core/src/wire/mod.ts";
import type { Contracts } from "../replay/decide-again.ts";
import { columns } from "../replay/print.ts";
import type { ReceiptCheck } from "../replay/recorded.ts";
import { Lines } from "./lines.ts";
import { momentText } from "./moment.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** What one rule would have asked of people. */
interface RuleForecast {
  /** Calls that the rule leaves to a person. */
  calls: number;
  approvals: number;
  /** Calls that would have shared an approval that was open. */
  shared: number;
  capped: number;
  readonly day: Busiest;
}

/** The parts of a contract that matter here. */
interface ForecastTerms {
  /** The members of the input that do not count. */
  readonly unbound: readonly string[];
  /** How long the call would wait for a person, in milliseconds. */
  readonly lengthMs: number;
  readonly limits: OpenLimits;
}

/** An approval that would be open. */
interface WouldBe {
  readonly attach: string;
  /** Milliseconds since the epoch. */
  readonly ends: number;
  readonly key: string;
  readonly session: string;
}

/**
 * Forecasts the approvals of enforce mode from checks that asked nobody: those of observe mode, and those that an
 * earlier version of the gate recorded. Each approval is open for its whole `decide_within`, because nobody decided it.
 */
export class Forecast {
  readonly #contracts: Contracts;
  readonly #rules = new Lines<RuleForecast>(makeRuleForecast, ({ calls }) => calls);
  /** All rules together. */
  readonly #all = makeRuleForecast();
  readonly #open = new Map<string, WouldBe>();
  /** The open approvals, by their length: those of one length end in the order in which they were opened. */
  readonly #byLength = new Map<number, Map<string, WouldBe>>();
  readonly #counts = new Map<string, number>();
  readonly #hour = new Busiest(hourMs);
  #days = 0;
  #lastDay = -1;
  #withoutContract = 0;

  constructor(contracts: Contracts) {
    this.#contracts = contracts;
  }

  /** Adds a check. */
  async add(recorded: ReceiptCheck): Promise<void> {
    const { leaf, trace } = recorded;
    const isObserved = leaf.mode === "observe";
    const isLeft = (isObserved ? leaf.verdict : leaf.answered) === "ESCALATE" && trace.asked?.how === undefined;
    if (!isObserved && !isLeft) return;
    const day = Math.floor(leaf.at / dayMs);
    if (day !== this.#lastDay) this.#days += 1;
    this.#lastDay = day;
    if (isLeft) await this.#ask(recorded);
  }

  async #ask(recorded: ReceiptCheck): Promise<void> {
    const { leaf, request, tool } = recorded;
    const { at } = leaf;
    const terms = await this.#terms(recorded);
    if (terms === undefined) {
      this.#withoutContract += 1;
      return;
    }
    const { unbound, lengthMs, limits } = terms;
    const key = leaf.key ?? "";
    const call = { log: leaf.log, key, tool, input: request.toolInput, unbound };
    const attach = hash("sha256", attachText(call), "hex");
    const session = JSON.stringify([key, request.sessionId]);
    this.#expire(at);
    const isFull = waitingIfFull(this.#openOf(key, session), limits) !== undefined;
    const what = this.#open.has(attach) ? "shared" : isFull ? "capped" : "approvals";
    for (const line of [this.#rules.of(leaf.rule ?? ""), this.#all]) {
      line.calls += 1;
      line[what] += 1;
      if (what === "approvals") line.day.add(at);
    }
    if (what !== "approvals") return;
    this.#hour.add(at);
    this.#keep({ attach, ends: at + lengthMs, key, session }, lengthMs);
  }

  /** What the contract of the check says about its approval; undefined if the contract cannot be read. */
  async #terms({ leaf, tool, trace }: ReceiptCheck): Promise<ForecastTerms | undefined> {
    const policySet = await this.#contracts.of(leaf.contract ?? "");
    const plan = typeof policySet === "string" ? undefined : policySet.tools.get(tool);
    if (typeof policySet === "string" || plan === undefined) return undefined;
    const softened = leaf.verdict === "BLOCK";
    const { decideWithinMs } = requirementFor(plan, causesOf(plan, trace, softened), softened);
    return { unbound: plan.unbound, lengthMs: decideWithinMs, limits: policySet.approvals.open };
  }

  #openOf(key: string, session: string): OpenLimits {
    return {
      ledger: this.#open.size,
      key: this.#counts.get(`key ${key}`) ?? 0,
      session: this.#counts.get(`session ${session}`) ?? 0,
    };
  }

  #keep(approval: WouldBe, lengthMs: number): void {
    this.#open.set(approval.attach, approval);
    this.#byLength.getOrInsertComputed(lengthMs, () => new Map()).set(approval.attach, approval);
    this.#count(approval, 1);
  }

  #expire(at: number): void {
    for (const ofLength of this.#byLength.values()) {
      for (const approval of ofLength.values()) {
        if (at < approval.ends) break;
        ofLength.delete(approval.attach);
        this.#open.delete(approval.attach);
        this.#count(approval, -1);
      }
    }
  }

  #count({ key, session }: WouldBe, step: number): void {
    for (const name of [`key ${key}`, `session ${session}`]) {
      const count = (this.#counts.get(name) ?? 0) + step;
      if (count === 0) this.#counts.delete(name);
      else this.#counts.set(name, count);
    }
  }

  get text(): readonly string[] {
    const lines = this.#rules.lines;
    const title = ["", "approvals that enforce mode would have asked for"];
    const missing = this.#withoutContract;
    const [noun, whose] = missing === 1 ? ["call is", "its receipt"] : ["calls are", "their receipts"];
    const without =
      missing === 0 ? [] : [`  ${missing} ${noun} not counted here: the contract on ${whose} cannot be read`];
    if (lines.length === 0) return without.length === 0 ? [] : [...title, ...without];
    const head = ["rule", "calls", "approvals", "a day", "largest day", "shared", "capped"];
    const row = (name: string, { calls, approvals, shared, capped, day }: RuleForecast) => [
      name,
      ...[calls, approvals, this.#perDay(approvals).toFixed(1), day.count, shared, capped].map(String),
    ];
    const { from, count } = this.#hour;
    return [
      ...title,
      ...columns([
        head,
        ...lines.map(([rule, line]) => row(visible(rule), line)),
        ...(lines.length === 1 ? [] : [row("(all)", this.#all)]),
      ]),
      `  largest hour: ${count} from ${momentText(from)}; days with checks: ${this.#days}`,
      "  each approval is open for its whole decide_within here, because nobody decided it",
      ...without,
    ];
  }

  get json(): ForecastJson & Readonly<Record<string, unknown>> {
    const shape = ({ calls, approvals, shared, capped, day }: RuleForecast) => ({
      calls,
      approvals,
      per_day: this.#perDay(approvals),
      largest_day: day.json,
      shared,
      capped,
    });
    return {
      days: this.#days,
      ...shape(this.#all),
      largest_hour: this.#hour.json,
      without_contract: this.#withoutContract,
      by_rule: this.#rules.lines.map(([rule, line]) => ({ rule, ...shape(line) })),
    };
  }

  #perDay(approvals: number): number {
    return this.#days === 0 ? 0 : Math.round((approvals / this.#days) * 100) / 100;
  }
}

function makeRuleForecast(): RuleForecast {
  return { calls: 0, approvals: 0, shared: 0, capped: 0, day: new Busiest(dayMs) };
}

/** Counts events by UTC day or hour, and keeps the one with the most. Times do not decrease. */
class Busiest {
  readonly #ms: number;
  #now = -1;
  #ofNow = 0;
  /** Milliseconds since the epoch: the start of the busiest one. */
  from = 0;
  count = 0;

  constructor(ms: number) {
    this.#ms = ms;
  }

  add(at: number): void {
    const now = at - (at % this.#ms);
    this.#ofNow = now === this.#now ? this.#ofNow + 1 : 1;
    this.#now = now;
    if (this.#ofNow <= this.count) return;
    this.from = now;
    this.count = this.#ofNow;
  }

  get json(): ForecastJson["largest_hour"] {
    return this.count === 0 ? null : { from: this.from, approvals: this.count };
  }
}
