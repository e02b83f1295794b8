import type { Logger } from "pino";

/** Warnings of a start. The banner repeats them, because a line of JSON is easily missed. */
export interface StartWarnings {
  readonly sentences: readonly string[];
  /** From now on warnings are only logged. */
  end(): void;
}

/** Collects what is logged as a warning, whatever level the log shows. */
export function collectWarnings(log: Logger): StartWarnings {
  const sentences: string[] = [];
  const warn = log.warn.bind(log);
  const heard = (...told: readonly unknown[]): void => {
    const [about, sentence] = typeof told[0] === "string" ? [{}, told[0]] : [told[0], told[1]];
    const { tenant } = about as { readonly tenant?: string | null };
    sentences.push(typeof tenant === "string" ? `tenant ${tenant}: ${String(sentence)}` : String(sentence));
    Reflect.apply(warn, log, told);
  };
  log.warn = heard;
  return {
    sentences,
    end: () => {
      log.warn = warn;
    },
  };
}
