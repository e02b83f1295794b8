import { addDecimals } from "../wire/mod.ts";

/** A JSON number without an exponent. */
export function plain(text: string): string {
  return addDecimals(text, "0");
}

/** Is one number larger than another? Both are texts, and may have an exponent. */
export function isAbove(one: string, other: string): boolean {
  return isNegative(addDecimals(plain(other), negate(plain(one))));
}

/** How far two numbers are apart. */
export function distance(one: string, other: string): string {
  return addDecimals(plain(one), negate(plain(other))).replace(/^-/, "");
}

export function isNegative(decimal: string): boolean {
  return decimal.startsWith("-");
}

function negate(decimal: string): string {
  return isNegative(decimal) ? decimal.slice(1) : `-${decimal}`;
}
