import type { Voter } from "../../approvals/mod.ts";
import type { KeyRing } from "../admin/keys/keys.ts";

/** Who may decide calls, as the keys say now. */
export interface Deciders {
  /** What is known of the key of a vote; undefined if it may not decide any more. */
  voter(key: string, at: number): Voter | undefined;
  /** The person of a key that asks. */
  personOf(key: string): string;
  /** Reads the latest keys. */
  refresh(): Promise<void>;
}

/** For a gate without keys. */
export const nobody: Deciders = {
  voter: () => undefined,
  personOf: (key) => key,
  refresh: () => Promise.resolve(),
};

/** The keys of one process, which open after its gates. */
export class KeyDeciders {
  #keys: KeyRing | undefined;

  /** Call this when the keys are open. */
  use(keys: KeyRing): void {
    this.#keys = keys;
  }

  /** @param tenant whose keys decide; null is the root */
  of(tenant: string | null): Deciders {
    return {
      voter: (name, at) => this.#keys?.voter({ name, tenant }, at),
      personOf: (name) => this.#keys?.personOf({ name, tenant }) ?? name,
      refresh: async () => this.#keys?.catchUp(),
    };
  }
}
