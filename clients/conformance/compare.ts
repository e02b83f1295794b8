/** Compares a client's actions with the case's expectations; every difference is one line. Pure. */
import { isDeepStrictEqual } from "node:util";
import {
  apiKey,
  type Call,
  type Case,
  type Expected,
  type Json,
  type Members,
  type Options,
  type Outcome,
} from "./case.ts";
import type { ScriptedServer, SeenRequest } from "./server.ts";

export type CallResult = {
  readonly ms?: number;
  readonly verdict?: Members;
  readonly returns?: Json;
  readonly fails?: Members;
  readonly raised?: string;
};

export type ClientResult = {
  readonly id: string;
  readonly session_id?: string;
  readonly construction?: string;
  readonly results?: readonly CallResult[];
};

/** The shared part of a case's comparisons. `options` are the client's options, with addresses filled in. */
export type Run = {
  readonly case: Case;
  readonly options: Options;
  readonly outcomes: ReadonlyMap<string, Outcome>;
  readonly server: Pick<ScriptedServer, "requests" | "attempts" | "connections">;
};

/** Time that a busy machine may add to a client's longest wait. */
const graceMs = 1000;
const pauseMsMax = 150;

/** Returns the differences between a case and its result; the client passes if there are none. */
export function problemsOf(run: Run, result: ClientResult): string[] {
  const constructed = constructionProblems(run, result);
  if (constructed !== undefined) return constructed;
  const results = result.results ?? [];
  const missing = results.length === run.case.expect.length ? [] : [`${results.length} results`];
  return [
    ...missing,
    ...run.case.expect.flatMap((expected, index) =>
      callProblems(run, expected, results[index] ?? {}, run.case.calls[index]),
    ),
    ...countProblems(run),
    ...requestProblems(run, result),
    ...(JSON.stringify(result).includes(apiKey) ? ["a result shows the key"] : []),
  ];
}

function constructionProblems(run: Run, result: ClientResult): string[] | undefined {
  const expected = run.case.expect[0]?.construction;
  if (expected === undefined && result.construction === undefined) return undefined;
  if (expected === undefined) return [`construction failed: ${result.construction}`];
  if (result.construction === undefined) return ["construction did not fail"];
  if (/s3cret/.test(result.construction)) return ["the fault shows a secret"];
  return result.construction.includes(expected) ? [] : [`the fault does not name ${expected}: ${result.construction}`];
}

function callProblems(run: Run, expected: Expected, result: CallResult, call: Call | undefined): string[] {
  if (result.raised !== undefined) return [`raised ${result.raised}`];
  if (expected.returns !== undefined) return difference("returns", named(run, expected.returns), result.returns);
  if (expected.fails !== undefined) return memberProblems("fails", expected.fails, result.fails);
  if (result.verdict === undefined) return ["no verdict"];
  const wanted =
    expected.kind === "answer" || expected.kind === undefined ? answer(expected) : unreached(run, expected);
  const { reason, ...rest } = wanted;
  return [
    ...memberProblems("verdict", rest, result.verdict),
    ...reasonProblems(reason, shown(result.verdict["reason"])),
    ...timeProblems(run, call, result.ms ?? Infinity),
  ];
}

function answer(expected: Expected): Members {
  const { verdict = "ALLOW", reason = "Svc: fine", mode = "enforce", receipt, approval = null } = expected;
  const kept = receipt === undefined ? {} : { receipt };
  return { ...accessors(verdict), reason, mode, unreached: false, approval, ...kept };
}

function unreached(run: Run, expected: Expected): Members {
  const outcome = run.outcomes.get(expected.kind ?? "");
  if (outcome === undefined) throw new Error(`no outcome ${expected.kind} in outcomes.json`);
  const opens = run.options.fail_open === true && outcome.fail_open === "ALLOW" && expected.waiting !== true;
  const ending = opens
    ? "; fail-open is set, so the action runs unjudged."
    : "; without a verdict the action is blocked.";
  const said = outcome.says
    .replace("$GATE", `the gate at ${new URL(shown(run.options.url)).origin}`)
    .replace("$STATUS", String(expected.status))
    .replace("$MEMBER", expected.member ?? "")
    .replace("$MS", shown(expected.ms ?? run.options.timeout_ms))
    .replace("$WHY", expected.why ?? "*");
  return {
    ...accessors(opens ? "ALLOW" : "BLOCK"),
    reason: `Svc: ${said}${ending}`,
    mode: null,
    unreached: true,
    receipt: null,
    approval: null,
  };
}

/** A sentence names the gate by its address. */
function named({ options: { url } }: Run, value: Json): Json {
  return typeof value === "string" ? value.replace("$GATE", `the gate at ${new URL(shown(url)).origin}`) : value;
}

function accessors(verdict: string): Members {
  return { verdict, allowed: verdict === "ALLOW", escalated: verdict === "ESCALATE" };
}

/** Compares reasons; a star matches a language's words for its own types. */
function reasonProblems(wanted: Json | undefined, found: string): string[] {
  const [before = "", after] = shown(wanted).split("*");
  const same = after === undefined ? found === before : found.startsWith(before) && found.endsWith(after);
  return same ? [] : [`reason: wanted ${JSON.stringify(wanted)}, found ${JSON.stringify(found)}`];
}

function timeProblems(run: Run, call: Call | undefined, ms: number): string[] {
  const retries = Number(run.options.retries);
  const waits = call?.method === "settle" ? Number(call["timeout_ms"]) : 0;
  const most = waits + Number(run.options.timeout_ms) * (1 + retries) + pauseMsMax * retries + graceMs;
  return ms <= most ? [] : [`took ${ms} ms, over ${most}`];
}

function countProblems({ case: one, server }: Run): string[] {
  return [
    ...(one.attempts === undefined ? [] : difference("attempts", one.attempts, server.attempts())),
    ...(one.connections === undefined ? [] : difference("connections", one.connections, server.connections())),
  ];
}

function requestProblems(run: Run, result: ClientResult): string[] {
  const { requests } = run.server;
  const expected = run.case.requests ?? [];
  return [
    ...expected.flatMap((wanted, index) => {
      const seen = requests[index];
      if (seen === undefined) return [`request ${index} was not made`];
      const headers = Object.entries(wanted.headers ?? {});
      return [
        ...(wanted.line === undefined ? [] : difference("request line", wanted.line, seen.line)),
        ...headers.flatMap(([name, value]) => difference(name, value, seen.headers.get(name) ?? null)),
        ...(wanted.body === undefined ? [] : memberProblems("body", wanted.body, parsedBody(seen))),
      ];
    }),
    ...callIdProblems(run),
    ...requests.flatMap((seen) => [...keyProblems(run.options, seen), ...sessionProblems(result, seen)]),
  ];
}

/** Compares which requests share a `call_id`, and the form of each. */
function callIdProblems({ case: one, server: { requests } }: Run): string[] {
  if (one.call_ids === undefined) return [];
  const labels = new Map<string, string>();
  const found = requests.map((seen) => {
    const id = parsedBody(seen)["call_id"];
    if (id === undefined) return null;
    if (!/^[0-9a-f]{32}$/.test(shown(id))) return `not a call_id: ${shown(id)}`;
    const label = labels.get(shown(id)) ?? String.fromCodePoint(97 + labels.size);
    labels.set(shown(id), label);
    return label;
  });
  return difference("call_ids", [...one.call_ids], found);
}

/** Checks that every request but one carries the key. */
function keyProblems(options: Options, seen: SeenRequest): string[] {
  const open = options.api_key === null || /\/health HTTP/.test(seen.line);
  return difference(
    "authorization",
    open ? null : `Bearer ${shown(options.api_key)}`,
    seen.headers.get("authorization") ?? null,
  );
}

function sessionProblems(result: ClientResult, seen: SeenRequest): string[] {
  if (!/^POST \S*\/check /.test(seen.line) || seen.body.length === 0) return [];
  return difference("session_id", result.session_id ?? null, parsedBody(seen)["session_id"]);
}

function parsedBody(seen: SeenRequest): Members {
  const body: Members = seen.body.length === 0 ? {} : JSON.parse(seen.body.toString("utf8"));
  return body;
}

/** Members that are expected to be absent are expected as null. */
function memberProblems(what: string, wanted: Members, found: Members | undefined): string[] {
  if (found === undefined) return [`${what}: none`];
  return Object.entries(wanted).flatMap(([name, value]) => difference(`${what}.${name}`, value, found[name] ?? null));
}

function difference(what: string, wanted: Json, found: Json | undefined): string[] {
  if (isDeepStrictEqual(wanted, found)) return [];
  return [`${what}: wanted ${JSON.stringify(wanted)}, found ${JSON.stringify(found)}`];
}

function shown(value: Json | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}
