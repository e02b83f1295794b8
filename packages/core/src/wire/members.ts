import { nearest } from "./nearest.ts";

/** The members of an object in a file of settings. */
export type Members = Readonly<Record<string, unknown>>;

/** The mistake in a member, as the rest of a sentence without anything from the file. Functions that read members throw it. */
export class WrongMember extends Error {}

/** @throws {WrongMember} if the object has a member of another name */
export function requireKnown(members: Members, names: readonly string[]): void {
  const stranger = Object.keys(members).find((name) => !names.includes(name));
  if (stranger === undefined) return;
  const near = nearest(stranger, names);
  const hint = near === undefined ? "" : `; did you mean "${near}"?`;
  throw new WrongMember(`the member "${stranger.slice(0, 40)}" is unknown${hint}`);
}
