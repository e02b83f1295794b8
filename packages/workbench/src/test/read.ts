import {
  Report,
  readYaml,
  toJson,
  type Diagnostic,
  type SourceFile,
  type YamlMap,
  type YamlNode,
  type YamlScalar,
} from "../../../core/src/contract/mod.ts";
import { outcomeRows } from "../../../core/src/record/entry/mod.ts";
import {
  bad,
  good,
  isMode,
  isVerdict,
  modes,
  nearest,
  verdicts,
  jsonText,
  type Json,
  type JsonObject,
  type Mode,
  type Result,
  type Verdict,
} from "../../../core/src/wire/mod.ts";
import {
  approvalKeys,
  approvalStatuses,
  callKeys,
  caseKeys,
  decisionActs,
  decisionKeys,
  decisionResults,
  expectKeys,
  fileKeys,
  latest,
  nextSteps,
  outcomeKeys,
  outcomeRefusals,
  sessionKeys,
  templateKeys,
  type ExpectedApproval,
  type Expectation,
  type TestCall,
  type TestCase,
  type TestDecision,
  type TestFile,
  type TestOutcome,
  type TestStep,
} from "./document.ts";
import { sheetOf, type Sheet } from "./sheet.ts";
import { momentOf, pauseOf } from "../../../records/src/mod.ts";

/** The time of the first call if the file names none: a Thursday, at noon. */
const defaultNow = Date.UTC(2026, 0, 15, 12);
const callsMax = 100_000;

/** Reads a test file; reports all problems together, each with its place. */
export function readTests(source: SourceFile): Result<TestFile, readonly Diagnostic[]> {
  const report = new Report();
  const root = readYaml(source, report);
  const sheet = root === undefined ? undefined : sheetOf(root, "a test file", report);
  const file = sheet === undefined ? undefined : new Reader(report).file(sheet.known(fileKeys), source);
  return file === undefined || report.size > 0 ? bad(report.sorted([source])) : good(file);
}

/** The members of a call in one part of the file, before the body of the check is written. */
interface Draft {
  readonly tool: YamlScalar | undefined;
  readonly input: JsonObject;
  /** Null without facts, undefined if nothing is specified. */
  readonly platform: JsonObject | null | undefined;
  readonly key: string | undefined;
  /** Null if the call has no session. */
  readonly session: string | null | undefined;
}

const nothing: JsonObject = new Map();

/** How far the steps of a case are read. */
interface Progress {
  /** The time of the last step. */
  now: number;
  /** The names of calls, and of their approvals, that a step may use. */
  readonly names: Set<string>;
}

class Reader {
  readonly #report: Report;
  readonly #fixtures = new Map<string, JsonObject>();
  readonly #templates = new Map<string, Draft>();
  readonly #persons = new Map<string, readonly string[]>();
  #count = 0;

  constructor(report: Report) {
    this.#report = report;
  }

  file(sheet: Sheet, source: SourceFile): TestFile {
    for (const [name, node] of sheet.entries("fixtures")) this.#fixtures.set(name, this.#object(node, name));
    for (const [name, node] of sheet.entries("templates")) {
      const template = sheetOf(node, "a template", this.#report)?.known(templateKeys);
      if (template !== undefined) this.#templates.set(name, this.#own(template));
    }
    this.#readPersons(sheet);
    const start = { draft: this.#own(sheet), now: this.#moment(sheet, "now") ?? defaultNow };
    const cases = sheet.items("cases").flatMap((node) => this.#case(node, start) ?? []);
    if (cases.length === 0 && this.#report.size === 0)
      this.#report.add("missing", sheet.map.span, "the file has no cases", "list them under `cases:`");
    this.#names(cases);
    const title = sheet.text("tests") ?? source.name.replace(/^.*[/\\]/, "").replace(/\.test\.ya?ml$/, "");
    const subject = this.#subject(sheet, source);
    return { source, title, subject, mode: this.#mode(sheet), persons: this.#persons, cases };
  }

  /** The persons who decide, each with its groups: `anna: [finance]`. */
  #readPersons(sheet: Sheet): void {
    const persons = sheet.inner("persons", "`persons`");
    for (const name of persons?.map.entries.keys() ?? [])
      this.#persons.set(
        name,
        (persons?.texts(name) ?? []).map(({ text, value, span }) => {
          if (value === null)
            this.#report.add(
              "shape",
              span,
              `\`${name}\` is a list of groups`,
              "write `[]` for a person without groups",
            );
          return text;
        }),
      );
  }

  /** The file that the tests name, or the one next to them: `x.yaml` for `x.test.yaml`. */
  #subject(sheet: Sheet, source: SourceFile): string {
    const both = sheet.has("contract") && sheet.has("mandate");
    if (both) this.#report.add("twice", sheet.map.span, "a test file names a `contract:` or a `mandate:`, not both");
    const named = sheet.text("contract") ?? sheet.text("mandate");
    return named ?? source.name.replace(/^.*[/\\]/, "").replace(/\.test(\.ya?ml)$/, "$1");
  }

  #mode(sheet: Sheet): Mode {
    const scalar = sheet.scalar("mode");
    if (scalar === undefined || isMode(scalar.text)) return (scalar?.text as Mode | undefined) ?? "enforce";
    this.#report.add("shape", scalar.span, `\`${scalar.text}\` is not a mode`, `modes are ${modes.join(", ")}`);
    return "enforce";
  }

  #names(cases: readonly TestCase[]): void {
    const seen = new Set<string>();
    for (const { name, span } of cases) {
      if (seen.has(name)) this.#report.add("twice", span, `two cases are called \`${name}\``);
      seen.add(name);
    }
  }

  #case(node: YamlNode, { draft, now }: { readonly draft: Draft; readonly now: number }): TestCase | undefined {
    const sheet = sheetOf(node, "a case", this.#report);
    if (sheet === undefined) return undefined;
    sheet.known(sheet.has("calls") ? sessionKeys : caseKeys);
    const name = sheet.text("case") ?? "";
    const { span } = sheet.map.entries.get("case")?.value ?? sheet.map;
    if (name === "") this.#report.add("missing", { ...span, to: span.from + 1 }, "a case needs a name, under `case:`");
    if (/\p{Cc}/u.test(name)) this.#report.add("shape", span, "a case's name is one line");
    const given =
      sheet.inner("given", "`given`")?.known(["counters"]).decimals("counters") ?? new Map<string, string>();
    const progress = { now, names: new Set<string>() };
    const steps = sheet.has("calls")
      ? this.#steps(sheet, this.#draft(sheet, draft), progress)
      : this.#call(sheet, draft, progress);
    return { name, span, given, steps: this.#expected(steps, sheet) };
  }

  #steps(sheet: Sheet, draft: Draft, progress: Progress): readonly TestStep[] {
    return sheet.items("calls").flatMap((item): readonly TestStep[] => {
      const step = sheetOf(item, "a call", this.#report);
      if (step === undefined) return [];
      if (step.has("outcome")) return [this.#outcome(step, progress)];
      return decisionActs.some((act) => step.has(act))
        ? this.#decision(step, progress)
        : this.#call(step.known(callKeys), draft, progress);
    });
  }

  /** A person decides a call of the case, or its key cancels it. */
  #decision(sheet: Sheet, progress: Progress): readonly TestDecision[] {
    sheet.known(decisionKeys, "a decision");
    const { span } = sheet.map;
    const [act = "approve", ...others] = decisionActs.filter((name) => sheet.has(name));
    if (others.length > 0)
      sheet.wrong("twice", `a decision has one of ${decisionActs.map((name) => `\`${name}:\``).join(", ")}`);
    const by = sheet.scalar(act);
    if (by !== undefined && act !== "cancel") this.#named(by, "person", this.#persons);
    const scope = this.#oneOf(sheet.scalar("scope"), "scope", ["call", "tool", "rule"] as const);
    if (scope !== undefined && act !== "deny") sheet.wrong("literal", "`scope:` belongs to `deny:`");
    const approval = this.#nameAbove(sheet.scalar("approval"), "approval", progress) ?? latest;
    if (!progress.names.has(approval) && !sheet.has("approval"))
      sheet.wrong("missing", `no call comes before it, so there is nothing to ${act}`);
    const at = this.#time(sheet, progress, "a decision");
    const result = this.#oneOf(sheet.scalar("expect"), "result of a decision", decisionResults);
    const expect = result === undefined ? undefined : { span: sheet.node("expect")?.span ?? span, result };
    const comment = sheet.text("comment") ?? "";
    return [{ kind: "decision", span, act, by: by?.text ?? "", approval, comment, scope: scope ?? "call", at, expect }];
  }

  /** A key reports what became of a call of the case. */
  #outcome(sheet: Sheet, progress: Progress): TestOutcome {
    sheet.known(outcomeKeys, "an outcome");
    const { span } = sheet.map;
    const status = this.#oneOf(sheet.scalar("outcome"), "status of an outcome", outcomeRows.outcomeStatuses) ?? "done";
    if (sheet.decimal("amount") !== undefined && status !== "done")
      sheet.wrong("literal", "`amount:` belongs to `outcome: done`");
    const amount = sheet.node("amount");
    const call = this.#nameAbove(sheet.scalar("call"), "outcome", progress) ?? latest;
    if (progress.names.size === 0 && !sheet.has("call"))
      sheet.wrong("missing", "no call comes before it, so there is nothing to report");
    const at = this.#time(sheet, progress, "an outcome");
    const result = this.#oneOf(sheet.scalar("expect"), "refusal of an outcome", outcomeRefusals);
    const expect = result === undefined ? undefined : { span: sheet.node("expect")?.span ?? span, result };
    const key = sheet.text("key");
    return { kind: "outcome", span, status, call, amount: amount && toJson(amount), key, at, expect };
  }

  /** A name that a call above has. */
  #nameAbove(scalar: YamlScalar | undefined, what: string, { names }: Progress): string | undefined {
    if (scalar === undefined || names.has(scalar.text)) return scalar?.text;
    const near = nearest(scalar.text, names);
    const hint = near === undefined ? "name a call with `as:`" : `did you mean \`${near}\`?`;
    const none = `no call comes before it, so there is no ${what}`;
    if (names.size === 0) this.#report.add("unknown-name", scalar.span, none);
    else this.#report.add("unknown-name", scalar.span, `no call above has \`as: ${scalar.text}\``, hint);
    return undefined;
  }

  /** A case without expectations could not fail. */
  #expected(steps: readonly TestStep[], sheet: Sheet): readonly TestStep[] {
    if (steps.every(({ expect }) => expect === undefined))
      sheet.wrong("missing", "a case needs an expectation, under `expect:`");
    return steps;
  }

  /** One call, as often as it is repeated; the clock advances with it. */
  #call(sheet: Sheet, base: Draft, progress: Progress): readonly TestCall[] {
    const draft = this.#without(sheet, this.#draft(sheet, base));
    const { span } = sheet.map;
    if (draft.tool === undefined) sheet.wrong("missing", "a call needs a tool, under `tool:`");
    const tool = draft.tool?.text ?? "";
    const body = bodyText(tool, draft);
    const expect = this.#expectation(sheet);
    const repeat = this.#repeat(sheet);
    const every = this.#pause(sheet, "every") ?? 0;
    if (sheet.has("every") && !sheet.has("repeat"))
      sheet.wrong("missing", "`every:` is the time between repetitions: `repeat:` is their number");
    const from = this.#time(sheet, progress, "a call");
    progress.now = from + every * (repeat - 1);
    const { key = "default", session = null } = draft;
    const approval = this.#nameAbove(sheet.scalar("approval"), "approval", progress);
    const as = sheet.text("as");
    if (as === latest) sheet.wrong("literal", `\`${latest}\` is the approval of the latest answer: take another name`);
    for (const name of [latest, as ?? latest]) progress.names.add(name);
    return Array.from({ length: repeat }, (_, at) => ({
      kind: "call",
      span,
      tool,
      body,
      key,
      session,
      approval,
      as,
      at: from + every * at,
      expect,
    }));
  }

  /** The time of a step. Time goes forward. */
  #time(sheet: Sheet, progress: Progress, what: string): number {
    const { now } = progress;
    if (sheet.has("at") && sheet.has("after")) sheet.wrong("twice", `${what} has \`at:\` or \`after:\`, not both`);
    const at = this.#moment(sheet, "at") ?? now + (this.#pause(sheet, "after") ?? 0);
    if (at < now)
      sheet.wrong("literal", `${what.replace(/^an? /, "the ")} is earlier than the one above it: time goes forward`);
    return (progress.now = at);
  }

  #repeat(sheet: Sheet): number {
    const scalar = sheet.scalar("repeat");
    if (scalar === undefined) return 1;
    const times = typeof scalar.value === "number" ? scalar.value : 0;
    this.#count += times;
    if (times >= 1 && this.#count <= callsMax) return times;
    this.#report.add("shape", scalar.span, `\`repeat\` is a whole number above 0; all together at most ${callsMax}`);
    return 1;
  }

  /** The members of a call in a map. They override the template that it names, which overrides the surrounding case. */
  #draft(sheet: Sheet, around: Draft): Draft {
    const like = sheet.scalar("like");
    const template = like === undefined ? undefined : this.#named(like, "template", this.#templates);
    return over(template === undefined ? around : over(around, template), this.#own(sheet));
  }

  #own(sheet: Sheet): Draft {
    const platform = sheet.node("platform");
    const input = sheet.node("input");
    return {
      tool: sheet.scalar("tool"),
      input: input === undefined ? nothing : this.#object(input, "input"),
      platform: platform === undefined ? undefined : this.#platform(platform),
      key: sheet.text("key"),
      session: sheet.textOrNull("session"),
    };
  }

  /** A fixture's name, facts, `{ from: fixture, ... }`, or null. */
  #platform(node: YamlNode): JsonObject | null {
    if (node.kind === "scalar")
      return node.value === null ? null : (this.#named(node, "fixture", this.#fixtures) ?? null);
    const from = node.kind === "map" ? node.entries.get("from")?.value : undefined;
    if (node.kind !== "map" || from?.kind !== "scalar") return this.#object(node, "platform");
    const entries = new Map([...node.entries].filter(([name]) => name !== "from"));
    const changes: YamlMap = { ...node, entries };
    return merge(this.#named(from, "fixture", this.#fixtures) ?? nothing, this.#object(changes, "platform"));
  }

  /** Removes members: `without: [platform.price]`. */
  #without(sheet: Sheet, draft: Draft): Draft {
    const input = new Map(draft.input);
    const platform = new Map(draft.platform ?? nothing);
    for (const { text, span } of sheet.texts("without")) {
      const [root = "", ...rest] = text.split(".");
      const members = root === "input" ? input : root === "platform" ? platform : undefined;
      if (members?.delete(rest.join(".")) === true) continue;
      const message = `the call has no \`${text}\` to leave out`;
      this.#report.add("unknown-member", span, message, "`input.name` or `platform.name`");
    }
    return { ...draft, input, platform: draft.platform instanceof Map ? platform : null };
  }

  #named<Thing>(scalar: YamlScalar, what: string, known: ReadonlyMap<string, Thing>): Thing | undefined {
    const found = known.get(scalar.text);
    if (found !== undefined) return found;
    const near = nearest(scalar.text, known.keys());
    const hint = near === undefined ? `name it under \`${what}s:\`` : `did you mean \`${near}\`?`;
    this.#report.add("unknown-name", scalar.span, `no ${what} is called \`${scalar.text}\``, hint);
    return undefined;
  }

  #object(node: YamlNode, name: string): JsonObject {
    const value: Json = toJson(node);
    if (value instanceof Map) return value;
    this.#report.add("shape", node.span, `\`${name}\` is a map of names to values`);
    return nothing;
  }

  #moment(sheet: Sheet, name: string): number | undefined {
    const scalar = sheet.scalar(name);
    const moment = scalar === undefined ? undefined : momentOf(scalar.text);
    if (scalar !== undefined && moment === undefined)
      this.#report.add("literal", scalar.span, `\`${name}\` is a time`, 'such as "2026-01-15T12:00:00Z", in quotes');
    return moment;
  }

  #pause(sheet: Sheet, name: string): number | undefined {
    const scalar = sheet.scalar(name);
    const pause = scalar === undefined ? undefined : pauseOf(scalar.text);
    if (scalar !== undefined && pause === undefined)
      this.#report.add("literal", scalar.span, `\`${name}\` is a duration`, "such as 90s, 10m, 1h30m or 7d");
    return pause;
  }

  #expectation(sheet: Sheet): Expectation | undefined {
    const node = sheet.node("expect");
    if (node === undefined) return undefined;
    if (node.kind === "scalar") return { span: node.span, result: this.#verdict(node), counters: new Map() };
    const inner = sheetOf(node, "`expect`", this.#report)?.known(expectKeys);
    if (inner === undefined) return undefined;
    if (inner.map.entries.size === 0) this.#report.add("missing", node.span, "`expect` is empty");
    return {
      span: node.span,
      verdict: this.#verdict(inner.scalar("verdict")),
      answered: this.#verdict(inner.scalar("answered")),
      rule: inner.text("rule"),
      reason: inner.text("reason"),
      final: inner.has("final") ? inner.flag("final") : undefined,
      fired: this.#rules(inner, "fired"),
      observed: this.#rules(inner, "observed"),
      counters: inner.decimals("counters"),
      approval: this.#approval(inner),
    };
  }

  /** A status, null for an answer without approval, or members of the answer's `approval`. */
  #approval(sheet: Sheet): ExpectedApproval | null | undefined {
    const node = sheet.node("approval");
    if (node === undefined) return undefined;
    const status = (scalar: YamlScalar | undefined): ExpectedApproval["status"] =>
      this.#oneOf(scalar, "status of an approval", approvalStatuses);
    if (node.kind === "scalar") return node.value === null ? null : { status: status(node) };
    const inner = sheetOf(node, "`approval`", this.#report)?.known(approvalKeys);
    if (inner === undefined) return undefined;
    if (inner.map.entries.size === 0) this.#report.add("missing", node.span, "`approval` is empty");
    return {
      status: status(inner.scalar("status")),
      new: inner.has("new") ? inner.flag("new") : undefined,
      needs: inner.decimal("needs"),
      has: inner.decimal("has"),
      next: this.#oneOf(inner.scalar("next"), "next step", nextSteps),
    };
  }

  #oneOf<Name extends string>(scalar: YamlScalar | undefined, what: string, names: readonly Name[]): Name | undefined {
    if (scalar === undefined) return undefined;
    const found = names.find((name) => name === scalar.text);
    if (found !== undefined) return found;
    const near = nearest(scalar.text, names);
    const hint = near === undefined ? `it is one of ${names.join(", ")}` : `did you mean \`${near}\`?`;
    this.#report.add("unknown-name", scalar.span, `\`${scalar.text}\` is not a ${what}`, hint);
    return undefined;
  }

  #rules(sheet: Sheet, name: string): readonly string[] | undefined {
    return sheet.has(name) ? sheet.texts(name).map(({ text }) => text) : undefined;
  }

  #verdict(scalar: YamlScalar | undefined): Verdict | undefined {
    if (scalar === undefined || isVerdict(scalar.text)) return scalar?.text as Verdict | undefined;
    const near = nearest(scalar.text.toUpperCase(), verdicts);
    const hint = near === undefined ? "verdicts are ALLOW, ESCALATE and BLOCK" : `did you mean \`${near}\`?`;
    this.#report.add("verdict", scalar.span, `\`${scalar.text}\` is not a verdict`, hint);
    return undefined;
  }
}

function over(base: Draft, top: Draft): Draft {
  return {
    tool: top.tool ?? base.tool,
    input: merge(base.input, top.input),
    platform: top.platform === undefined ? base.platform : top.platform,
    key: top.key ?? base.key,
    session: top.session === undefined ? base.session : top.session,
  };
}

function merge(base: JsonObject, top: JsonObject): JsonObject {
  return new Map([...base, ...top]);
}

function bodyText(tool: string, { input, platform = null, session = null }: Draft): string {
  const members: [string, Json][] = [
    ["tool_name", tool],
    ["tool_input", input],
  ];
  if (session !== null) members.push(["session_id", session]);
  if (platform !== null) members.push(["platform_state", platform]);
  return jsonText(new Map(members));
}
