import { randomInt } from "node:crypto";
import { crc32 } from "node:zlib";

const prefix = "svcg_";
const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** 62^43 is slightly more than 2^256. */
const secretLength = 43;
/** 62^6 is more than 2^32. */
const checksumLength = 6;

/**
 * Makes a key: `svcg_`, 43 random characters of base62, and 6 characters of a checksum. So a scanner for secrets
 * recognises a key by its form, and the checksum prevents false alarms.
 */
export function makeKey(): string {
  const secret = Array.from({ length: secretLength }, () => digits.charAt(randomInt(digits.length))).join("");
  return prefix + secret + checksumOf(prefix + secret);
}

/** Returns true if a text has the form and the checksum of a key. A gate may still not know the key. */
export function looksLikeKey(text: string): boolean {
  return hasKeyForm(text) && text.endsWith(checksumOf(text.slice(0, -checksumLength)));
}

/** Returns true if a text has the form of a key. If the checksum is wrong, the key was mistyped. */
export function hasKeyForm(text: string): boolean {
  return /^svcg_[0-9A-Za-z]{49}$/.test(text);
}

/** Returns the CRC-32 (ISO 3309, as in zip) of the ASCII bytes as six digits of base62, the most significant first. */
function checksumOf(text: string): string {
  let rest = crc32(text);
  let written = "";
  while (written.length < checksumLength) {
    written = digits.charAt(rest % digits.length) + written;
    rest = Math.floor(rest / digits.length);
  }
  return written;
}
