import { setTimeout as wait } from "node:timers/promises";
import type { Verdict } from "../../packages/core/src/wire/mod.ts";
import { disagreements, expectedCalls, type Call } from "./calls.ts";
import type { Peer } from "./peers.ts";
import type { Wanted } from "./policies.ts";
import type { Server } from "./server.ts";

const startsWithinMs = 60_000;
const logsWithinMs = 10_000;

/** A peer whose server runs and has answered. */
export interface Started {
  readonly peer: Peer;
  readonly server: Server;
  /** The time from the start to the first answer to a check, in milliseconds. */
  readonly startMs: number;
}

/** Starts a peer and waits for its first verdict. */
export async function startPeer(peer: Peer, folder: string, wanted: Wanted): Promise<Started> {
  const from = performance.now();
  const server = await peer.start(folder, wanted);
  while (!(await answers(peer, server))) {
    const said = server.ended();
    if (said !== undefined) throw new Error(`${peer.name} ended at its start: ${said}`);
    if (performance.now() - from > startsWithinMs) {
      await server.stop();
      throw new Error(`${peer.name} gave no verdict within ${startsWithinMs / 1000} seconds of its start`);
    }
    await wait(5);
  }
  return { peer, server, startMs: performance.now() - from };
}

async function answers(peer: Peer, server: Server): Promise<boolean> {
  const first = expectedCalls[0]?.call;
  return first !== undefined && (await verdictOf(peer, server, first).catch(() => undefined)) !== undefined;
}

/**
 * Returns the wrong answers to the table's calls, and the calls missing in the log, one sentence each. An engine that
 * does not decide the policy, or keeps no log, is not measured.
 */
export async function verify({ peer, server }: Started): Promise<readonly string[]> {
  const verdicts: (Verdict | undefined)[] = [];
  for (const { call } of expectedCalls) verdicts.push(await verdictOf(peer, server, call));
  const wanted = expectedCalls.length + 1; // and the call that waited for its start
  let recorded = await server.recorded();
  for (let waited = 0; recorded < wanted && waited < logsWithinMs; waited += 100) {
    await wait(100);
    recorded = await server.recorded();
  }
  const missing = recorded < wanted ? [`its log has ${recorded} of ${wanted} decisions`] : [];
  return [...disagreements(verdicts), ...missing];
}

/** Runs the control: the same calls must notice a limit that is a hundred times too high. */
export async function noticesWrongPolicy(peer: Peer, folder: string): Promise<boolean> {
  const started = await startPeer(peer, folder, { others: 0, wrong: true, counted: false });
  try {
    return (await verify(started)).some((sentence) => sentence.endsWith("not BLOCK"));
  } finally {
    await started.server.stop();
  }
}

async function verdictOf(peer: Peer, server: Server, call: Call): Promise<Verdict | undefined> {
  const { path, headers, body } = peer.request(call);
  const answer = await fetch(new URL(path, server.url), {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  return answer.status === 200 ? peer.verdict(text) : undefined;
}
