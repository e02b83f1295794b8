import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

/**
 * Recorded agent sessions, as the folder's README describes them. Only the scorers read the labels; `requestBody`,
 * which makes the gate's requests, does not receive them.
 */
export interface Session {
  readonly session_id: string;
  readonly suite: string;
  readonly kind?: "benign" | "attacked" | "injection_only";
  readonly user_task: string | number;
  readonly attack?: string | null;
  readonly utility?: boolean | null;
  readonly security?: boolean | null;
  readonly prompt?: string;
  readonly category?: string;
  readonly expected?: "block" | "allow" | "escalate";
  readonly calls: readonly RecordedCall[];
}

export interface RecordedCall {
  readonly tool_name: string;
  readonly tool_input: Facts;
  readonly label: "user" | "injection" | "unknown" | "unexpected";
  readonly effect?: string;
  readonly side_effect_tool?: boolean;
  readonly harmful?: boolean;
  readonly causal?: boolean;
  /** Whether it changes the platform's records. Only the customer desks have this. */
  readonly write?: boolean;
  /** The records before the call. */
  readonly state?: Facts;
}

export type Facts = Readonly<Record<string, unknown>>;

/** A: the call, the session's history and the platform's records. B: also the user's request. */
export type Track = "A" | "B";

/** Returns the folder next to the repository, unless the environment names another; undefined if it does not exist. */
export function recordedFolder(root: string): string | undefined {
  const folder = process.env["SESSIONS_DIR"] ?? join(root, "..", "shared", "eval");
  return existsSync(join(folder, "dev")) ? folder : undefined;
}

/** Returns whether the file exists. Another collection may lack some. */
export function hasSessions(folder: string, file: string): boolean {
  return existsSync(join(folder, "dev", `${file}.jsonl.gz`));
}

export function readSessions(folder: string, file: string): readonly Session[] {
  return sessionLines(folder, file).map((line) => JSON.parse(line) as Session);
}

/** Returns the unpacked file, one session a line, for scorers in other languages. */
export function sessionLines(folder: string, file: string): readonly string[] {
  const text = gunzipSync(readFileSync(join(folder, "dev", `${file}.jsonl.gz`))).toString();
  return text.split("\n").filter((line) => line !== "");
}

/** Returns the records that each suite's platform has itself. */
export function readFacts(folder: string): ReadonlyMap<string, Facts> {
  const facts = JSON.parse(readFileSync(join(folder, "dev", "env_facts.json"), "utf8")) as Record<string, Facts>;
  return new Map(Object.entries(facts));
}

/** Returns the contract of a suite's platform: the file's name. */
export function contractOf(suite: string): string {
  if (suite.startsWith("asb_")) return "agents.yaml";
  return `${suite.replace(/^tau_/, "")}.yaml`;
}

/** The time of the customer desks' calls, as in their written policies. */
const deskNow = "2024-05-15T15:00:00";

/** Returns the facts that a platform would send with a call: its records and, on track B, the request. */
export function factsOf(
  { suite, prompt }: Session,
  call: RecordedCall,
  known: ReadonlyMap<string, Facts>,
  track: Track,
): Facts {
  const records = suite.startsWith("tau_") ? { now: deskNow, ...call.state } : { ...known.get(suite) };
  return track === "B" && prompt !== undefined ? { ...records, request: prompt } : records;
}
