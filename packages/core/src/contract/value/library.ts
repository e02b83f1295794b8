import { EvaluationError } from "./rational.ts";

/** A package that is loaded only if a contract calls a function that needs it. */
export interface Library<Package> {
  readonly load: () => Promise<void>;
  /** @throws {EvaluationError} if it is not loaded yet */
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
