import type { Need, Vote } from "./approval.ts";
/** What is known now about the key of a vote. */
export interface Voter {
  readonly person: string;
  readonly groups: readonly string[];
  /** The person who made or rotated the key within a day; undefined if it is older. */
  readonly maker: string | undefined;
}
export interface Quorum {
  /** The persons that are needed, and those whose votes count. */
  readonly needs: number;
  readonly has: number;
  readonly isMet: boolean;
}
/**
 * Counts the votes of different voices. A key that somebody made within a day also counts as its maker's voice, so no
 * two votes share a person or a maker.
 *
 * @param voterOf what is known now about a vote's key; undefined if it may not decide any more
 */
export declare function quorumOf(
  needs: readonly Need[],
  votes: readonly Vote[],
  voterOf: (vote: Vote) => Voter | undefined,
): Quorum;
/** True if the voter belongs to one of the groups that an approval needs. */
export declare function mayDecide(needs: readonly Need[], { groups }: Pick<Voter, "groups">): boolean;
