import type { Need, Vote } from "./approval.ts";

/** What is known now about the key of a vote. */
export interface Voter {
  readonly person: string;
  readonly groups: readonly string[];
  /** Who made or changed the key within a day, and who made their keys within a day before that, and so on. */
  readonly makers: readonly string[];
}

/** Whose voice a key had when it asked for a call. */
export interface Asker extends Pick<Voter, "makers"> {
  /** Undefined for the key of a program. */
  readonly person: string | undefined;
}

export interface Quorum {
  /** The people that are needed, and those whose votes count. */
  readonly needs: number;
  readonly has: number;
  readonly isMet: boolean;
  /** The people whose votes count. */
  readonly people: readonly string[];
}

/**
 * Counts the votes of different voices. A key that somebody made or changed within a day also counts as its maker's
 * voices, so no two votes share a person or a maker.
 *
 * @param voterOf what is known now about a vote's key; undefined if it may not decide any more
 */
export function quorumOf(
  needs: readonly Need[],
  votes: readonly Vote[],
  voterOf: (vote: Vote) => Voter | undefined,
): Quorum {
  const voices = new Set<string>();
  const counted: Voter[] = [];
  const countMetNeeds = ({ groups }: Voter): number => needs.filter(({ by }) => isOneOf(groups, by)).length;
  const valid = votes.flatMap((vote) => {
    const voter = voterOf(vote);
    return voter?.person === vote.person ? [voter] : [];
  });
  // Of two votes that are one voice, the one that meets more needs counts.
  for (const voter of valid.toSorted((one, other) => countMetNeeds(other) - countMetNeeds(one))) {
    const own = voicesOf(voter);
    if (own.some((voice) => voices.has(voice))) continue;
    for (const voice of own) voices.add(voice);
    counted.push(voter);
  }
  const missing = needs.map(({ by, of }) => {
    const have = counted.filter(({ groups }) => isOneOf(groups, by)).length;
    return Math.max(0, of - have);
  });
  const largest = Math.max(1, ...needs.map(({ of }) => of));
  const short = Math.min(largest, Math.max(0, ...missing));
  return { needs: largest, has: largest - short, isMet: short === 0, people: counted.map(({ person }) => person) };
}

/** The people as whose voice a vote counts: the key's own, and its makers within a day. */
export function voicesOf({ person, makers }: Pick<Voter, "makers" | "person">): readonly string[] {
  return [person, ...makers];
}

/** True if the voter belongs to one of the groups that an approval needs. */
export function mayDecide(needs: readonly Need[], { groups }: Pick<Voter, "groups">): boolean {
  return needs.some(({ by }) => isOneOf(groups, by));
}

function isOneOf(groups: readonly string[], by: readonly string[] | null): boolean {
  return by === null || groups.some((group) => by.includes(group));
}
