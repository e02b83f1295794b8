import {
  mayDecide,
  voicesOf,
  type Approval,
  type Asker,
  type Grant,
  type Voter,
} from "../../../../core/src/approvals/mod.ts";
import { bad, good, quote, refuse, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import type { KeyRing } from "../keys/keys.ts";
import type { ActivePolicy } from "../policy/active-policy.ts";

/** Who may decide calls, as the keys say now. */
export interface Deciders {
  /** What is known of the key of a vote; undefined if it may not decide any more. */
  voter(key: string, at: number): Voter | undefined;
  /** As whose voice a key asked at a time: these people may not let its call through. */
  asker(key: string, at: number): Asker;
  /** Reads the latest keys. */
  refresh(): Promise<void>;
}

/** For a gate without keys. */
export const nobody: Deciders = {
  voter: () => undefined,
  asker: () => ({ person: undefined, makers: [] }),
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
      voter: (name, at) => this.#keys?.known.voter({ name, tenant }, at),
      asker: (name, at) => this.#keys?.known.asker({ name, tenant }, at) ?? { person: undefined, makers: [] },
      refresh: async () => this.#keys?.catchUp(),
    };
  }
}

/** A call, as far as it says who may decide it. */
export interface DecidedByPeople extends Pick<Approval, "at" | "key"> {
  readonly asking: Pick<Approval["asking"], "needs" | "self">;
  /** When the key asks again, for a call of a grant. */
  readonly again?: number;
}

/** A grant, as far as it says who may decide it for a call at a time. */
export function decidedGrant(
  grant: Grant,
  asking: DecidedByPeople["asking"],
  again: number,
): DecidedByPeople & Pick<Grant, "votes"> {
  return { key: grant.key, at: grant.asked ?? grant.at, again, asking, votes: grant.votes };
}

interface SharedVoice {
  readonly voice: string;
  /** Is it the voice of the person whose key asked? */
  readonly isAsker: boolean;
}

/** Does a yes count, as far as the voter's part in the call goes? Any does if the mandate says so. */
export function mayApprove(
  shared: SharedVoice | undefined,
  { asking }: DecidedByPeople,
  { policySet }: ActivePolicy,
): boolean {
  return shared === undefined || policySet.approvals.self || (asking.self === true && shared.isAsker);
}

/** The voice that a voter shares with the key that asked. */
export function sharedVoice(
  voter: Voter,
  { again, at, key }: DecidedByPeople,
  deciders: Deciders,
): SharedVoice | undefined {
  const askers = (again === undefined ? [at] : [at, again]).map((time) => deciders.asker(key, time));
  const voice = voicesOf(voter).find((each) => askers.some(({ makers, person }) => [person, ...makers].includes(each)));
  return voice === undefined ? undefined : { voice, isAsker: askers.some(({ person }) => person === voice) };
}

/**
 * The person of a key that may decide a call; refuses another key, and a person's yes to a call of their own.
 *
 * @param vote a no is always safe
 */
export function voterFor(
  approval: DecidedByPeople,
  { key, at, isYes }: { readonly key: string; readonly at: number; readonly isYes: boolean },
  { deciders, policy }: { readonly deciders: Deciders; readonly policy: () => ActivePolicy },
): Result<Voter & { readonly isOwn: boolean }, Refusal> {
  const voter = deciders.voter(key, at);
  if (voter === undefined) return bad(noVoter(key));
  if (!mayDecide(approval.asking.needs, voter)) return bad(notAnApprover(key, approval.asking));
  const shared = sharedVoice(voter, approval, deciders);
  if (shared !== undefined && isYes && !mayApprove(shared, approval, policy()))
    return bad(ownCall(voter.person, shared));
  return good({ ...voter, isOwn: shared !== undefined });
}

function ownCall(person: string, { isAsker, voice }: SharedVoice): Refusal {
  const votes = person === voice ? person : `${voice}, as whose voice the new key of ${person} counts,`;
  const asks = isAsker ? "asked for this call" : "made or changed the key that asked for it within a day before";
  return refuse("self-approval", `${votes} ${asks}, so another person must approve it`);
}

function noVoter(key: string): Refusal {
  const who = "a key with a person and the scope `approve`, without `check` and `admin`";
  return refuse("not-an-approver", `the key ${quote(key)} may not decide this call: it needs ${who}`);
}

export function notAnApprover(key: string, { needs }: Pick<Approval["asking"], "needs">): Refusal {
  const groups = [...new Set(needs.flatMap(({ by }) => by ?? []))].map(quote).join(", ");
  return refuse("not-an-approver", `the key ${quote(key)} may not decide this call: it needs a person of ${groups}`);
}
