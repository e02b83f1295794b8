import { spawn, type ChildProcess } from "node:child_process";
import { hash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { factsOf, type Facts, type RecordedCall, type Session, type Track } from "./recorded.ts";

export type Verdict = "ALLOW" | "ESCALATE" | "BLOCK";

export interface Judged {
  readonly session: Session;
  readonly verdicts: readonly Verdict[];
  /** The gate's reason for each verdict. */
  readonly reasons: readonly string[];
}

export interface ReplayedGate {
  readonly url: string;
  readonly stop: () => Promise<void>;
}

const key = "bench-key-bench-key-bench-key";
const sessionsAtOnce = 16;

/** Starts a gate in enforce mode in another process, with an empty ledger and one contract in force. */
export async function startGate(root: string, contract: string): Promise<ReplayedGate> {
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-sessions-"));
  const child = spawn(process.execPath, ["bin/svc-gate.mjs", "serve"], {
    cwd: root,
    env: {
      ...process.env,
      SVC_MODE: "enforce",
      SVC_API_KEY: key,
      SVC_PORT: "0",
      SVC_MANDATE: contract,
      SVC_DATA_DIR: join(folder, "data"),
      SVC_LOG: "warn",
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const url = await listening(child);
  return {
    url,
    stop: async () => {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function listening(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = "";
    child.once("exit", (code) => reject(new Error(`the gate ended with ${code} before it listened`)));
    child.stdout?.on("data", (chunk: Buffer) => {
      said += chunk.toString();
      const url = /listens on (\S+)/.exec(said)?.[1];
      if (url !== undefined) resolve(url);
    });
  });
}

export interface Replay {
  readonly sessions: readonly Session[];
  readonly facts: ReadonlyMap<string, Facts>;
  readonly track: Track;
  /** A name that separates the sessions of two runs on the same gate. */
  readonly run: string;
}

/** Sends each session's calls in order, several sessions at a time. */
export async function replay(gate: ReplayedGate, { sessions, facts, track, run }: Replay): Promise<readonly Judged[]> {
  const judged: Judged[] = [];
  const waiting = sessions.entries();
  const work = async (): Promise<void> => {
    for (const [at, session] of waiting) {
      const sessionId = hash("sha256", `${run}/${track}/${session.session_id}`, "hex");
      const answers: Answer[] = [];
      for (const call of session.calls) {
        answers.push(await ask(gate, requestBody(call, sessionId, factsOf(session, call, facts, track))));
      }
      const [verdicts, reasons] = [answers.map(({ verdict }) => verdict), answers.map(({ reason }) => reason)];
      judged[at] = { session, verdicts, reasons };
    }
  };
  await Promise.all(Array.from({ length: sessionsAtOnce }, work));
  return judged;
}

/** Returns the only part of a recorded call that leaves this process. */
export function requestBody(
  { tool_name, tool_input }: Pick<RecordedCall, "tool_name" | "tool_input">,
  sessionId: string,
  facts: Facts,
): string {
  return JSON.stringify({ tool_name, tool_input, session_id: sessionId, platform_state: facts });
}

interface Answer {
  readonly verdict: Verdict;
  readonly reason: string;
}

/** Asks the gate. A call that it refuses to judge (4xx) is not allowed, because a client fails closed. */
async function ask({ url }: ReplayedGate, body: string): Promise<Answer> {
  const response = await fetch(`${url}/check`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body,
  });
  const answer = (await response.json()) as Answer;
  if (response.ok) return answer;
  if (response.status >= 500) throw new Error(`the gate answered ${response.status}: ${JSON.stringify(answer)}`);
  return { verdict: "BLOCK", reason: `refused with ${response.status}: ${JSON.stringify(answer)}` };
}
