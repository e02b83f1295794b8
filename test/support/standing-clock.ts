import type { TestContext } from "node:test";

/** Installs a monotonic clock that only the test moves, by whole milliseconds. */
export function standingClock(t: TestContext): { readonly pass: (ms: number) => void } {
  let at = Math.ceil(performance.now());
  t.mock.method(performance, "now", () => at);
  return { pass: (ms) => void (at += ms) };
}
