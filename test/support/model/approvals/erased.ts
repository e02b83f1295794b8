/** Random histories of approvals in which parts of random rows are erased, and what deep verification says of them. */
import { command } from "../../command.ts";
import { decidedAgain } from "../again.ts";
import { Chance } from "../chance.ts";
import { run } from "./drive.ts";
import { stepsOf, type Step } from "./steps.ts";

/** A history in which parts of random rows are erased at any time. */
function erasing(seed: number): readonly Step[] {
  const chance = new Chance(seed);
  return stepsOf(seed).flatMap((step): readonly Step[] => {
    const part = chance.pick(["call", "input", "platform", "reason"] as const);
    return chance.often(0.25) ? [step, { do: "erase", of: 0, at: chance.roll(), part }] : [step];
  });
}

/**
 * Makes a ledger with a random history, and verifies it in every way.
 *
 * @param change changes the finished ledger
 * @returns the first problem, and how many rows could not be decided again
 */
export async function erasedHistory(
  folder: string,
  seed: number,
  change?: () => void,
): Promise<{ readonly problem: string | undefined; readonly skipped: number }> {
  const different = await run(folder, erasing(seed));
  if (different !== undefined) return { problem: different, skipped: 0 };
  change?.();
  const verified = await command(["verify", folder]);
  if (verified.code !== 0) return { problem: `verify: ${verified.stdout}`, skipped: 0 };
  let skipped = 0;
  const problem = await decidedAgain(folder, () => {
    skipped += 1;
    return undefined;
  });
  return { problem, skipped };
}
