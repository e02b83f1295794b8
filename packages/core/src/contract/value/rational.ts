import { Decimal, decimalText } from "../../wire/mod.ts";

/**
 * An exact number: a safe integer, a decimal as it was sent, or a fraction. All three have one type in a contract;
 * nothing uses binary floating point.
 */
export type Exact = number | Decimal | Fraction;

/** `numerator / denominator` with a positive denominator; reduced to lowest terms only if it is large. */
export class Fraction {
  readonly numerator: bigint;
  readonly denominator: bigint;

  constructor(numerator: bigint, denominator: bigint) {
    this.numerator = numerator;
    this.denominator = denominator;
  }
}

/** An expression that cannot be evaluated. Its message is a clause for the reason of the resulting BLOCK. */
export class EvaluationError extends Error {}

export function isExact(value: unknown): value is Exact {
  return typeof value === "number" || value instanceof Decimal || value instanceof Fraction;
}

export function add(a: Exact, b: Exact): Exact {
  if (typeof a === "number" && typeof b === "number") {
    const sum = a + b;
    if (Number.isSafeInteger(sum)) return sum;
  }
  const [x, y] = [fraction(a), fraction(b)];
  return settle(x.numerator * y.denominator + y.numerator * x.denominator, x.denominator * y.denominator);
}

export function negate(a: Exact): Exact {
  if (typeof a === "number") return a === 0 ? 0 : -a;
  const x = fraction(a);
  return settle(-x.numerator, x.denominator);
}

export function subtract(a: Exact, b: Exact): Exact {
  return add(a, negate(b));
}

export function multiply(a: Exact, b: Exact): Exact {
  if (typeof a === "number" && typeof b === "number") {
    const product = a * b;
    if (Number.isSafeInteger(product)) return product === 0 ? 0 : product;
  }
  const [x, y] = [fraction(a), fraction(b)];
  return settle(x.numerator * y.numerator, x.denominator * y.denominator);
}

export function divide(a: Exact, b: Exact): Exact {
  const [x, y] = [fraction(a), fraction(b)];
  if (y.numerator === 0n) throw new EvaluationError("division by zero");
  const sign = y.numerator < 0n ? -1n : 1n;
  return settle(sign * x.numerator * y.denominator, sign * y.numerator * x.denominator);
}

/** The remainder of `a / b` after truncation, with the sign of `a`. */
export function remainder(a: Exact, b: Exact): Exact {
  if (typeof a === "number" && typeof b === "number" && b !== 0) return (a % b) + 0;
  const [x, y] = [fraction(a), fraction(b)];
  if (y.numerator === 0n) throw new EvaluationError("remainder of a division by zero");
  const denominator = x.denominator * y.denominator;
  return settle((x.numerator * y.denominator) % (y.numerator * x.denominator), denominator);
}

/** Negative, zero or positive if `a` is less than, equal to or greater than `b`. */
export function compare(a: Exact, b: Exact): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  const [x, y] = [fraction(a), fraction(b)];
  const difference = x.numerator * y.denominator - y.numerator * x.denominator;
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

export function isInteger(a: Exact): boolean {
  if (typeof a === "number") return true;
  const x = fraction(a);
  return x.numerator % x.denominator === 0n;
}

/** The greatest integer not above `a`; a bigint, because it may exceed 2^53. */
export function floor(a: Exact): bigint {
  const x = fraction(a);
  const quotient = x.numerator / x.denominator;
  return quotient * x.denominator > x.numerator ? quotient - 1n : quotient;
}

export function fromBigint(value: bigint): Exact {
  return settle(value, 1n);
}

/** The value in one canonical spelling, however it was sent: a finite decimal, else `n/d` in lowest terms. */
export function exactText(a: Exact): string {
  if (typeof a === "number") return String(a);
  if (a instanceof Decimal) return decimalText(a.coefficient, a.exponent);
  const x = lowest(a.numerator, a.denominator);
  let [twos, fives, rest] = [0, 0, x.denominator];
  for (; rest % 2n === 0n; rest /= 2n) twos += 1;
  for (; rest % 5n === 0n; rest /= 5n) fives += 1;
  if (rest !== 1n) return `${x.numerator}/${x.denominator}`;
  const digits = Math.max(twos, fives);
  return decimalText((x.numerator * 10n ** BigInt(digits)) / x.denominator, -digits);
}

function fraction(a: Exact): Fraction {
  if (a instanceof Fraction) return a;
  if (typeof a === "number") return new Fraction(BigInt(a), 1n);
  const { coefficient, exponent } = a;
  if (exponent >= 0) return new Fraction(coefficient * 10n ** BigInt(exponent), 1n);
  return new Fraction(coefficient, 10n ** BigInt(-exponent));
}

const roomy = 1n << 512n;
const largest = 1n << 4096n;

function settle(numerator: bigint, denominator: bigint): Exact {
  if (
    denominator === 1n &&
    numerator >= BigInt(Number.MIN_SAFE_INTEGER) &&
    numerator <= BigInt(Number.MAX_SAFE_INTEGER)
  ) {
    return Number(numerator);
  }
  if (within(numerator, roomy) && within(denominator, roomy)) return new Fraction(numerator, denominator);
  const reduced = lowest(numerator, denominator);
  if (!within(reduced.numerator, largest) || !within(reduced.denominator, largest)) {
    throw new EvaluationError("a number of over 4,096 bits");
  }
  return reduced;
}

function within(value: bigint, limit: bigint): boolean {
  return value < limit && value > -limit;
}

function lowest(numerator: bigint, denominator: bigint): Fraction {
  let [a, b] = [numerator < 0n ? -numerator : numerator, denominator];
  while (b !== 0n) [a, b] = [b, a % b];
  return a <= 1n ? new Fraction(numerator, denominator) : new Fraction(numerator / a, denominator / a);
}
