import {
  Report,
  readYaml,
  toJson,
  type Diagnostic,
  type SourceFile,
  type YamlNode,
  type YamlScalar,
} from "../../../core/src/contract/mod.ts";
import { outcomeRows } from "../../../core/src/record/entry/mod.ts";
import { bad, didYouMean, good, isMode, modes, type Mode, type Result } from "../../../core/src/wire/mod.ts";
import {
  callKeys,
  caseKeys,
  decisionActs,
  decisionKeys,
  decisionResults,
  fileKeys,
  latest,
  outcomeKeys,
  outcomeRefusals,
  sessionKeys,
  type TestCall,
  type TestCase,
  type TestDecision,
  type TestFile,
  type TestOutcome,
  type TestStep,
} from "./document.ts";
import { bodyText, Drafts, type Draft } from "./draft.ts";
import { expectationOf } from "./expectation.ts";
import { sheetOf, type Sheet } from "./sheet.ts";

/** The time of the first call if the file names none: a Thursday, at noon. */
const defaultNow = Date.UTC(2026, 0, 15, 12);
const callsMax = 100_000;

/** Reads a test file; reports all problems together, each with its position. */
export function readTests(source: SourceFile): Result<TestFile, readonly Diagnostic[]> {
  const report = new Report();
  const root = readYaml(source, report);
  const sheet = root === undefined ? undefined : sheetOf(root, "a test file", report);
  const file = sheet === undefined ? undefined : new TestFileReader(sheet.checkKeys(fileKeys)).file(sheet, source);
  return file === undefined || report.size > 0 ? bad(report.sorted([source])) : good(file);
}

/** How far the steps of a case are read. */
interface CaseProgress {
  /** The time of the last step. */
  now: number;
  /** The names of calls, and of their approvals, that a step may use. */
  readonly names: Set<string>;
}

class TestFileReader {
  readonly #report: Report;
  readonly #drafts: Drafts;
  readonly #people = new Map<string, readonly string[]>();
  #count = 0;

  constructor(sheet: Sheet) {
    this.#report = sheet.report;
    this.#drafts = new Drafts(sheet);
  }

  file(sheet: Sheet, source: SourceFile): TestFile {
    this.#readPeople(sheet);
    const start = { draft: this.#drafts.own(sheet), now: sheet.moment("now") ?? defaultNow };
    const cases = sheet.items("cases").flatMap((node) => this.#case(node, start) ?? []);
    if (cases.length === 0 && this.#report.size === 0)
      this.#report.add("missing", sheet.map.span, "the file has no cases", "list them under `cases:`");
    this.#names(cases);
    const title = sheet.text("tests") ?? source.name.replace(/^.*[/\\]/, "").replace(/\.test\.ya?ml$/, "");
    const subject = this.#subject(sheet, source);
    return { source, title, subject, mode: this.#mode(sheet), people: this.#people, cases };
  }

  /** The people who decide, each with its groups: `anna: [finance]`. */
  #readPeople(sheet: Sheet): void {
    const people = sheet.inner("persons", "`persons`");
    for (const name of people?.map.entries.keys() ?? []) {
      const groups = people?.texts(name) ?? [];
      const message = `\`${name}\` is a list of groups`;
      for (const { value, span } of groups)
        if (value === null) this.#report.add("shape", span, message, "write `[]` for a person without groups");
      this.#people.set(
        name,
        groups.map(({ text }) => text),
      );
    }
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
    sheet.checkKeys(sheet.has("calls") ? sessionKeys : caseKeys);
    const name = sheet.text("case") ?? "";
    const { span } = sheet.map.entries.get("case")?.value ?? sheet.map;
    if (name === "") this.#report.add("missing", { ...span, to: span.from + 1 }, "a case needs a name, under `case:`");
    if (/\p{Cc}/u.test(name)) this.#report.add("shape", span, "a case's name is one line");
    const given =
      sheet.inner("given", "`given`")?.checkKeys(["counters"]).decimals("counters") ?? new Map<string, string>();
    const progress = { now, names: new Set<string>() };
    const steps = sheet.has("calls")
      ? this.#steps(sheet, this.#drafts.within(sheet, draft), progress)
      : this.#call(sheet, draft, progress);
    // Such a case could not fail.
    if (steps.every(({ expect }) => expect === undefined))
      sheet.reportProblem("missing", "a case needs an expectation, under `expect:`");
    return { name, span, given, steps };
  }

  #steps(sheet: Sheet, draft: Draft, progress: CaseProgress): readonly TestStep[] {
    return sheet.items("calls").flatMap((item): readonly TestStep[] => {
      const step = sheetOf(item, "a call", this.#report);
      if (step === undefined) return [];
      if (step.has("outcome")) return [this.#outcome(step, progress)];
      return decisionActs.some((act) => step.has(act))
        ? this.#decision(step, progress)
        : this.#call(step.checkKeys(callKeys), draft, progress);
    });
  }

  /** A person decides a call of the case, or its key cancels it. */
  #decision(sheet: Sheet, progress: CaseProgress): readonly TestDecision[] {
    sheet.checkKeys(decisionKeys, "a decision");
    const { span } = sheet.map;
    const [act = "approve", ...others] = decisionActs.filter((name) => sheet.has(name));
    if (others.length > 0)
      sheet.reportProblem("twice", `a decision has one of ${decisionActs.map((name) => `\`${name}:\``).join(", ")}`);
    const by = sheet.scalar(act);
    if (by !== undefined && act !== "cancel") sheet.resolveName(by, "person", this.#people);
    const scope = sheet.oneOf("scope", "scope", ["call", "tool", "rule"] as const);
    if (scope !== undefined && act !== "deny") sheet.reportProblem("literal", "`scope:` belongs to `deny:`");
    const approval = this.#nameAbove(sheet.scalar("approval"), "approval", progress) ?? latest;
    if (!progress.names.has(approval) && !sheet.has("approval"))
      sheet.reportProblem("missing", `no call comes before it, so there is nothing to ${act}`);
    const at = this.#time(sheet, progress, "a decision");
    const result = sheet.oneOf("expect", "result of a decision", decisionResults);
    const expect = result && { span: sheet.node("expect")?.span ?? span, result };
    const comment = sheet.text("comment") ?? "";
    return [{ kind: "decision", span, act, by: by?.text ?? "", approval, comment, scope: scope ?? "call", at, expect }];
  }

  /** A key reports what became of a call of the case. */
  #outcome(sheet: Sheet, progress: CaseProgress): TestOutcome {
    sheet.checkKeys(outcomeKeys, "an outcome");
    const { span } = sheet.map;
    const status = sheet.oneOf("outcome", "status of an outcome", outcomeRows.outcomeStatuses) ?? "done";
    if (sheet.decimal("amount") !== undefined && status !== "done")
      sheet.reportProblem("literal", "`amount:` belongs to `outcome: done`");
    const amount = sheet.node("amount");
    const call = this.#nameAbove(sheet.scalar("call"), "outcome", progress) ?? latest;
    if (progress.names.size === 0 && !sheet.has("call"))
      sheet.reportProblem("missing", "no call comes before it, so there is nothing to report");
    const at = this.#time(sheet, progress, "an outcome");
    const result = sheet.oneOf("expect", "refusal of an outcome", outcomeRefusals);
    const expect = result && { span: sheet.node("expect")?.span ?? span, result };
    const key = sheet.text("key");
    return { kind: "outcome", span, status, call, amount: amount && toJson(amount), key, at, expect };
  }

  /** A name that a call above has. */
  #nameAbove(scalar: YamlScalar | undefined, what: string, { names }: CaseProgress): string | undefined {
    if (scalar === undefined || names.has(scalar.text)) return scalar?.text;
    const hint = didYouMean(scalar.text, names, "name a call with `as:`");
    const none = `no call comes before it, so there is no ${what}`;
    if (names.size === 0) this.#report.add("unknown-name", scalar.span, none);
    else this.#report.add("unknown-name", scalar.span, `no call above has \`as: ${scalar.text}\``, hint);
    return undefined;
  }

  /** One call, as often as it is repeated; the clock advances with it. */
  #call(sheet: Sheet, base: Draft, progress: CaseProgress): readonly TestCall[] {
    const draft = this.#drafts.readCall(sheet, base);
    const { span } = sheet.map;
    if (draft.tool === undefined) sheet.reportProblem("missing", "a call needs a tool, under `tool:`");
    const tool = draft.tool?.text ?? "";
    const body = bodyText(tool, draft);
    const expect = expectationOf(sheet);
    const repeat = this.#repeat(sheet);
    const every = sheet.pause("every") ?? 0;
    if (sheet.has("every") && !sheet.has("repeat"))
      sheet.reportProblem("missing", "`every:` is the time between repetitions: `repeat:` is their number");
    const from = this.#time(sheet, progress, "a call");
    progress.now = from + every * (repeat - 1);
    const { key = "default", session = null } = draft;
    const approval = this.#nameAbove(sheet.scalar("approval"), "approval", progress);
    const as = sheet.text("as");
    if (as === latest)
      sheet.reportProblem("literal", `\`${latest}\` is the approval of the latest answer: take another name`);
    for (const name of [latest, as ?? latest]) progress.names.add(name);
    const call = { kind: "call", span, tool, body, key, session, approval, as, expect } as const;
    return Array.from({ length: repeat }, (_, at) => ({ ...call, at: from + every * at }));
  }

  /** The time of a step. Time goes forward. */
  #time(sheet: Sheet, progress: CaseProgress, what: string): number {
    const { now } = progress;
    if (sheet.has("at") && sheet.has("after"))
      sheet.reportProblem("twice", `${what} has \`at:\` or \`after:\`, not both`);
    const at = sheet.moment("at") ?? now + (sheet.pause("after") ?? 0);
    if (at < now)
      sheet.reportProblem(
        "literal",
        `${what.replace(/^an? /, "the ")} is earlier than the one above it: time goes forward`,
      );
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
}
