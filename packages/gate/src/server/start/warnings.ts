import type { Logger } from "pino";

/** Warnings of a start. The banner repeats them, because a line of JSON is easily missed. */
export interface StartWarnings {
  readonly sentences: readonly string[];
  /** Stops collecting; later warnings are only logged. */
  end(): void;
}

/** Collects all warnings, at any log level. */
export function collectWarnings(log: Logger): StartWarnings {
  const sentences: string[] = [];
  const warn = log.warn.bind(log);
  const addWarning = (...told: readonly unknown[]): void => {
    const [about, sentence] = typeof told[0] === "string" ? [{}, told[0]] : [told[0], told[1]];
    const { tenant } = about as { readonly tenant?: string | null };
    sentences.push(typeof tenant === "string" ? `tenant ${tenant}: ${String(sentence)}` : String(sentence));
    Reflect.apply(warn, log, told);
  };
  log.warn = addWarning;
  return {
    sentences,
    end: () => {
      log.warn = warn;
    },
  };
}
