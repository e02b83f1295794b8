/**
 * Goal: the code of the first sign-in is good once, for ten minutes and for five tries. Method: a code over a clock of the
 * test, and each way to end it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FirstCode } from "../../../../packages/console/src/server/first-code.ts";

interface Terminal {
  readonly code: FirstCode;
  readonly clock: { ms: number };
  readonly shown: string[];
}

function terminal(): Terminal {
  const clock = { ms: 0 };
  const shown: string[] = [];
  const show = (sentence: string): number => shown.push(/console: (\S+) /.exec(sentence)?.[1] ?? assert.fail(sentence));
  return { code: new FirstCode(show, () => clock.ms), clock, shown };
}

const minute = 60_000;

test("a code that was never shown is never good", () => {
  const { code } = terminal();
  for (const text of ["", "        ", "undefined"]) assert.equal(code.redeem(text), false);
});

test("the code is good once, in any case and with spaces around it", () => {
  const { code, shown } = terminal();
  code.show();
  const [first = ""] = shown;
  assert.match(first, /^[A-HJ-NP-TV-Z2-9]{8}$/);
  assert.equal(code.redeem(first.slice(1)), false);
  assert.equal(code.redeem(`${first}A`), false);
  assert.ok(code.redeem(` ${first.toLowerCase()}\n`));
  assert.equal(code.redeem(first), false);
  code.show();
  assert.notEqual(shown[1], first);
  assert.ok(code.redeem(shown[1] ?? ""), "positive control: the next code is good");
});

test("the code is good for ten minutes, and is shown once meanwhile", () => {
  const { code, clock, shown } = terminal();
  code.show();
  clock.ms = 10 * minute - 1;
  code.show();
  assert.equal(shown.length, 1);
  clock.ms = 10 * minute;
  assert.equal(code.redeem(shown[0] ?? ""), false);
  code.show();
  assert.equal(shown.length, 2);
  clock.ms = 20 * minute - 1;
  assert.ok(code.redeem(shown[1] ?? ""));
});

test("five wrong codes end the code, and the next one comes a minute after it", () => {
  const { code, clock, shown } = terminal();
  code.show();
  for (let n = 0; n < 4; n += 1) assert.equal(code.redeem("WRONGWRO"), false);
  const four = terminal();
  four.code.show();
  for (let n = 0; n < 4; n += 1) four.code.redeem("WRONGWRO");
  assert.ok(four.code.redeem(four.shown[0] ?? ""), "positive control: the fifth try may be right");
  code.redeem("WRONGWRO");
  assert.equal(code.redeem(shown[0] ?? ""), false);
  clock.ms = minute - 1;
  code.show();
  assert.equal(shown.length, 1);
  clock.ms = minute;
  code.show();
  assert.ok(code.redeem(shown[1] ?? ""));
});
