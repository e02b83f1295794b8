import { mayDecide, voicesOf, type Approval, type Voter } from "../../approvals/mod.ts";
import { bad, good, quote, refuse, type Refusal, type Result } from "../../wire/mod.ts";
import type { KeyRing } from "../keys/keys.ts";
import type { ActivePolicy } from "../policy/active-policy.ts";

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

/** The person of a key that may decide a call; refuses another key, and a person's own call. */
export function voterFor(
  { asking, key: asked }: { readonly asking: Pick<Approval["asking"], "needs">; readonly key: string },
  key: string,
  at: number,
  { deciders, policy }: { readonly deciders: Deciders; readonly policy: () => ActivePolicy },
): Result<Voter & { readonly isOwn: boolean }, Refusal> {
  const voter = deciders.voter(key, at);
  if (voter === undefined || !mayDecide(asking.needs, voter)) return bad(notAnApprover(key, asking));
  const isOwn = voicesOf(voter).includes(deciders.personOf(asked));
  if (isOwn && !policy().policySet.approvals.self)
    return bad(refuse("self-approval", `${voter.person} asked for this call, so another person must decide it`));
  return good({ ...voter, isOwn });
}

export function notAnApprover(key: string, { needs }: Pick<Approval["asking"], "needs">): Refusal {
  const groups = [...new Set(needs.flatMap(({ by }) => by ?? []))].map(quote).join(", ");
  const who = groups === "" ? "a key with a person and the scope `approve`" : `a person of ${groups}`;
  return refuse("not-an-approver", `the key ${quote(key)} may not decide this call: it needs ${who}`);
}
