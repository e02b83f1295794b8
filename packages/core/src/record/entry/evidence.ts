import { hash } from "node:crypto";
import { isMemberName, type MemberName } from "../../wire/mod.ts";
import {
  disclose,
  disclosureLength,
  erasedPart,
  firstCharacter,
  hasSalt,
  isErased,
  isErasedFixed,
  isNamed,
  memberOf,
  parentOf,
  partDigest,
  partNames,
  valueText,
  type FixedPart,
  type PartName,
} from "./disclosure.ts";

/**
 * Stored evidence: the disclosures of the six fixed parts in order, then of sensitive members by name. An erased part
 * is `!` and its digest, and for a member also its name.
 */
export type StoredEvidence = string;

const separator = "~";

/**
 * The position of a sensitive member's value in the text of `input` or `platform`, in UTF-16 units; the end is
 * excluded.
 */
export interface SensitiveMember {
  readonly name: MemberName;
  readonly from: number;
  readonly to: number;
}

/**
 * Makes the evidence of a row, and the digest over all parts that the leaf commits to. In input and facts, a sensitive
 * member is replaced by a reference (RFC 9901 section 4.2.4.2).
 *
 * @param values the JSON text of each of the six fixed parts, in the order of `partNames`
 */
export function makeEvidence(
  values: readonly string[],
  members: readonly SensitiveMember[] = [],
): { readonly stored: StoredEvidence; readonly digest: string } {
  if (members.length === 0) return sixParts(values);
  const apart = members.map(({ name, from, to }): Apart => {
    const part = disclose(name, (values[partNames.indexOf(parentOf(name))] ?? "").slice(from, to));
    return { name, from, to, part, reference: referenceTo(part) };
  });
  const six = partNames.map((name, at) => disclose(name, withReferences(values[at] ?? "null", name, apart)));
  const behind = apart.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const digests = [...six.map(partDigest), ...behind.map(({ name, part }) => namedDigest(part, name))];
  return { stored: [...six, ...behind.map(({ part }) => part)].join(separator), digest: combine(digests) };
}

/** Does the same for a row without sensitive members, which most rows are, without intermediate lists. */
function sixParts(values: readonly string[]): { readonly stored: StoredEvidence; readonly digest: string } {
  const digests: string[] = [];
  let stored = "";
  for (let at = 0; at < partNames.length; at += 1) {
    const part = disclose(partNames[at] as FixedPart, values[at] ?? "null");
    stored = at === 0 ? part : stored + separator + part;
    digests.push(hash("sha256", part, "base64url"));
  }
  return { stored, digest: combine(digests) };
}

interface Apart extends SensitiveMember {
  readonly part: string;
  readonly reference: string;
}

const referenceTo = (part: string): string => `{"...":"${partDigest(part)}"}`;

function withReferences(text: string, name: FixedPart, members: readonly Apart[]): string {
  const within = members.filter((member) => parentOf(member.name) === name).toSorted((a, b) => b.from - a.from);
  return within.reduce((rest, { from, to, reference }) => rest.slice(0, from) + reference + rest.slice(to), text);
}

// The evidence of a row is copied here once and hashed here.
const bytes = Buffer.alloc(65_536);

/**
 * Recomputes the digest that a leaf commits to; undefined unless the evidence has the six fixed parts in order, and
 * then sensitive members, each once and sorted by name.
 */
export function evidenceDigest(stored: StoredEvidence): string | undefined {
  const isShort = stored.length <= bytes.length;
  if (isShort && bytes.write(stored) !== stored.length) return undefined;
  const digests: string[] = [];
  let before = "";
  for (let [index, from] = [0, 0]; from <= stored.length; index += 1) {
    const next = stored.indexOf(separator, from);
    const to = next === -1 ? stored.length : next;
    const name = partNames[index];
    if (stored.startsWith("!", from) || name === undefined) {
      const part = stored.slice(from, to);
      const member = name === undefined ? memberOf(part) : undefined;
      if (name === undefined ? member === undefined || member <= before : !isErasedFixed(part)) return undefined;
      before = member ?? before;
      digests.push(member === undefined ? partDigest(part) : namedDigest(part, member));
    } else {
      if (!isNamed(stored, { name, from, to })) return undefined;
      digests.push(hash("sha256", isShort ? bytes.subarray(from, to) : stored.slice(from, to), "base64url"));
    }
    from = to + 1;
  }
  return digests.length < partNames.length ? undefined : combine(digests);
}

/** Returns true if each part that is not erased has a salt of the right form. */
export function areSalted(stored: StoredEvidence): boolean {
  return stored.split(separator).every((part) => isErased(part) || hasSalt(part));
}

/**
 * Returns a member's digest, name and a separator. So the leaf also covers the name of an erased member. No name has a
 * separator, so joined digests are unambiguous.
 */
function namedDigest(part: string, name: MemberName): string {
  return `${partDigest(part)}${name}${separator}`;
}

/** Returns the SHA-256 of the digests in ASCII order, joined without a separator, in hex. */
function combine(digests: string[]): string {
  return hash("sha256", (digests.length > handful ? digests.toSorted() : sortByInsertion(digests)).join(""), "hex");
}

// A row of a forged export may have tens of thousands of members.
const handful = 32;

/** Sorts a few strings, in a third of the time of the general sort. This runs for each row. */
function sortByInsertion(digests: string[]): readonly string[] {
  for (let index = 1; index < digests.length; index += 1) {
    const digest = digests[index] as string;
    let at = index;
    for (; at > 0 && (digests[at - 1] as string) > digest; at -= 1) digests[at] = digests[at - 1] as string;
    digests[at] = digest;
  }
  return digests;
}

/**
 * Returns the JSON text of a part's value from stored evidence with a verified digest; undefined if the part was erased
 * or another part is in its position. Sensitive members are included as they were received; an erased member is a
 * reference.
 */
export function partText(stored: StoredEvidence, name: FixedPart): string | undefined {
  const text = writtenText(stored, name);
  if (text === undefined || (name !== "input" && name !== "platform")) return text;
  return membersOf(stored).reduce((rest, part) => withMember(rest, part, name), text);
}

/** Returns the same, but undefined if any part of it was erased. */
export function wholeText(stored: StoredEvidence, name: FixedPart): string | undefined {
  return missingParts(stored).some((missing) => covers([name], missing)) ? undefined : partText(stored, name);
}

/** Returns the stored text, with references instead of sensitive members. */
export function writtenText(stored: StoredEvidence, name: FixedPart): string | undefined {
  return valueText(partAt(stored, name), name);
}

/** Puts a member back into its position. No caller could know its digest, so there is at most one reference. */
function withMember(text: string, part: string, name: "input" | "platform"): string {
  const member = memberOf(part);
  if (member === undefined || isErased(part) || parentOf(member) !== name) return text;
  const reference = referenceTo(part);
  const at = text.indexOf(reference);
  return at === -1
    ? text
    : text.slice(0, at) + (valueText(part, member) ?? reference) + text.slice(at + reference.length);
}

function partAt(stored: StoredEvidence, name: FixedPart): string {
  let from = 0;
  for (let before = partNames.indexOf(name); before > 0; before -= 1) from = stored.indexOf(separator, from) + 1;
  const next = stored.indexOf(separator, from);
  return stored.slice(from, next === -1 ? stored.length : next);
}

/** Returns the parts after the six fixed parts. */
function membersOf(stored: StoredEvidence): readonly string[] {
  let from = 0;
  for (let six = partNames.length; six > 0; six -= 1) {
    from = stored.indexOf(separator, from) + 1;
    if (from === 0) return [];
  }
  return stored.slice(from).split(separator);
}

/**
 * Returns true if the value of the input is a list. Checks only the first character, because most inputs are objects.
 */
export function isListInput(stored: StoredEvidence): boolean {
  return firstCharacter(partAt(stored, "input"), "input") === "[";
}

/** Returns true if a part's value is `[]`. The length shows it without decoding; most rows change no counter. */
export function isEmptyList(stored: StoredEvidence, name: "effects"): boolean {
  return partAt(stored, name).length === disclosureLength(name, 2);
}

/** Returns the erased parts. A disclosure has no `!`. */
export function missingParts(stored: StoredEvidence): readonly PartName[] {
  return stored.includes("!") ? listPartNames(stored, isErased) : noParts;
}

const noParts: readonly PartName[] = [];

export function presentParts(stored: StoredEvidence): readonly PartName[] {
  return listPartNames(stored, (part) => !isErased(part));
}

function listPartNames(stored: StoredEvidence, isWanted: (part: string) => boolean): readonly PartName[] {
  const parts = stored.split(separator);
  return parts.flatMap((part, index) => (isWanted(part) ? (partNames[index] ?? memberOf(part) ?? []) : []));
}

/** Returns true if an erasure of some parts includes another part. Input and facts include their members. */
export function covers(parts: readonly PartName[], name: PartName): boolean {
  return parts.includes(name) || (isMemberName(name) && parts.includes(parentOf(name)));
}

/** Returns the evidence without the text and the salt of some parts. Their digests stay in their positions. */
export function withoutParts(stored: StoredEvidence, parts: readonly PartName[]): StoredEvidence {
  return stored
    .split(separator)
    .map((part, index) => {
      const name = isErased(part) ? undefined : (partNames[index] ?? memberOf(part));
      return name !== undefined && covers(parts, name) ? erasedPart(part, name) : part;
    })
    .join(separator);
}
