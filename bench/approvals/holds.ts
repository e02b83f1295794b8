import { atMost, medianInterval, printTable, round, shown, type Measures } from "../report.ts";
import { agent, callText, largeCalls, withDesk, type Desk } from "./desk.ts";

const rounds = 400;
const warmUps = 50;

/** A check that reads the counter, by one key and of one wallet. */
interface Reader {
  readonly wallet: string;
  readonly key: string;
}

/**
 * Measures a check that reads a counter, of which many amounts were withdrawn: a person denied the calls. Beside it:
 * a fifth as many amounts that are still reserved, and the key whose calls were denied. Only the withdrawn amounts and that
 * key have bars.
 */
export async function measureReservations(folder: string, count: number): Promise<Measures> {
  return withDesk(folder, async (desk) => {
    const denied = await desk.makeKey("denied", { scopes: ["check"] });
    const waiting = await desk.makeKey("waiting", { scopes: ["check"] });
    const fresh: Reader = { wallet: "fresh", key: agent };
    const before = await readsMs(desk, [fresh]);
    const from = performance.now();
    await desk.decide(await desk.park(largeCalls("withdrawn", count), denied), "deny");
    const deniedMs = performance.now() - from;
    const after = await readsMs(desk, [fresh, { wallet: "withdrawn", key: agent }, { wallet: "other", key: denied }]);
    const reserved = Math.ceil(count / 5);
    await desk.park(largeCalls("held", reserved), waiting);
    const open = await readsMs(desk, [fresh, { wallet: "held", key: agent }]);
    const more = (all: readonly (readonly number[])[], index: number): ReturnType<typeof medianInterval> =>
      medianInterval((all[index] ?? []).map((ms, at) => ms - (all[0]?.[at] ?? 0)));
    const withdrawn = more(after, 1);
    const ofDenied = more(after, 2);
    const ofReserved = more(open, 1);
    const p50 = (all: readonly (readonly number[])[], index: number): number => medianInterval(all[index] ?? []).median;
    const took = `parked and denied in ${round(deniedMs / 1000)} s`;
    console.log(`\n${count} denied calls of one counter key (${took}), then ${reserved} that wait; ${rounds} rounds`);
    printTable([
      ["a check that reads the counter", "p50 ms", "more than an unused key of the counter, ms"],
      ["before any approval", round(p50(before, 0)), ""],
      ["unused key of the counter, after the denials", round(p50(after, 0)), ""],
      ["the counter's key with withdrawn amounts", round(p50(after, 1)), shown(withdrawn)],
      [
        "an unused key of the counter, asked by the agent whose calls were denied",
        round(p50(after, 2)),
        shown(ofDenied),
      ],
      ["unused key of the counter, while the others wait", round(p50(open, 0)), ""],
      ["the counter's key with held amounts", round(p50(open, 1)), shown(ofReserved)],
    ]);
    return {
      withdrawn_read_ms: atMost(withdrawn.median, 1),
      denied_agent_ms: atMost(ofDenied.median, 1),
    };
  });
}

/** Returns the times of each reader's checks; in each round each asks once. */
async function readsMs(desk: Desk, readers: readonly Reader[]): Promise<readonly (readonly number[])[]> {
  const times = readers.map((): number[] => []);
  for (let index = -warmUps; index < rounds; index += 1) {
    for (let turn = 0; turn < readers.length; turn += 1) {
      const position = (turn + index + warmUps) % readers.length; // Each reader is as often the first one as the others.
      const { wallet, key } = readers[position] as Reader;
      const text = callText({ wallet, amount: 1, session: `read-${index}` });
      const { ms } = await desk.check(desk.line, text, "ALLOW", key);
      if (index >= 0) times[position]?.push(ms);
    }
  }
  return times;
}
