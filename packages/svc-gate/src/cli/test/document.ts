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

/** Calls that are decided one after another. Their counters begin at zero. */
export interface TestCase {
  readonly name: string;
  readonly span: Span;
  /** The values of counters before the first call, under every key: decimals by name. */
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

/** The expected result of a call; undefined members are not compared. */
export interface Expectation {
  readonly span: Span;
  readonly verdict: Verdict | undefined;
  /** The answer after the mode is applied. */
  readonly answered: Verdict | undefined;
  /** Complete (`payments.over-limit`), or without its contract (`over-limit`). */
  readonly rule: string | undefined;
  /** Complete if it begins with `Svc:`, else a part. */
  readonly reason: string | undefined;
  readonly final: boolean | undefined;
  /** Every rule that fires, in order, written like `rule`. */
  readonly fired: readonly string[] | undefined;
  /** Every rule in `mode: observe` that would have fired, in order. */
  readonly observed: readonly string[] | undefined;
  /** Decimals by name: the values that the call's rules read. */
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
/** The members of a call; in a case with `calls:`, those that all its calls share. */
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
