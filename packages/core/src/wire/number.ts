import { limits } from "./limits.ts";

/**
 * A JSON number that a JavaScript number cannot represent as it was sent: a fraction, an exponent, a negative zero or
 * an integer beyond 15 digits. Its value is exactly `coefficient * 10 ** exponent`; `text` is the text that was sent.
 */
export class Decimal {
  readonly text: string;
  #coefficient: bigint | undefined;
  #exponent = 0;

  constructor(text: string) {
    this.text = text;
  }

  get coefficient(): bigint {
    return (this.#coefficient ??= this.#read());
  }

  /** The power of ten, -440 to 400 for numbers within the limits. */
  get exponent(): number {
    this.#coefficient ??= this.#read();
    return this.#exponent;
  }

  #read(): bigint {
    const [mantissa = "0", power = "0"] = this.text.toLowerCase().split("e");
    const [whole = "0", fraction = ""] = mantissa.split(".");
    this.#exponent = Number(power) - fraction.length;
    return BigInt(whole + fraction);
  }
}

/** A JavaScript number here is always a safe integer, exactly as sent; everything else is a `Decimal`. */
export type JsonNumber = number | Decimal;

const grammar = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;

/** Reads one JSON number (RFC 8259 section 6) within the limits, or describes the problem. */
export function parseNumber(text: string): JsonNumber | { readonly problem: string } {
  if (!grammar.test(text)) return { problem: "not a number as JSON writes it" };
  if (text.length <= 15 && /^(?:0|-?[1-9][0-9]*)$/.test(text)) return Number(text);
  const [mantissa = "", power = "0"] = text.toLowerCase().split("e");
  const digits = mantissa.replace(/[-.]/g, "").length;
  if (digits > limits.numberDigitsMax) {
    return { problem: `a number of ${digits} digits; the limit is ${limits.numberDigitsMax}` };
  }
  if (Math.abs(Number(power)) > limits.numberExponentMax) {
    return { problem: `an exponent beyond ${limits.numberExponentMax} or -${limits.numberExponentMax}` };
  }
  return new Decimal(text);
}

/** The exact sum of two decimals written without an exponent ("12.50" + "0.5" = "13"), in the shortest form. */
export function addDecimals(left: string, right: string): string {
  const both = Number(left) + Number(right);
  if (isSmallInteger(left) && isSmallInteger(right) && Number.isSafeInteger(both)) return String(both);
  const [a, b] = [new Decimal(left), new Decimal(right)];
  const exponent = Math.min(a.exponent, b.exponent);
  const alignCoefficient = (n: Decimal): bigint => n.coefficient * 10n ** BigInt(n.exponent - exponent);
  return decimalText(alignCoefficient(a) + alignCoefficient(b), exponent);
}

/** `coefficient * 10 ** exponent` written out without an exponent and without trailing zeros. */
export function decimalText(coefficient: bigint, exponent: number): string {
  if (exponent >= 0) return String(coefficient * 10n ** BigInt(exponent));
  const sign = coefficient < 0n ? "-" : "";
  const digits = String(coefficient < 0n ? -coefficient : coefficient).padStart(1 - exponent, "0");
  const whole = digits.slice(0, exponent);
  const fraction = digits.slice(exponent).replace(/0+$/, "");
  return `${sign}${whole}${fraction === "" ? "" : `.${fraction}`}`;
}

/**
 * The number that a program with IEEE doubles may read instead: the shortest decimal of the nearest double, or
 * `Infinity`. Undefined if it has the same value, as for `0.1`, `50.0` and `1e2`.
 */
export function misreadAs(number: JsonNumber): string | undefined {
  if (typeof number === "number") return undefined;
  const double = Number(number.text);
  if (!Number.isFinite(double)) return String(double);
  const read = new Decimal(String(double));
  const exponent = Math.min(number.exponent, read.exponent);
  const alignCoefficient = (of: Decimal): bigint => of.coefficient * 10n ** BigInt(of.exponent - exponent);
  return alignCoefficient(number) === alignCoefficient(read) ? undefined : read.text;
}

function isSmallInteger(text: string): boolean {
  return text.length <= 15 && !text.includes(".");
}
