import type { Report } from "../text/diagnostic.ts";
import { defaultTerms, type ApprovalTerms, type GrantTerms } from "../core/terms.ts";
import type { ApprovalDocument, ApprovalSettingsDocument, GrantsDocument } from "../text/document.ts";
import { readLength } from "./counters.ts";
import { exactText, isExact } from "../value/rational.ts";
import type { Field, RecordType, Type } from "../value/type.ts";
import type { YamlScalar } from "../text/yaml.ts";
import { pathNames, readPath } from "../../wire/mod.ts";

export interface ApprovalSettings {
  /** True if a person may approve a call that a key of the same person asked. */
  readonly self: boolean;
  /** The largest numbers of open approvals. */
  readonly open: { readonly key: number; readonly session: number; readonly ledger: number };
  /** Milliseconds after a check: until then its outcome may be reported. */
  readonly outcomeWithinMs: number;
}

const minuteMs = 60_000;
const lengthMsMax = 14 * 24 * 60 * minuteMs;

const dayMs = 24 * 60 * minuteMs;
const outcomeDaysMax = 90;

export const defaultSettings: ApprovalSettings = {
  self: false,
  open: { key: 100, session: 20, ledger: 10_000 },
  outcomeWithinMs: dayMs,
};

const groupsMax = 16;
const peopleMax = 20;
const pinsMax = 16;
const usesMax = 10_000;
const groupPattern = /^(?:oidc:)?[a-z0-9][a-z0-9._-]{0,63}$/;

type WrittenTerms = { -readonly [Name in keyof ApprovalTerms]?: ApprovalTerms[Name] };

/** Reads what approvals need. Each document is read once, whatever number of tools it is for. */
export class TermsReader {
  readonly #report: Report;
  readonly #platform: RecordType | undefined;
  readonly #counters: ReadonlySet<string>;
  readonly #read = new Map<ApprovalDocument, WrittenTerms>();

  constructor(report: Report, platform: RecordType | undefined, counters: ReadonlySet<string>) {
    this.#report = report;
    this.#platform = platform;
    this.#counters = counters;
  }

  /** @param documents the nearest first: of the rule, the tool, the contract, the mandate */
  terms(documents: readonly (ApprovalDocument | undefined)[]): ApprovalTerms {
    const written = documents.flatMap((document) => (document === undefined ? [] : this.#readTerms(document)));
    return Object.assign({}, defaultTerms, ...written.toReversed()) as ApprovalTerms;
  }

  /** The terms of a rule. Only its own text lets grants lift it, or lets a person approve their own calls. */
  ofRule(own: ApprovalDocument | undefined, shared: readonly (ApprovalDocument | undefined)[]): ApprovalTerms {
    const terms = this.terms([own, ...shared]);
    return {
      ...terms,
      ...(own?.grants !== undefined && { grants: this.#grants(own.grants, terms.pins) }),
      ...(own?.self !== undefined && { self: true }),
    };
  }

  #grants({ span, atMost, uses, pin, by, free }: GrantsDocument, pins: readonly string[]): GrantTerms {
    if (pins.some((name) => name.startsWith("counters.")))
      this.#report.add("approval", span, "a rule that pins a counter has no `grants`: each use changes the counter");
    if (atMost === undefined || uses === undefined)
      this.#report.add("approval", span, "`grants` needs `at_most` and `uses`", "such as `{ at_most: 1h, uses: 20 }`");
    if (by !== undefined && by.text !== "form")
      this.#report.add("approval", by.span, "`by` of `grants` can only be `form`", "leave it out to bind each text");
    const [first] = free;
    if (first !== undefined && by === undefined)
      this.#report.add(
        "approval",
        first.span,
        "`free` belongs to `grants` with `by: form`: others list what they `pin`",
      );
    return {
      atMostMs: atMost === undefined ? 1 : this.#length(atMost, "a grant"),
      uses: uses === undefined ? 1 : wholeNumber(uses, "uses", usesMax, this.#report),
      pin: pathsOf(pin),
      ...(by !== undefined && { form: { free: pathsOf(free) } }),
    };
  }

  #readTerms(document: ApprovalDocument): WrittenTerms {
    const known = this.#read.get(document);
    if (known !== undefined) return known;
    const { by, of, decideWithin, useWithin, batch, sessions, pins, drift, free } = document;
    const written: WrittenTerms = {};
    if (by !== undefined) written.by = this.#groups(by);
    if (of !== undefined) written.of = wholeNumber(of, "of", peopleMax, this.#report);
    if (decideWithin !== undefined) written.decideWithinMs = this.#length(decideWithin);
    if (useWithin !== undefined) written.useWithinMs = this.#length(useWithin);
    if (batch !== undefined) written.batch = batch;
    if (sessions !== undefined) written.anySession = this.#anySession(sessions);
    if (pins !== undefined) written.pins = this.#pins(pins);
    if (drift !== undefined) written.drift = this.#drift(drift);
    if (free !== undefined) written.free = this.#free(free);
    this.#read.set(document, written);
    return written;
  }

  #groups(groups: readonly YamlScalar[]): readonly string[] {
    for (const { text, span } of groups.filter(({ text: name }) => !groupPattern.test(name)))
      this.#report.add("approval", span, `\`${text.slice(0, 64)}\` is not the name of a group`, "such as `finance`");
    const [first] = groups;
    if (first !== undefined && groups.length > groupsMax)
      this.#report.add("approval", first.span, `an approval names at most ${groupsMax} groups`);
    return groups.map(({ text }) => text).toSorted();
  }

  #anySession({ text, span }: YamlScalar): boolean {
    if (text !== "any" && text !== "one")
      this.#report.add(
        "approval",
        span,
        "`sessions` is `one` or `any`",
        "with `any`, a call of any session of the key may use the approval",
      );
    return text === "any";
  }

  #length(scalar: YamlScalar, what = "an approval"): number {
    const ms = readLength(scalar, this.#report);
    if (ms > lengthMsMax) this.#report.add("approval", scalar.span, `${what} lasts at most 14 days`);
    return ms;
  }

  #pins(pins: readonly YamlScalar[]): readonly string[] {
    const [first] = pins;
    if (first !== undefined && pins.length > pinsMax)
      this.#report.add("approval", first.span, `an approval pins at most ${pinsMax} facts and counters`);
    for (const { text, span } of pins) {
      const [root, name = "", ...rest] = pathNames(text) ?? [];
      const isCounter = root === "counters" && rest.length === 0 && this.#counters.has(name);
      if (!isCounter && !this.#isFact(text))
        this.#report.add(
          "approval",
          span,
          `\`${text}\` is neither a fact nor a counter of this contract`,
          "a pin is a fact such as `platform.price`, or a counter such as `counters.spent`",
        );
    }
    return pathsOf(pins);
  }

  #free(facts: readonly YamlScalar[]): readonly string[] {
    const [first] = facts;
    if (first !== undefined && facts.length > pinsMax)
      this.#report.add("approval", first.span, `an approval leaves at most ${pinsMax} facts free`);
    for (const { text, span } of facts.filter((fact) => !this.#isFact(fact.text)))
      this.#report.add(
        "approval",
        span,
        `\`${text}\` is not a fact of this contract`,
        "`free` lists facts such as `platform.price`, which may differ from what the person saw",
      );
    return pathsOf(facts);
  }

  #isFact(text: string): boolean {
    const [root, ...path] = pathNames(text) ?? [];
    if (root !== "platform" || path.length === 0 || this.#platform === undefined) return false;
    return typeAt(this.#platform, path) !== undefined;
  }

  #drift({ value, text, span }: YamlScalar): string {
    if (isExact(value) && !text.startsWith("-")) return exactText(value);
    this.#report.add("approval", span, "`drift` is a number that is not negative");
    return "0";
  }
}

/** Written members as `memberBelow` spells them, sorted. */
export function pathsOf(written: readonly YamlScalar[]): readonly string[] {
  return written.map(({ text }) => readPath(text) ?? text).toSorted();
}

/** Reads a mandate's settings for all approvals. */
export function readSettings(document: ApprovalSettingsDocument | undefined, report: Report): ApprovalSettings {
  if (document === undefined) return defaultSettings;
  const open = { ...defaultSettings.open };
  for (const [name, { key, value }] of document.open?.entries ?? []) {
    if (name !== "key" && name !== "session" && name !== "ledger")
      report.add("unknown-key", key.span, `\`open\` has no \`${name}\``, "it has `key`, `session`, `ledger`");
    else if (value.kind === "scalar") open[name] = wholeNumber(value, name, defaultSettings.open.ledger, report);
    else report.add("shape", value.span, `\`${name}\` is a number`);
  }
  return { self: document.self, open, outcomeWithinMs: readOutcomeWithin(document.outcomeWithin, report) };
}

function readOutcomeWithin(scalar: YamlScalar | undefined, report: Report): number {
  if (scalar === undefined) return defaultSettings.outcomeWithinMs;
  const ms = readLength(scalar, report);
  if (ms > outcomeDaysMax * dayMs)
    report.add("approval", scalar.span, `an outcome may be reported for at most ${outcomeDaysMax} days`);
  return ms;
}

function wholeNumber({ value, span }: YamlScalar, name: string, max: number, report: Report): number {
  if (typeof value === "number" && value >= 1 && value <= max) return value;
  report.add("approval", span, `\`${name}\` is a whole number from 1 to ${max}`);
  return 1;
}

/** The type of a member that a schema declares; undefined if it declares none. */
export function typeAt(record: RecordType, path: readonly string[]): Type | undefined {
  return fieldAt(record, path)?.type;
}

/** A declared member: its type, and whether it and every object around it must be there. */
export function fieldAt(
  record: RecordType,
  path: readonly string[],
): { readonly type: Type; readonly required: boolean } | undefined {
  let type: Type = record;
  let required = true;
  for (const name of path) {
    const inner: Type = type.kind === "nullable" ? type.of : type;
    const field: Field | undefined = inner.kind === "record" ? inner.fields.get(name) : undefined;
    if (field === undefined) return undefined;
    required &&= field.required && inner === type;
    type = field.type;
  }
  return { type, required };
}
