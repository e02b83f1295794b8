import { EvaluationError } from "../run/rational.ts";

/** A package that is brought in when a contract calls a function that stands on it, and not before. */
export interface Library<Package> {
  readonly load: () => Promise<void>;
  /** @throws {EvaluationError} before it was brought in. */
  readonly use: () => Package;
}

export function library<Package>(name: string, bring: () => Promise<Package>): Library<Package> {
  let brought: Package | undefined;
  return {
    load: async () => {
      brought ??= await bring();
    },
    use: () => {
      if (brought === undefined) throw new EvaluationError(`${name} is not loaded`);
      return brought;
    },
  };
}
