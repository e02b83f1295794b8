import { hash, randomFillSync } from "node:crypto";
import { isMemberName, memberPattern, type MemberName } from "../../wire/mod.ts";

/** The parts that every row's evidence has, in the order in which they are stored. */
export const partNames = ["call", "input", "platform", "reason", "outcome", "effects"] as const;
export type FixedPart = (typeof partNames)[number];

/**
 * A part of the evidence. The six fixed parts come first, then the sensitive members of the call by name, each as a
 * part.
 */
export type PartName = FixedPart | MemberName;

/** Returns the part that refers to a member. */
export function parentOf(name: MemberName): "input" | "platform" {
  return name.startsWith("input.") ? "input" : "platform";
}

/**
 * Makes a disclosure (RFC 9901 section 4.2.1) with a salt of 16 random bytes.
 *
 * @param value its JSON text
 */
export function disclose(name: PartName, value: string): string {
  const text = `["${salt()}","${name}",${value}]`;
  if (text.length * utf8Max > scratch.length) return Buffer.from(text, "utf8").toString("base64url");
  return scratch.toString("base64url", 0, scratch.write(text, "utf8"));
}

/** The longest UTF-8 of one unit of UTF-16. */
const utf8Max = 3;

// Most disclosures are encoded here, because a buffer for each would be most of the garbage of a row.
const scratch = Buffer.alloc(16_384);

/** Returns base64url(SHA-256(ASCII of the disclosure)). An erased part keeps its digest. */
export function partDigest(part: string): string {
  return isErased(part) ? part.slice(1, erasedLength) : hash("sha256", part, "base64url");
}

/**
 * Returns the rest of an erased part: `!`, its digest, and the name of a member, because members have no fixed
 * position.
 */
export function erasedPart(part: string, name: PartName): string {
  return `!${partDigest(part)}${isMemberName(name) ? name : ""}`;
}

export function isErased(part: string): boolean {
  return part.startsWith("!");
}

const erasedLength = 44;
const erasedForm = new RegExp(`^![A-Za-z0-9_-]{43}(${memberPattern})?$`);

/** Returns true for the rest of an erased fixed part. */
export function isErasedFixed(part: string): boolean {
  return part.length === erasedLength && erasedForm.test(part);
}

const memberStart = new RegExp(`^\\["[A-Za-z0-9_-]{22}","(${memberPattern})",`);

/** Returns the name of the sensitive member of a part, even if erased; undefined if the part is not a member. */
export function memberOf(part: string): MemberName | undefined {
  if (isErased(part)) return erasedForm.exec(part)?.[1] as MemberName | undefined;
  const bytes = Buffer.from(part, "base64url");
  const name = memberStart.exec(bytes.toString("latin1"))?.[1] as MemberName | undefined;
  return bytes.toString("base64url") === part ? name : undefined;
}

/** Returns the JSON text of a part's value; undefined if it is erased, or is not a disclosure with that name. */
export function valueText(part: string, name: PartName): string | undefined {
  const bytes = Buffer.from(part, "base64url");
  const from = saltEnd + name.length + 2;
  // The decoder accepts texts that are not base64url, so the text is encoded again and compared.
  if (bytes.at(-1) !== closing || bytes.toString("base64url") !== part) return undefined;
  if (bytes.toString("latin1", saltEnd, from) !== `${name}",` || !saltStart.test(bytes.toString("latin1", 0, saltEnd)))
    return undefined;
  return bytes.toString("utf8", from, bytes.length - 1);
}

/** Returns the first character of a part's value without decoding the rest; undefined if it is erased. */
export function firstCharacter(part: string, name: PartName): string | undefined {
  const at = saltEnd + name.length + 2;
  return isErased(part) ? undefined : Buffer.from(part.slice(0, at * 2), "base64url").toString("latin1", at, at + 1);
}

/** Returns the length of the disclosure of a value with this number of bytes. */
export function disclosureLength(name: PartName, valueBytes: number): number {
  return Math.ceil(((saltEnd + name.length + 3 + valueBytes) * 4) / 3);
}

const closing = "]".charCodeAt(0);

// `["`, 22 characters of salt and `","` are 27 bytes, so the name starts at a whole group of base64 and can be compared
// without decoding. The last digit of the name may contain bits of the next byte, so it can have several values.
const saltEnd = 27;
const nameAt = 36;
const namesThere: Readonly<Record<FixedPart, readonly [digits: string, last: string]>> = {
  call: ["Y2FsbCI", "s"],
  input: ["aW5wdXQiL", "ABCDEFGHIJKLMNOP"],
  platform: ["cGxhdGZvcm0iL", "ABCDEFGHIJKLMNOP"],
  reason: ["cmVhc29uIi", "wxyz"],
  outcome: ["b3V0Y29tZSI", "s"],
  effects: ["ZWZmZWN0cyI", "s"],
};

/**
 * Returns true if a part of the text is base64url of `["SALT","NAME",` with this name. This is called six times for
 * each row. Salts are not checked here, because the digest covers them.
 */
export function isNamed(text: string, { name, from, to }: PartSpan): boolean {
  const [digits, last] = namesThere[name];
  const end = from + nameAt + digits.length;
  return text.startsWith(digits, from + nameAt) && end < to && last.includes(text.charAt(end));
}

export interface PartSpan {
  readonly name: FixedPart;
  readonly from: number;
  readonly to: number;
}

const saltStart = /^\["[A-Za-z0-9_-]{22}","$/;
const saltDigits = /^[A-Za-z0-9_-]{36,}$/;

/** Returns true if the part is base64url and starts with `["`, 22 characters of base64url and `","`. */
export function hasSalt(part: string): boolean {
  return saltDigits.test(part) && saltStart.test(Buffer.from(part.slice(0, nameAt), "base64url").toString("latin1"));
}

const saltBytes = 16;
const pool = Buffer.alloc(saltBytes * 384);
let used = pool.length;

/** Returns 22 characters of base64url: 16 random bytes, which are read from the system in larger pieces. */
function salt(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const drawn = pool.toString("base64url", used, used + saltBytes);
  used += saltBytes;
  return drawn;
}
