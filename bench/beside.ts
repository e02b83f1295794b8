import { request, type ClientRequest } from "node:http";
import { load, residentMb, type Load, type Server } from "./check.ts";

export interface Round extends Load {
  readonly residentMb: number;
}

interface Beside {
  /** Rounds for each of the four measurements. */
  readonly rounds: number;
  readonly seconds: number;
  /** Opens the streams that checks are measured beside. */
  readonly open: () => Promise<readonly ClientRequest[]>;
}

/**
 * Measures checks before streams are open, meanwhile, and after they are closed. So neither side profits from a gate that
 * is warmer.
 */
export async function besideStreams(
  gate: Server,
  { rounds, seconds, open }: Beside,
): Promise<{ readonly without: readonly Round[]; readonly beside: readonly Round[] }> {
  const measured = async (): Promise<readonly Round[]> => {
    const found: Round[] = [];
    for (let times = 0; times < rounds; times += 1)
      found.push({ ...(await load(gate, 64, seconds)), residentMb: residentMb(gate) });
    return found;
  };
  await load(gate, 64, seconds); // This warms the gate up.
  const before = await measured();
  const streams = await open();
  await load(gate, 64, seconds);
  const beside = [...(await measured()), ...(await measured())];
  for (const each of streams) each.destroy();
  await load(gate, 64, seconds);
  return { without: [...before, ...(await measured())], beside };
}

/** Opens a stream of events, which is read until it is destroyed. */
export function openStream(url: string, headers: Readonly<Record<string, string>>): Promise<ClientRequest> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { agent: false, headers }, (answer) => {
      answer.resume();
      answer.on("error", () => undefined);
      if (answer.statusCode === 200) resolve(outgoing);
      else reject(new Error(`a stream was refused: ${answer.statusCode}`));
    });
    outgoing.on("error", reject);
    outgoing.end();
  });
}
