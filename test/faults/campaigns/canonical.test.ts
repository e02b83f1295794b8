/**
 * Goal: our canonical text and digests follow RFC 8785 and RFC 9901, as far as we write them: the text contains strings,
 * booleans, null and safe integers, and refuses every other number. Method: the files and the digest over 100,000
 * numbers that the author of RFC 8785 publishes, and the disclosures in RFC 9901.
 */
import assert from "node:assert/strict";
import { createHash, hash } from "node:crypto";
import { suite, test } from "node:test";
import { partDigest, partNames } from "../../../packages/core/src/record/entry/disclosure.ts";
import { makeEvidence } from "../../../packages/core/src/record/entry/evidence.ts";
import {
  canonical,
  Decimal,
  decimalText,
  parseNumber,
  readJson,
  type Canonical,
} from "../../../packages/core/src/wire/mod.ts";
import { control } from "../../support/controls/control.ts";
import { readVector } from "../../support/third-party/vectors.ts";

const written = (name: string): string => readVector(`rfc8785/output/${name}.json`);
const received = (name: string): string => readVector(`rfc8785/input/${name}.json`);
const parse = (text: string): Canonical => JSON.parse(text) as Canonical;

suite("RFC 8785", () => {
  for (const name of ["arrays", "french", "structures", "unicode", "weird"])
    test(`the canonical text of ${name}.json equals the published output`, () => {
      assert.equal(canonical(parse(received(name))), written(name));
      assert.equal(canonical(parse(written(name))), written(name), "again, from the canonical text");
    });

  test("canonical text refuses the fractions and exponents of values.json and matches its other members", () => {
    const { numbers, ...others } = JSON.parse(received("values")) as { readonly numbers: readonly number[] };
    assert.throws(() => canonical({ numbers }), RangeError);
    for (const number of numbers) assert.throws(() => canonical(number), RangeError);
    const wanted = written("values").replace(/"numbers":\[[^\]]*\],/, "");
    assert.equal(canonical(others), wanted);
  });

  test("the gate's JSON reader accepts the published objects and keeps the text of numbers", () => {
    for (const name of ["french", "unicode", "weird"]) {
      const read = readJson(received(name));
      assert.ok(read.ok, name);
      assert.equal(canonical(Object.fromEntries(read.value.members) as Canonical), written(name));
    }
    const values = readJson(received("values"));
    assert.ok(values.ok);
    assert.equal(values.value.source("numbers"), "[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001]");
    assert.equal(readJson(received("arrays")).ok, false, "a request is one object");
  });

  control("positive control: names sorted by code points or not sorted at all are noticed", () => {
    const names = Object.keys(parse(written("weird")) as object);
    const byCodePoint = names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    assert.notDeepEqual(byCodePoint, names.toSorted());
    assert.notEqual(JSON.stringify(parse(received("weird"))), written("weird"));
  });

  test("the runtime writes 100,000 numbers as published; canonical text accepts only the safe integers", () => {
    const digest = createHash("sha256");
    const counts = { written: 0, refused: 0 };
    for (const { bits, value } of doubles(100_000)) {
      const wanted = String(value);
      digest.update(`${bits.toString(16)},${wanted}\n`);
      if (Number.isSafeInteger(value)) {
        counts.written += 1;
        if (canonical(value) !== wanted) assert.fail(`${bits.toString(16)} is written ${canonical(value)}`);
      } else {
        counts.refused += 1;
        if (isWritten(value)) assert.fail(`${wanted} is written`);
      }
      if (readsAs(wanted) !== value) assert.fail(`${wanted} is not read as ${wanted}`);
    }
    assert.equal(digest.digest("hex"), "22776e6d4b49fa294a0d0f349268e5c28808fe7e0cb2bcbe28f63894e494d4c7");
    assert.ok(counts.written > 20 && counts.refused > 99_000, JSON.stringify(counts));
  });

  control("positive control: numbers written with one digit less are noticed", () => {
    const short = createHash("sha256");
    const rounded = createHash("sha256");
    for (const { bits, value } of doubles(1000)) {
      short.update(`${bits.toString(16)},${String(value)}\n`);
      rounded.update(`${bits.toString(16)},${String(Number(value.toPrecision(16)))}\n`);
    }
    const published = "be18b62b6f69cdab33a7e0dae0d9cfa869fda80ddc712221570f9f40a5878687";
    assert.equal(short.digest("hex"), published);
    assert.notEqual(rounded.digest("hex"), published);
  });
});

function isWritten(value: number): boolean {
  try {
    canonical(value);
    return true;
  } catch {
    return false;
  }
}

/** Reads a number's text with our exact reader; returns the nearest double. */
function readsAs(text: string): number {
  const number = parseNumber(text);
  if (number instanceof Decimal) return Number(decimalText(number.coefficient, number.exponent));
  return typeof number === "number" ? number : Number.NaN;
}

interface Double {
  readonly bits: bigint;
  readonly value: number;
}

/**
 * Returns the doubles for which the author of RFC 8785 publishes digests. First the listed ones, then 2,000 from the
 * smallest normal one up. Then those in the chain of SHA-256 over 32 zero bytes, read with the lowest byte first,
 * without zeros and non-finite values.
 */
function* doubles(count: number): Generator<Double> {
  const view = new DataView(new ArrayBuffer(8));
  const double = (bits: bigint): Double => {
    view.setBigUint64(0, bits);
    return { bits, value: view.getFloat64(0) };
  };
  const listed = readVector("rfc8785/listed-doubles.txt").trim().split("\n");
  let left = count;
  for (let at = 0; at < listed.length + 2000 && left > 0; at += 1, left -= 1)
    yield double(
      at < listed.length ? BigInt(`0x${listed[at] ?? ""}`) : 0x0010_0000_0000_0000n + BigInt(at - listed.length),
    );
  for (let block = Buffer.alloc(32); left > 0;) {
    block = hash("sha256", block, "buffer");
    for (let at = 0; at < 32 && left > 0; at += 8) {
      const next = double(block.readBigUInt64LE(at));
      if (next.value === 0 || !Number.isFinite(next.value)) continue;
      left -= 1;
      yield next;
    }
  }
}

interface Disclosure {
  readonly section: string;
  readonly text: string;
  readonly disclosure: string;
  readonly digest: string;
}

suite("RFC 9901", () => {
  const { disclosures } = JSON.parse(readVector("sd-jwt/disclosures.json")) as {
    readonly disclosures: readonly Disclosure[];
  };

  test("the gate computes the published digests of the RFC's disclosures", () => {
    assert.equal(disclosures.length, 12);
    for (const { section, text, disclosure, digest } of disclosures) {
      assert.equal(Buffer.from(text).toString("base64url"), disclosure, section);
      assert.equal(partDigest(disclosure), digest, text);
    }
  });

  control("positive control: a digest of the decoded text or of another base64url spelling is noticed", () => {
    for (const { text, disclosure, digest } of disclosures) {
      assert.notEqual(partDigest(text), digest);
      assert.notEqual(partDigest(`${disclosure}=`), digest);
      assert.notEqual(partDigest(Buffer.from(text.replace(", ", ",")).toString("base64url")), digest);
    }
  });

  test("a part of the evidence is a disclosure: a salt of 16 bytes, a name, a value", () => {
    const { stored, digest } = makeEvidence(partNames.map((name) => `{"of":"${name}"}`));
    const parts = stored.split("~");
    for (const [at, part] of parts.entries()) {
      const [salt, name, value] = JSON.parse(Buffer.from(part, "base64url").toString("utf8"));
      assert.deepEqual([name, value], [partNames[at], { of: partNames[at] }]);
      assert.equal(Buffer.from(salt, "base64url").length, 16);
      assert.equal(partDigest(part), hash("sha256", Buffer.from(part, "ascii"), "base64url"));
    }
    assert.equal(digest, hash("sha256", parts.map(partDigest).toSorted().join(""), "hex"));
  });
});
