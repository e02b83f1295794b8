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
 * Evidence as it is stored: for each part its disclosure, first the six in their places, then sensitive members by their
 * names. Of an erased part `!` and its digest are left, and of a member its name.
 */
export type StoredEvidence = string;

const separator = "~";

/** Where the value of a sensitive member stands in the text of `input` or `platform`: UTF-16 units, its end excluded. */
export interface SensitiveMember {
  readonly name: MemberName;
  readonly from: number;
  readonly to: number;
}

/**
 * Makes the evidence of a row, and the digest over all parts that the leaf commits to. In the text of input and snapshot
 * the place of a sensitive member is taken by a reference to it, as RFC 9901 section 4.2.4.2 writes one.
 *
 * @param values the JSON text of each of the six, in the order of `partNames`
 */
export function makeEvidence(
  values: readonly string[],
  members: readonly SensitiveMember[] = [],
): { readonly stored: StoredEvidence; readonly digest: string } {
  const apart = members.map(({ name, from, to }): Apart => {
    const part = disclose(name, (values[partNames.indexOf(parentOf(name))] ?? "").slice(from, to));
    return { name, from, to, part, reference: referenceTo(part) };
  });
  const six = partNames.map((name, at) => disclose(name, withReferences(values[at] ?? "null", name, apart)));
  const behind = apart.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const digests = [...six.map(partDigest), ...behind.map(({ name, part }) => namedDigest(part, name))];
  return { stored: [...six, ...behind.map(({ part }) => part)].join(separator), digest: combine(digests) };
}

interface Apart extends SensitiveMember {
  readonly part: string;
  readonly reference: string;
}

const referenceTo = (part: string): string => `{"...":"${partDigest(part)}"}`;

function withReferences(text: string, name: FixedPart, members: readonly Apart[]): string {
  if (members.length === 0) return text;
  const within = members.filter((member) => parentOf(member.name) === name).toSorted((a, b) => b.from - a.from);
  return within.reduce((rest, { from, to, reference }) => rest.slice(0, from) + reference + rest.slice(to), text);
}

// A row's evidence is written here once, and hashed where it lies.
const bytes = Buffer.alloc(65_536);

/**
 * The digest that a leaf commits to, recomputed from what is stored; undefined unless the six parts stand in their places,
 * and behind them sensitive members, each once, in the order of their names.
 */
export function evidenceDigest(stored: StoredEvidence): string | undefined {
  const isShort = stored.length <= bytes.length;
  if (isShort && bytes.write(stored) !== stored.length) return undefined;
  const digests: string[] = [];
  let before = "";
  for (let [place, from] = [0, 0]; from <= stored.length; place += 1) {
    const next = stored.indexOf(separator, from);
    const to = next === -1 ? stored.length : next;
    const name = partNames[place];
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

/** Has each part that is there a salt as a gate draws it? */
export function areSalted(stored: StoredEvidence): boolean {
  return stored.split(separator).every((part) => isErased(part) || hasSalt(part));
}

/**
 * Behind the digest of a member stands its name, so that what is left of it when it is erased is under the leaf too, and
 * an end that no name has: joined to others it is read in one way.
 */
function namedDigest(part: string, name: MemberName): string {
  return `${partDigest(part)}${name}${separator}`;
}

/** SHA-256 of the digests in ASCII order, joined without a separator, in hex. */
function combine(digests: string[]): string {
  return hash("sha256", (digests.length > handful ? digests.toSorted() : inserted(digests)).join(""), "hex");
}

// Of an export that somebody made up, a row may have members by the ten thousand.
const handful = 32;

/** The same in order: for a handful of strings, for each row, a third of what the general way to sort them takes. */
function inserted(digests: string[]): readonly string[] {
  for (let index = 1; index < digests.length; index += 1) {
    const digest = digests[index] as string;
    let at = index;
    for (; at > 0 && (digests[at - 1] as string) > digest; at -= 1) digests[at] = digests[at - 1] as string;
    digests[at] = digest;
  }
  return digests;
}

/**
 * The JSON text of a part's value, from stored evidence whose digest was checked; undefined when the part was erased or
 * another part stands in its place. Sensitive members stand in it as they came; of one that was erased, the reference.
 */
export function partText(stored: StoredEvidence, name: FixedPart): string | undefined {
  const text = writtenText(stored, name);
  if (text === undefined || (name !== "input" && name !== "platform")) return text;
  return membersOf(stored).reduce((rest, part) => withMember(rest, part, name), text);
}

/** The same, but undefined where anything of it was erased. */
export function wholeText(stored: StoredEvidence, name: FixedPart): string | undefined {
  return missingParts(stored).some((missing) => covers([name], missing)) ? undefined : partText(stored, name);
}

/** The same as it is written, with references where sensitive members stood. */
export function writtenText(stored: StoredEvidence, name: FixedPart): string | undefined {
  return valueText(partAt(stored, name), name);
}

/** Puts a member back in its place. Nobody who was asked could know its digest, so there is one reference at most. */
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

/** The parts behind the six. */
function membersOf(stored: StoredEvidence): readonly string[] {
  let from = 0;
  for (let six = partNames.length; six > 0; six -= 1) {
    from = stored.indexOf(separator, from) + 1;
    if (from === 0) return [];
  }
  return stored.slice(from).split(separator);
}

/** Is the value of the input a list? Checks only the first character, because most inputs are objects. */
export function isListInput(stored: StoredEvidence): boolean {
  return firstCharacter(partAt(stored, "input"), "input") === "[";
}

/** Is a part's value `[]`? That is told by its length, without decoding: most rows move no counter. */
export function isEmptyList(stored: StoredEvidence, name: "effects"): boolean {
  return partAt(stored, name).length === disclosureLength(name, 2);
}

/** The parts that are missing, with only their digests in their places. A disclosure has no `!`. */
export function missingParts(stored: StoredEvidence): readonly PartName[] {
  if (!stored.includes("!")) return noParts;
  return stored
    .split(separator)
    .flatMap((part, index) => (isErased(part) ? (partNames[index] ?? memberOf(part) ?? []) : []));
}

const noParts: readonly PartName[] = [];

/** The parts that are there. */
export function presentParts(stored: StoredEvidence): readonly PartName[] {
  return stored
    .split(separator)
    .flatMap((part, index) => (isErased(part) ? [] : (partNames[index] ?? memberOf(part) ?? [])));
}

/** Does the erasure of some parts take another with it? With an input or a snapshot go its members. */
export function covers(parts: readonly PartName[], name: PartName): boolean {
  return parts.includes(name) || (isMemberName(name) && parts.includes(parentOf(name)));
}

/** The evidence without the text and the salt of some parts: their digests stand in their places. */
export function withoutParts(stored: StoredEvidence, parts: readonly PartName[]): StoredEvidence {
  return stored
    .split(separator)
    .map((part, index) => {
      const name = isErased(part) ? undefined : (partNames[index] ?? memberOf(part));
      return name !== undefined && covers(parts, name) ? erasedPart(part, name) : part;
    })
    .join(separator);
}
