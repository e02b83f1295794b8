import assert from "node:assert/strict";
import { setTimeout as wait } from "node:timers/promises";

/** How long a test waits for something that works. It ends as soon as the thing is there, so only a failure takes so long. */
export const patienceMs = 20_000;

/** How long a control waits for something that a planted defect prevents. */
// short wait: it must not come, and a longer wait would notice nothing more
export const controlPatienceMs = 3000;

/** Looks until a value is there, and returns it. */
export async function eventually<Value>(
  what: string,
  look: () => Value | undefined | false | Promise<Value | undefined | false>,
  forMs: number = patienceMs,
): Promise<Value> {
  for (const end = performance.now() + forMs; ; await wait(20)) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    assert.ok(performance.now() < end, `${what}: not within ${forMs / 1000} s`);
  }
}
