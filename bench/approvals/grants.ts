import { readdirSync, readFileSync } from "node:fs";
import { atMost, medianInterval, printTable, shown, type Measures } from "../report.ts";
import { overLines } from "./line.ts";
import { commandText, withDesk, type Desk } from "./desk.ts";

const names = ["other", "plain", "fresh", "used"] as const;
type Name = (typeof names)[number];

const checksEach = 256;
const rounds = 20;

/**
 * Measures the processor time that grants by form add to checks: to an allowed check of the same key and tool, beside another
 * key's; and to a check that a grant with many uses covers, beside one with few. Which comes first changes with each round.
 *
 * @param uses of the first grant, before anything is measured
 */
export async function measureGrants(folder: string, uses: number): Promise<Measures> {
  return withDesk(folder, async (desk) => {
    const otherKey = await desk.makeKey("other", { scopes: ["check"] });
    await grant(desk, "restart web-0");
    await run(desk, uses - checksEach * rounds, (at) => `restart web-${at}`);
    await grant(desk, "publish web-0");
    const show = (at: number): string => `show api-${at}`;
    const commandOf: Readonly<Record<Name, (at: number) => string>> = {
      other: show,
      plain: show,
      used: (at) => `restart api-${at}`,
      fresh: (at) => `publish api-${at}`,
    };
    const found = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>;
    for (let round = 0; round < rounds; round += 1) {
      for (let turn = 0; turn < names.length; turn += 1) {
        const name = names[(turn + round) % names.length] as Name;
        found[name].push(
          await micros(desk, () => run(desk, checksEach, commandOf[name], name === "other" ? otherKey : undefined)),
        );
      }
    }
    const more = (one: Name, other: Name): ReturnType<typeof medianInterval> =>
      medianInterval(found[one].map((value, at) => value - (found[other][at] ?? 0)));
    console.log(`\nA grant with ${uses} uses at the end; ${rounds} rounds of ${checksEach} checks`);
    printTable([
      ["a check, processor time", "us"],
      ["allowed by the contract, a key without grants", shown(medianInterval(found.other))],
      ["the same, a key with two grants, more than that", shown(more("plain", "other"))],
      ["covered by a new grant, more than allowed", shown(more("fresh", "plain"))],
      ["covered by the used grant, more than by the new one", shown(more("used", "fresh"))],
    ]);
    return {
      grants_us: atMost(more("plain", "other").median, 20),
      used_grant_us: atMost(more("used", "fresh").median, 20),
    };
  });
}

async function grant(desk: Desk, command: string): Promise<void> {
  const [parked] = await desk.park([commandText(command)]);
  if (parked !== undefined) await desk.grant(parked, { width: "texts", uses: 10_000 });
}

async function run(desk: Desk, count: number, command: (at: number) => string, key?: string): Promise<void> {
  await overLines(desk.lines, count, async (line, at) => {
    await desk.check(line, commandText(command(at)), "ALLOW", key);
  });
}

/** The microseconds of processor time that the gate takes for each check of some work. */
async function micros(desk: Desk, work: () => Promise<void>): Promise<number> {
  const before = processorNs(desk.server.child.pid ?? 0);
  await work();
  return (processorNs(desk.server.child.pid ?? 0) - before) / 1000 / checksEach;
}

function processorNs(pid: number): number {
  const tasks = `/proc/${pid}/task`;
  const times = readdirSync(tasks).map((task) =>
    Number(readFileSync(`${tasks}/${task}/schedstat`, "utf8").split(" ")[0]),
  );
  return times.reduce((sum, ns) => sum + ns, 0);
}
