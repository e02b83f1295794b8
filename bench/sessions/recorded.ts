import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

/**
 * Recorded agent sessions, as the folder's README describes them. Labels are read by the scorers alone; what is sent to
 * the gate is made by `requestBody`, which takes none.
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
  /** Is it a change of the platform's records? Of the customers' desks alone. */
  readonly write?: boolean;
  /** The records before the call. */
  readonly state?: Facts;
}

export type Facts = Readonly<Record<string, unknown>>;

/** A: the call, the session's history and the platform's records. B: the user's request as well. */
export type Track = "A" | "B";

/** Besides the repository, unless the environment says where; undefined where it is not. */
export function recordedFolder(root: string): string | undefined {
  const folder = process.env["SESSIONS_DIR"] ?? join(root, "..", "shared", "eval");
  return existsSync(join(folder, "dev")) ? folder : undefined;
}

/** Is the file there? Another collection may lack some. */
export function hasSessions(folder: string, file: string): boolean {
  return existsSync(join(folder, "dev", `${file}.jsonl.gz`));
}

export function readSessions(folder: string, file: string): readonly Session[] {
  return sessionLines(folder, file).map((line) => JSON.parse(line) as Session);
}

/** The file unpacked, a session a line, for scorers of other languages. */
export function sessionLines(folder: string, file: string): readonly string[] {
  const text = gunzipSync(readFileSync(join(folder, "dev", `${file}.jsonl.gz`))).toString();
  return text.split("\n").filter((line) => line !== "");
}

/** What each suite's platform knows by itself. */
export function readFacts(folder: string): ReadonlyMap<string, Facts> {
  const facts = JSON.parse(readFileSync(join(folder, "dev", "env_facts.json"), "utf8")) as Record<string, Facts>;
  return new Map(Object.entries(facts));
}

/** The contract of a suite's platform: a file's name. */
export function contractOf(suite: string): string {
  if (suite.startsWith("asb_")) return "agents.yaml";
  return `${suite.replace(/^tau_/, "")}.yaml`;
}

/** The customers' desks live at one moment, which their written policies name. */
const deskNow = "2024-05-15T15:00:00";

/** What a platform would send with a call: its records and, on track B, the request. */
export function factsOf(
  { suite, prompt }: Session,
  call: RecordedCall,
  known: ReadonlyMap<string, Facts>,
  track: Track,
): Facts {
  const records = suite.startsWith("tau_") ? { now: deskNow, ...call.state } : { ...known.get(suite) };
  return track === "B" && prompt !== undefined ? { ...records, request: prompt } : records;
}
