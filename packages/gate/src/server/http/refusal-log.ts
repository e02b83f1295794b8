import type { Logger } from "pino";
import type { RefusalCode } from "../../../../core/src/wire/mod.ts";

/** The number of refusals of one code that are logged one by one in a second. */
const linesMax = 10;

/** One second of one code: its start, the number of logged lines, and the number of further refusals. */
interface Second {
  readonly startedAt: number;
  lines: number;
  more: number;
}

/** Logs refusals. Rare refusals are logged one by one; in a flood the rest is counted. */
export class RefusalLog {
  readonly #log: Logger;
  readonly #seconds = new Map<RefusalCode, Second>();

  constructor(log: Logger) {
    this.#log = log;
  }

  note(code: RefusalCode, line: () => object): void {
    const second = this.#second(code);
    if (second.lines < linesMax) {
      second.lines += 1;
      this.#log.info({ ...line(), code }, "refused");
      return;
    }
    second.more += 1;
    if (second.more === 1) setTimeout(() => this.#sum(code, second), 1000).unref();
  }

  #second(code: RefusalCode): Second {
    const now = performance.now();
    const known = this.#seconds.get(code);
    if (known !== undefined && now - known.startedAt < 1000) return known;
    const second = { startedAt: now, lines: 0, more: 0 };
    this.#seconds.set(code, second);
    return second;
  }

  #sum(code: RefusalCode, { more }: Second): void {
    this.#log.info({ code, more }, `refused ${more} more times in a second`);
  }
}
