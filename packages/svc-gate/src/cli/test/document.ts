import type { SourceFile, Span } from "../../contract/mod.ts";
import type { Mode, Verdict } from "../../wire/mod.ts";

/** A test file as it was written, with everything resolved: fixtures, templates, times and repetitions. */
export interface TestFile {
  readonly source: SourceFile;
  readonly title: string;
  /** The contract or mandate under test, as the command line would name it. */
  readonly subject: string;
  readonly mode: Mode;
  readonly cases: readonly TestCase[];
}

/** Calls that are decided one after another, beginning with counters that stand at nothing. */
export interface TestCase {
  readonly name: string;
  readonly span: Span;
  /** What counters stand at before the first call, under every key: decimals by name. */
  readonly given: ReadonlyMap<string, string>;
  readonly calls: readonly TestCall[];
}

export interface TestCall {
  readonly span: Span;
  readonly tool: string;
  /** The body of POST /check, as a client would send it. */
  readonly body: string;
  /** The API key's name. */
  readonly key: string;
  readonly session: string | null;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly expect: Expectation | undefined;
}

/** What a call must come to; what is undefined is not looked at. */
export interface Expectation {
  readonly span: Span;
  readonly verdict: Verdict | undefined;
  /** What the mode lets out. */
  readonly answered: Verdict | undefined;
  /** Whole (`payments.over-limit`), or without its contract (`over-limit`). */
  readonly rule: string | undefined;
  /** Whole where it begins with `Svc:`, else a part. */
  readonly reason: string | undefined;
  readonly final: boolean | undefined;
  /** Every rule that fires, in order, written as `rule` is. */
  readonly fired: readonly string[] | undefined;
  /** Every rule in `mode: observe` that would have fired, in order. */
  readonly observed: readonly string[] | undefined;
  /** Decimals by name: what the call's rules see. */
  readonly counters: ReadonlyMap<string, string>;
}

export const fileKeys: readonly string[] = [
  "tests",
  "contract",
  "mandate",
  "now",
  "mode",
  "key",
  "session",
  "fixtures",
  "templates",
  "cases",
];
/** What a call says of itself; in a case with `calls:`, what holds for all of them. */
const draftKeys = ["like", "tool", "input", "platform", "key", "session"];
export const templateKeys: readonly string[] = draftKeys.slice(1);
export const callKeys: readonly string[] = [...draftKeys, "without", "at", "after", "repeat", "every", "expect"];
export const caseKeys: readonly string[] = ["case", "given", ...callKeys];
export const sessionKeys: readonly string[] = ["case", "given", "calls", ...draftKeys];
export const expectKeys: readonly string[] = [
  "verdict",
  "answered",
  "rule",
  "reason",
  "final",
  "fired",
  "observed",
  "counters",
];
