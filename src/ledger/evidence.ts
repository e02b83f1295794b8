import { hash, randomFillSync } from "node:crypto";

/** The parts of the evidence, in the order in which they are stored. */
export const partNames = ["call", "input", "platform", "reason", "outcome", "effects"] as const;
export type PartName = (typeof partNames)[number];

/** Evidence as it is stored: for each part its disclosure; the digests of erased parts stand behind a `!`. */
export type StoredEvidence = string;

const separator = "~";

/**
 * Makes the evidence of a row: for each part a disclosure as RFC 9901 section 4.2.1 has it, with a salt of 16 random
 * bytes, and the digest over all of them that the leaf commits to.
 *
 * @param values the JSON text of each part, in the order of `partNames`
 */
export function makeEvidence(values: readonly string[]): { readonly stored: StoredEvidence; readonly digest: string } {
  const disclosures = partNames.map((name, at) => {
    return Buffer.from(`["${salt()}","${name}",${values[at] ?? "null"}]`, "utf8").toString("base64url");
  });
  return { stored: disclosures.join(separator), digest: combine(disclosures.map(partDigest)) };
}

/** The digest that a leaf commits to, recomputed from what is stored; undefined unless six parts stand in their places. */
export function evidenceDigest(stored: StoredEvidence): string | undefined {
  const digests: string[] = [];
  let from = 0;
  for (const name of partNames) {
    const end = stored.indexOf(separator, from);
    const part = stored.slice(from, end === -1 ? stored.length : end);
    if (!isPart(part, name) && !isErased(part)) return undefined;
    digests.push(partDigest(part));
    from += part.length + 1;
  }
  return from === stored.length + 1 ? combine(digests) : undefined;
}

/** base64url(SHA-256(ASCII of the disclosure)); an erased part keeps its digest. */
export function partDigest(disclosure: string): string {
  return disclosure.startsWith("!") ? disclosure.slice(1) : hash("sha256", disclosure, "base64url");
}

/** SHA-256 of the digests in ASCII order, joined without a separator, in hex. */
function combine(digests: readonly string[]): string {
  return hash("sha256", digests.toSorted().join(""), "hex");
}

/**
 * The JSON text of a part's value, from stored evidence whose digest was checked; undefined when the part was erased or
 * another part stands in its place.
 */
export function partText(stored: StoredEvidence, name: PartName): string | undefined {
  const at = partNames.indexOf(name);
  let from = 0;
  for (let before = 0; before < at; before += 1) from = stored.indexOf(separator, from) + 1;
  const to = at === partNames.length - 1 ? stored.length : stored.indexOf(separator, from);
  const disclosure = stored.slice(from, to);
  if (!isPart(disclosure, name)) return undefined;
  const bytes = Buffer.from(disclosure, "base64url");
  // A decoder that forgives would read a text out of what is none.
  if (bytes.at(-1) !== closing || bytes.toString("base64url") !== disclosure) return undefined;
  return bytes.toString("utf8", 27 + name.length + 2, bytes.length - 1);
}

/** The length of the disclosure of a part whose value is `[]`: most rows move no counter. */
export function isEmptyList(stored: StoredEvidence, name: "effects"): boolean {
  return stored.length - stored.lastIndexOf(separator) - 1 === Math.ceil(((27 + name.length + 2 + 3) * 4) / 3);
}

/** The parts that are missing, with only their digests in their places. A disclosure has no `!`. */
export function missingParts(stored: StoredEvidence): readonly PartName[] {
  if (!stored.includes("!")) return [];
  const parts = stored.split(separator);
  return partNames.filter((_, place) => parts[place]?.startsWith("!"));
}

/** The evidence without the text and the salt of some parts: their digests stand in their places. */
export function withoutParts(stored: StoredEvidence, parts: readonly PartName[]): StoredEvidence {
  return stored
    .split(separator)
    .map((part, place) => (parts.includes(partNames[place] as PartName) ? `!${partDigest(part)}` : part))
    .join(separator);
}

function isErased(part: string): boolean {
  return part.length === 44 && /^![A-Za-z0-9_-]{43}$/.test(part);
}

const closing = "]".charCodeAt(0);

// `["`, 22 characters of salt and `","` are 27 bytes, so the name begins at a whole group of base64: it can be
// compared without decoding. Behind whole groups a digit of base64 may belong to the next byte too, which is any.
const nameAt = 36;
const namesThere: Readonly<Record<PartName, readonly [digits: string, last: string]>> = {
  call: ["Y2FsbCI", "s"],
  input: ["aW5wdXQiL", "ABCDEFGHIJKLMNOP"],
  platform: ["cGxhdGZvcm0iL", "ABCDEFGHIJKLMNOP"],
  reason: ["cmVhc29uIi", "wxyz"],
  outcome: ["b3V0Y29tZSI", "s"],
  effects: ["ZWZmZWN0cyI", "s"],
};

/** Is it base64url of `["SALT","NAME",` and more, up to the comma? */
function isPart(disclosure: string, name: PartName): boolean {
  const [digits, last] = namesThere[name];
  const end = nameAt + digits.length;
  return (
    disclosure.startsWith(digits, nameAt) &&
    end < disclosure.length &&
    last.includes(disclosure.charAt(end)) &&
    hasSalt(disclosure)
  );
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/** What a UTF-16 code unit is worth as a digit of base64url; -1 where it is none. */
const digitOf = new Int8Array(65_536).fill(-1);
/** Bytes that are characters of base64url themselves: what a salt is written with. */
const isOfSalt = new Uint8Array(256);
for (const [place, letter] of Buffer.from(alphabet).entries()) {
  digitOf[letter] = place;
  isOfSalt[letter] = 1;
}

const digitAt = (text: string, at: number): number => digitOf[text.charCodeAt(at)] ?? -1;

/** Three bytes as one number, from four digits; negative where one is no digit. */
function bytesAt(text: string, at: number): number {
  const high = (digitAt(text, at) << 18) | (digitAt(text, at + 1) << 12);
  return high | (digitAt(text, at + 2) << 6) | digitAt(text, at + 3);
}

/** Does it begin as `["`, 22 characters of base64url and `","` do in base64url? Each row is asked six times. */
function hasSalt(disclosure: string): boolean {
  const opening = bytesAt(disclosure, 0);
  if (opening >> 8 !== 0x5b22 || isOfSalt[opening & 255] !== 1) return false;
  for (let at = 4; at < nameAt - 4; at += 4) {
    const bytes = bytesAt(disclosure, at);
    if (bytes < 0 || isOfSalt[bytes >> 16] !== 1) return false;
    if (isOfSalt[(bytes >> 8) & 255] !== 1 || isOfSalt[bytes & 255] !== 1) return false;
  }
  return disclosure.startsWith("Iiwi", nameAt - 4);
}

const saltBytes = 16;
const pool = Buffer.alloc(saltBytes * 384);
let used = pool.length;

/** 22 base64url characters: 16 random bytes, drawn from the system's source in larger pieces. */
function salt(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const drawn = pool.toString("base64url", used, used + saltBytes);
  used += saltBytes;
  return drawn;
}
