import { hash } from "node:crypto";
import {
  attachText,
  bindingText,
  factTexts,
  presenceOf,
  sessionName,
  subjectText,
  withoutOwn,
  type Approval,
  type ApprovalRequest,
  type FormOffer,
  type GrantOffer,
  type CauseValues,
  type SourceCall,
} from "../../../../core/src/approvals/mod.ts";
import type { Cause } from "../../../../core/src/contract/ir.ts";
import {
  causesOf,
  lookupsOf,
  requirementFor,
  readLine,
  type Decision,
  type LookupPlan,
} from "../../../../core/src/contract/decide.ts";
import { grantRows } from "../../../../core/src/record/entry/mod.ts";
import type { StoredEffect } from "../../ledger/mod.ts";
import type { AppendTransaction, CounterLookup } from "../../ledger/mod.ts";
import { addDecimals, isAmong, pathNames, type CheckRequest } from "../../../../core/src/wire/mod.ts";
import type { CallPlan } from "./call-judge.ts";

/** A call as approvals see it. Its digests are made when they are needed. */
export class ApprovableCall {
  readonly #transaction: AppendTransaction;
  readonly #plan: LookupPlan;
  readonly #lookups: readonly CounterLookup[];
  #attach: string | undefined;
  readonly #lines = new Map<NonNullable<Cause["line"]>, ReturnType<typeof readLine>>();
  #binding: string | undefined;
  #bindingOfAny: string | undefined;

  constructor(transaction: AppendTransaction, { lookupPlan, lookups }: CallPlan) {
    this.#transaction = transaction;
    this.#plan = lookupPlan;
    this.#lookups = lookups;
  }

  get request(): CheckRequest {
    return this.#plan.prepared.request;
  }

  get keyName(): string {
    return this.#plan.prepared.caller.keyName;
  }

  /** The coarser digest, which calls with one approval or denial share. */
  get attach(): string {
    this.#attach ??= this.#transaction.digest(attachText(this.#bound));
    return this.#attach;
  }

  /** The digest of exactly this call, in its session or in any. */
  binding(sessions: ApprovalRequest["sessions"]): string {
    if (sessions === "any")
      return (this.#bindingOfAny ??= this.#transaction.digest(bindingText({ ...this.#bound, session: true })));
    return (this.#binding ??= this.#transaction.digest(bindingText(this.#bound)));
  }

  /** The digest of the facts that say whose the call is; undefined if there are none. */
  get subject(): string | undefined {
    const text = subjectText(this.#bound.subject);
    return text === undefined ? undefined : this.#transaction.digest(text);
  }

  get #bound(): Parameters<typeof bindingText>[0] {
    const { request, caller, plan } = this.#plan.prepared;
    return {
      log: this.#transaction.log,
      key: caller.keyName,
      session: request.sessionId,
      tool: request.toolName,
      input: request.toolInput,
      unbound: plan?.unbound ?? [],
      subject: this.#factTexts(plan?.subject ?? []),
    };
  }

  /** The values of the call's counters, without the amounts that its own approval reserves. */
  values(reservations: readonly StoredEffect[]): readonly (string | undefined)[] {
    return this.#lookups.map((lookup) => {
      const value = this.#transaction.counters.value(lookup);
      if (value === undefined || reservations.length === 0) return value;
      const key = this.#transaction.digest(lookup.key);
      return withoutOwn(value, reservations, { ...lookup, key });
    });
  }

  /**
   * What a person would be asked because of a decision.
   *
   * @param open the call's own approval, whose askings do not count against it
   * @returns undefined if no rule asks for a person
   */
  makeApprovalRequest(
    decision: Decision,
    values: readonly (string | undefined)[],
    softened: boolean,
    open: Approval | undefined,
  ): ApprovalRequest | undefined {
    const { prepared, now } = this.#plan;
    if (prepared.plan === undefined) return undefined;
    const causes = causesOf(prepared.plan, decision, softened);
    if (causes.length === 0) return undefined;
    const requirement = requirementFor(prepared.plan, causes, softened);
    const { needs, decideWithinMs, useWithinMs, batch, free, pins } = requirement;
    const sessions = requirement.anySession ? "any" : undefined;
    const { subject } = this;
    return {
      attach: this.attach,
      binding: this.binding(sessions),
      ...(subject !== undefined && { subject }),
      ...(sessions !== undefined && { sessions }),
      batch,
      causes: Object.fromEntries(causes.map(({ rule, meaning }) => [rule, hash("sha256", meaning, "hex")])),
      decide_by: now + decideWithinMs,
      ...(free.length > 0 && { free }),
      ...(requirement.grants !== undefined && this.#offer(requirement.grants, requirement, causes)),
      ...(requirement.self && causes.every((cause) => this.#isPersonal(cause)) && { self: true as const }),
      use_within: useWithinMs,
      needs,
      pins: this.#pins(pins, values, open),
      shown: { counters: this.#counters(causes, values, open), facts: this.#facts(causes) },
    };
  }

  /**
   * What a grant made from this call may be at most. It is bound to the facts that say whose money the call uses, and to
   * what the rules read; a grant by form also to all else that the call has.
   */
  #offer(
    { atMostMs, bounds, form, others, pin, sums, uses }: Grants,
    { free: left, pins: facts }: Pick<ReturnType<typeof requirementFor>, "free" | "pins">,
    causes: readonly Cause[],
  ): Pick<ApprovalRequest, "grants"> {
    const { subject = [], unbound: notBound = [] } = this.#plan.prepared.plan ?? {};
    const widths = form && this.#widths(form);
    if (widths?.length === 0) return {};
    const pick = (...as: readonly ReturnType<typeof bounds.get>[]): readonly string[] =>
      [...bounds.keys()].filter((path) => as.includes(bounds.get(path))).toSorted();
    const unbound = [...notBound, ...(form?.free ?? [])];
    const same = form === undefined ? pick("same", "form") : pick("same", "most", "least");
    const present = pick("present").map(presenceOf);
    const pins = [...new Set([...pin, ...facts, ...others, ...subject, ...same, ...present])].toSorted();
    const most = pick("most").filter((path) => !sums.includes(path) && !pins.includes(path));
    const least = pick("least").filter((path) => !pins.includes(path));
    const reads = causes.flatMap(({ facts: read }) => read.map(({ path }) => path));
    const free = [...new Set([...unbound, ...(form === undefined ? reads : []), ...left])]
      .toSorted()
      .filter((path) => !isAmong(path, [...pins, ...most, ...least]));
    const grants: GrantOffer = {
      at_most: atMostMs,
      uses,
      pins,
      sums,
      ...(most.length > 0 && { most }),
      ...(least.length > 0 && { least }),
      ...(free.length > 0 && { free }),
      ...(form !== undefined && widths !== undefined && { form: { member: form.member, widths } }),
    };
    return { grants };
  }

  #isPersonal({ line }: Cause): boolean {
    return line === undefined || this.#readLine(line).isPersonal;
  }

  /** Reads a command line once, for the approval and for grants. */
  #readLine(line: NonNullable<Cause["line"]>): ReturnType<typeof readLine> {
    return this.#lines.getOrInsertComputed(line, () => readLine(this.#plan.prepared, this.#plan.now, line));
  }

  /** How far the command line of later calls may differ; empty if it may not come again without a person. */
  #widths({ line }: NonNullable<Grants["form"]>): FormOffer["widths"] {
    const digest = (text: string): string => this.#transaction.digest(text);
    return this.#readLine(line).widths.map(({ name, open, key }) => {
      return { name, digest: grantRows.formDigest(key, digest), open };
    });
  }

  /** The keyed digest of the call's key and session. */
  get place(): string {
    const { request, caller } = this.#plan.prepared;
    return this.#transaction.digest(sessionName(caller.keyName, request.sessionId));
  }

  /** As sent, for a grant compares whole calls of one key: a fact that does not count must be the same too. */
  get compared(): SourceCall {
    const { sessionId: session, toolInput: input, platformState: platform } = this.#plan.prepared.request;
    return grantRows.toSourceCall({ input, platform, session }, (text) => this.#transaction.digest(text));
  }

  /** The JSON texts of facts; null for those that are absent or do not count. */
  #factTexts(names: readonly string[]): ReturnType<typeof factTexts> {
    const { request, uncounted } = this.#plan.prepared;
    const texts = factTexts(names, request.platformText);
    if (uncounted.length === 0) return texts;
    const counts = (name: string): boolean => !uncounted.includes(pathNames(name)?.[1] ?? "");
    return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, counts(name) ? text : null]));
  }

  #pins(
    pins: readonly string[],
    values: readonly (string | undefined)[],
    open: Approval | undefined,
  ): ApprovalRequest["pins"] {
    const facts = this.#factTexts(pins.filter((pin) => pin.startsWith("platform.")));
    const counters = pins.flatMap((pin) => {
      if (!pin.startsWith("counters.")) return [];
      const indexes = lookupsOf(this.#plan, pin.slice("counters.".length));
      return [[pin, indexes.map((index) => this.#toShownValue(index, values, open)).join(" ")] as const];
    });
    return { ...facts, ...Object.fromEntries(counters) };
  }

  #counters(
    causes: readonly Cause[],
    values: readonly (string | undefined)[],
    open: Approval | undefined,
  ): CauseValues["counters"] {
    const indexes = causes.flatMap(({ counters }) => counters.flatMap((name) => lookupsOf(this.#plan, name)));
    return Object.fromEntries(
      [...new Set(indexes)].map((index) => {
        const { counter, key } = this.#lookups[index] as CounterLookup;
        const id = `${counter.slice(0, 16)}.${this.#transaction.digest(key).slice(0, 16)}`;
        return [id, this.#toShownValue(index, values, open)];
      }),
    );
  }

  #toShownValue(index: number, values: readonly (string | undefined)[], open: Approval | undefined): string {
    const { counter, key, after } = this.#lookups[index] as CounterLookup;
    const value = values[index] ?? "0";
    return open === undefined
      ? value
      : withoutOwn(value, open.own, { counter, key: this.#transaction.digest(key), after });
  }

  #facts(causes: readonly Cause[]): CauseValues["facts"] {
    const found: Record<string, readonly [text: string | null, drift: string | null]> = {};
    const texts = this.#factTexts(causes.flatMap(({ facts }) => facts.map(({ path }) => path)));
    const call = this.compared;
    for (const { facts, terms } of causes) {
      for (const { as, path } of facts) {
        const text = texts[path] ?? null;
        if (as === "presence") found[presenceOf(path)] = [String(text !== null), null];
        else if (as === "value") found[path] = [text === null ? null : call.pin(path), null];
        else found[path] = [text, leastOf(found[path]?.[1] ?? terms.drift, terms.drift)];
      }
    }
    return found;
  }
}

type Grants = NonNullable<ReturnType<typeof requirementFor>["grants"]>;

function leastOf(one: string, other: string): string {
  return addDecimals(one, `-${other}`).startsWith("-") ? one : other;
}
