import { isAmong } from "../../wire/mod.ts";

const minuteMs = 60_000;

/** What an approval needs, because of one rule. */
export interface ApprovalTerms {
  /** The groups whose members may decide; null means every person with the scope `approve`. */
  readonly by: readonly string[] | null;
  /** The number of people. */
  readonly of: number;
  /** Milliseconds after the asking. */
  readonly decideWithinMs: number;
  /** Milliseconds after the last vote. */
  readonly useWithinMs: number;
  /** Whether one request may decide it together with others. */
  readonly batch: boolean;
  /** Whether a call of any session of the key may use the approval. */
  readonly anySession: boolean;
  /** Facts and counters that must be as the person saw them, such as `platform.price`. */
  readonly pins: readonly string[];
  /** By how much a number that the rule reads may move; a decimal. */
  readonly drift: string;
  /** Facts that may differ from what the person saw, although the rule reads them. */
  readonly free: readonly string[];
  /** What a grant may be at most; absent if no grant lifts the rule. */
  readonly grants?: GrantTerms;
  /** True if a person may approve a call that a key of the same person asked; absent otherwise. */
  readonly self?: true;
}

/** What a grant for calls under one rule may be at most. */
export interface GrantTerms {
  /** Milliseconds. */
  readonly atMostMs: number;
  readonly uses: number;
  /** The members of the input that all calls of the grant share, such as `input.payee`. */
  readonly pin: readonly string[];
  /**
   * Present if later calls may have another command line of the same form. Then all members of the input and all facts are the
   * same, but those that are not bound and these.
   */
  readonly form?: { readonly free: readonly string[] };
}

export const defaultTerms: ApprovalTerms = {
  by: null,
  of: 1,
  decideWithinMs: 60 * minuteMs,
  useWithinMs: 10 * minuteMs,
  batch: true,
  anySession: false,
  pins: [],
  drift: "0",
  free: [],
};

/** The strictest of several approvals' terms: each group's quorum is needed, and the shortest times apply. */
export interface CombinedTerms extends Omit<ApprovalTerms, "by" | "of" | "drift" | "free" | "grants" | "self"> {
  /** Each must be met. One person counts for several. */
  readonly needs: readonly Pick<ApprovalTerms, "by" | "of">[];
  /** What a grant may be at most; undefined if one of the causes lets no grant lift it. */
  readonly grants: GrantTerms | undefined;
  /** May a person approve a call of their own, as far as the rules say? */
  readonly self: boolean;
}

export function combineTerms(terms: readonly ApprovalTerms[]): CombinedTerms {
  const all = terms.length === 0 ? [defaultTerms] : terms;
  const needs = new Map<string, Pick<ApprovalTerms, "by" | "of">>();
  for (const { by, of } of all) {
    const name = by === null ? "" : by.join(" ");
    if (of > (needs.get(name)?.of ?? 0)) needs.set(name, { by, of });
  }
  return {
    needs: [...needs].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, need]) => need),
    decideWithinMs: Math.min(...all.map(({ decideWithinMs }) => decideWithinMs)),
    useWithinMs: Math.min(...all.map(({ useWithinMs }) => useWithinMs)),
    batch: all.every(({ batch }) => batch),
    anySession: all.every(({ anySession }) => anySession),
    pins: [...new Set(all.flatMap(({ pins }) => pins))].toSorted(),
    grants: strictestGrants(all.map(({ grants }) => grants)),
    self: all.every(({ self }) => self === true),
  };
}

function strictestGrants(all: readonly (GrantTerms | undefined)[]): GrantTerms | undefined {
  const grants = all.filter((each) => each !== undefined);
  if (grants.length === 0 || grants.length < all.length) return undefined;
  const forms = grants.map(({ form }) => form).filter((form) => form !== undefined);
  // What one rule binds, another would leave free.
  if (forms.length > 0 && forms.length < grants.length) return undefined;
  return {
    atMostMs: Math.min(...grants.map(({ atMostMs }) => atMostMs)),
    uses: Math.min(...grants.map(({ uses }) => uses)),
    pin: [...new Set(grants.flatMap(({ pin }) => pin))].toSorted(),
    ...(forms.length > 0 && { form: { free: commonMembers(forms.map(({ free }) => free)) } }),
  };
}

/** Those members that are in each list, or below one of it. */
function commonMembers([first = [], ...others]: readonly (readonly string[])[]): readonly string[] {
  return first.filter((member) => others.every((list) => isAmong(member, list)));
}

/** The counters that terms pin, by full name. */
export function pinnedCounters(contract: string, { pins }: ApprovalTerms): readonly string[] {
  return pins.flatMap((pin) => (pin.startsWith("counters.") ? [`${contract}.${pin.slice("counters.".length)}`] : []));
}
