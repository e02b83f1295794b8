/** Exact numbers as a pair of integers, in lowest terms, with a positive denominator. */
export interface Fraction {
  readonly n: bigint;
  readonly d: bigint;
}

/** Thrown by an evaluation without a value. */
export class CannotEvaluate extends Error {}

const bitsMax = 4096;

export function fraction(n: bigint, d: bigint): Fraction {
  if (d === 0n) throw new CannotEvaluate("division by zero");
  const divisor = greatestCommon(n < 0n ? -n : n, d < 0n ? -d : d);
  const sign = d < 0n ? -1n : 1n;
  const reduced = { n: (sign * n) / divisor, d: (sign * d) / divisor };
  if (bits(reduced.n) > bitsMax || bits(reduced.d) > bitsMax) throw new CannotEvaluate("a value of over 4,096 bits");
  return reduced;
}

function greatestCommon(a: bigint, b: bigint): bigint {
  while (b !== 0n) [a, b] = [b, a % b];
  return a === 0n ? 1n : a;
}

function bits(value: bigint): number {
  return value === 0n ? 0 : (value < 0n ? -value : value).toString(2).length;
}

/** Reads a decimal as JSON and contracts write it. */
export function fromText(text: string): Fraction {
  const [, sign = "", whole = "0", fractional = "", power = "0"] =
    /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/.exec(text) ?? [];
  const digits = BigInt(sign + whole + fractional);
  const exponent = BigInt(power) - BigInt(fractional.length);
  return exponent >= 0n ? fraction(digits * 10n ** exponent, 1n) : fraction(digits, 10n ** -exponent);
}

export function fromInteger(value: number | bigint): Fraction {
  return { n: BigInt(value), d: 1n };
}

export function add(a: Fraction, b: Fraction): Fraction {
  return fraction(a.n * b.d + b.n * a.d, a.d * b.d);
}

export function subtract(a: Fraction, b: Fraction): Fraction {
  return fraction(a.n * b.d - b.n * a.d, a.d * b.d);
}

export function multiply(a: Fraction, b: Fraction): Fraction {
  return fraction(a.n * b.n, a.d * b.d);
}

export function divide(a: Fraction, b: Fraction): Fraction {
  return fraction(a.n * b.d, a.d * b.n);
}

/** Returns the remainder of `a` divided by `b`, with the sign of `a`. */
export function remainder(a: Fraction, b: Fraction): Fraction {
  const quotient = divide(a, b);
  return subtract(a, multiply(fromInteger(quotient.n / quotient.d), b));
}

/** Returns a value less than zero, zero, or more than zero. */
export function compare(a: Fraction, b: Fraction): number {
  const difference = a.n * b.d - b.n * a.d;
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

export function isWhole(a: Fraction): boolean {
  return a.d === 1n;
}

/** Writes a fraction whose denominator divides a power of ten, without exponent and without trailing zeros. */
export function decimal(a: Fraction): string {
  if (a.n < 0n) return `-${decimal({ n: -a.n, d: a.d })}`;
  let text = String(a.n / a.d);
  let rest = a.n % a.d;
  if (rest !== 0n) text += ".";
  for (let index = 0; rest !== 0n; index += 1) {
    if (index > 2000) throw new Error("not a decimal");
    rest *= 10n;
    text += String(rest / a.d);
    rest %= a.d;
  }
  return text;
}
