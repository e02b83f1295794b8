import { randomInt } from "node:crypto";
import { crc32 } from "node:zlib";

const prefix = "svcg_";
const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** 62^43 is just over 2^256. */
const secretLength = 43;
/** 62^6 is over 2^32. */
const checksumLength = 6;

/**
 * A new key: `svcg_`, 43 random characters of base62, and 6 of a checksum, so that who scans texts for secrets finds one
 * by its look alone and is not misled by what only resembles it.
 */
export function makeKey(): string {
  const secret = Array.from({ length: secretLength }, () => digits.charAt(randomInt(digits.length))).join("");
  return prefix + secret + checksumOf(prefix + secret);
}

/** Has a text the form and the checksum of a key? It says nothing of whether a gate knows it. */
export function looksLikeKey(text: string): boolean {
  return hasKeyForm(text) && text.endsWith(checksumOf(text.slice(0, -checksumLength)));
}

/** Has it the form alone? With a wrong checksum it is a key that was mistyped. */
export function hasKeyForm(text: string): boolean {
  return /^svcg_[0-9A-Za-z]{49}$/.test(text);
}

/** CRC-32 (ISO 3309, as in zip) of the ASCII bytes, as six digits of base62, the greatest first. */
function checksumOf(text: string): string {
  let rest = crc32(text);
  let written = "";
  while (written.length < checksumLength) {
    written = digits.charAt(rest % digits.length) + written;
    rest = Math.floor(rest / digits.length);
  }
  return written;
}
