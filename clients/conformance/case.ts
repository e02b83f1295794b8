/**
 * The table of cases for clients, as `spec/vectors/client/README.md` describes it, read and completed: defaults are
 * filled in, and every case without an answer is run a second time with fail-open.
 */
import { readFileSync, readdirSync } from "node:fs";

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
export type Members = Readonly<Record<string, Json>>;

/** The scripted server's action for one request: its own bytes, or an answer built from the other members. */
export type Exchange = {
  readonly at?: "accept" | "head" | "body";
  readonly send?: string;
  readonly each_ms?: number;
  readonly delay_ms?: number;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: Json;
  readonly text?: string;
  readonly base64?: string;
  readonly fill?: number;
  readonly chunked?: boolean;
  readonly append?: string;
  readonly then?: "keep" | "close" | "reset" | "hang";
};

export type Call = {
  readonly method?: string;
  readonly pause_ms?: number;
  readonly [argument: string]: Json | undefined;
};

/** One call's expected result: an outcome by its kind, the result of another route, its failure, or none at all. */
export type Expected = {
  readonly kind?: string;
  readonly verdict?: string;
  readonly reason?: string;
  readonly mode?: Json;
  readonly receipt?: Json;
  readonly approval?: Json;
  readonly status?: number;
  readonly why?: string;
  readonly member?: string;
  /** The time-out of the attempt, if it is not the client's. */
  readonly ms?: number;
  /** True for a failure while the call waited for a person: fail-open does not apply. */
  readonly waiting?: boolean;
  readonly returns?: Json;
  readonly fails?: Members;
  readonly construction?: string;
};

export type ExpectedRequest = {
  readonly line?: string;
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly body?: Members;
};

export type Options = {
  readonly url: Json;
  readonly api_key?: Json;
  readonly session_id?: Json;
  readonly timeout_ms?: Json;
  readonly retries?: Json;
  readonly fail_open?: Json;
  readonly idempotent?: Json;
};

export type Case = {
  readonly id: string;
  readonly goal: string;
  readonly cites: readonly string[];
  readonly options: Options;
  readonly server: readonly Exchange[];
  readonly calls: readonly Call[];
  readonly at_once: boolean;
  readonly expect: readonly Expected[];
  readonly attempts?: number;
  readonly connections?: number;
  readonly requests?: readonly ExpectedRequest[];
  /** A label for the `call_id` of each request: the same label means the same id, null means none. */
  readonly call_ids?: readonly (string | null)[];
};

/** The expected reason, the result with fail-open, and whether another attempt may follow. */
export type Outcome = { readonly says: string; readonly fail_open: "ALLOW" | "BLOCK"; readonly retried: boolean };

type Row = Partial<Omit<Case, "server" | "options">> & {
  readonly id: string;
  readonly goal: string;
  readonly server?: readonly (Exchange | "ok")[];
  readonly options?: Partial<Options>;
};
type Table = { readonly cites: readonly string[]; readonly cases: readonly Row[] };

const vectors = new URL("../../spec/vectors/client/", import.meta.url);

/** Every client in a case has this key unless the case says otherwise; no result may show it. */
export const apiKey = "svc-key-Zq7mW2x9Lk4vB1nT";

const answered: Exchange = {
  json: { verdict: "ALLOW", reason: "Svc: fine", mode: "enforce", receipt: { seq: 1, hash: "ab", request: "$digest" } },
};
const defaultCall: Call = { tool_name: "shell.run", tool_input: { command: "ls" } };
const defaultOptions: Options = { url: "$gate", api_key: apiKey, timeout_ms: 20_000, retries: 1, fail_open: false };

export function outcomes(): ReadonlyMap<string, Outcome> {
  const table: Record<string, Outcome> = JSON.parse(readFileSync(new URL("outcomes.json", vectors), "utf8"));
  return new Map(Object.entries(table));
}

/** Returns all cases, and after each one without an answer its twin with fail-open. */
export function cases(): Case[] {
  const files = readdirSync(vectors).filter((name) => name.endsWith(".json") && name !== "outcomes.json");
  const all = files.flatMap((name) => {
    const table: Table = JSON.parse(readFileSync(new URL(name, vectors), "utf8"));
    return table.cases.map((row) => completed(row, table.cites));
  });
  return all.flatMap((one) => (isUnanswered(one) ? [one, failingOpen(one)] : [one]));
}

function completed(row: Row, cites: readonly string[]): Case {
  return {
    calls: [defaultCall],
    expect: [{ kind: "answer" }],
    at_once: false,
    ...row,
    cites: [...cites, ...(row.cites ?? [])],
    options: { ...defaultOptions, ...row.options },
    server: (row.server ?? ["ok"]).map((exchange) => (exchange === "ok" ? answered : exchange)),
  };
}

function isUnanswered(one: Case): boolean {
  const kinds = one.expect.map(({ kind }) => kind ?? "answer");
  return one.options.fail_open === false && kinds.some((kind) => kind !== "answer");
}

function failingOpen(one: Case): Case {
  return { ...one, id: `${one.id}+fail-open`, options: { ...one.options, fail_open: true } };
}
