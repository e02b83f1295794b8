/**
 * Goal: the gate judges exactly the sent text: the reader accepts strict JSON or refuses it with the position. Method:
 * a table of refusals with line and column, each limit at it and one past it, the text of members, and the reading of a
 * check request. The comparison with JSON.parse is in fuzz.test.ts.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import {
  addDecimals,
  canonical,
  decimalText,
  findUtf8Fault,
  limits,
  nearest,
  parseCheckRequest,
  parseNumber,
  quote,
  quoteAscii,
  readJson,
  refusals,
} from "../../../packages/core/src/wire/mod.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

function fault(text: string): string {
  const read = readJson(text);
  return read.ok ? "read" : `${read.problem.line}:${read.problem.column} ${read.problem.sentence}`;
}

const refused: readonly (readonly [text: string, place: string])[] = [
  ["", "1:1"],
  ["[]", "1:1"],
  ["1", "1:1"],
  ['"a"', "1:1"],
  ["null", "1:1"],
  ["\ufeff{}", "1:1"],
  ["\u00a0{}", "1:1"],
  ["{} {}", "1:4"],
  ["{}\n,", "2:1"],
  ["{", "1:2"],
  ["{a: 1}", "1:2"],
  ["{'a': 1}", "1:2"],
  ["{1: 1}", "1:2"],
  ["// c\n{}", "1:1"],
  ["{/* c */}", "1:2"],
  ['{"a" 1}', "1:6"],
  ['{"a":}', "1:6"],
  ['{"a":1,}', "1:8"],
  ['{"a":1 "b":2}', "1:8"],
  ['{"a":1', "1:7"],
  ['{"a":[1', "1:8"],
  ['{"a":[1,]}', "1:9"],
  ['{"a":[,1]}', "1:7"],
  ['{"a":[1 2]}', "1:9"],
  ['{"a":tru}', "1:6"],
  ['{"a":True}', "1:6"],
  ['{"a":trueish}', "1:10"],
  ['{"a":undefined}', "1:6"],
  ['{"a":NaN}', "1:6"],
  ['{"a":Infinity}', "1:6"],
  ['{"a":-Infinity}', "1:6"],
  ['{"a":+1}', "1:6"],
  ['{"a":.5}', "1:6"],
  ['{"a":5.}', "1:6"],
  ['{"a":01}', "1:6"],
  ['{"a":-01}', "1:6"],
  ['{"a":-}', "1:6"],
  ['{"a":1e}', "1:6"],
  ['{"a":1e+}', "1:6"],
  ['{"a":1.e5}', "1:6"],
  ['{"a":0x1}', "1:7"],
  ['{"a":1_0}', "1:7"],
  ['{"a":1,"a":2}', "1:8"],
  ['{"a":{"b":1,"c":2,\n"b":3}}', "2:1"],
  ['{"a":1,"\\u0061":2}', "1:8"],
  ['{"__proto__":1,"__proto__":2}', "1:16"],
  ['{"a\\u0000":1}', "1:2"],
  ['{"a":"\\ud800"}', "1:6"],
  ['{"a":"\\udc00\\ud800"}', "1:6"],
  ['{"\\ud800":1}', "1:2"],
  ['{"a":"\ud800"}', "1:7"],
  ['{"a":"b\nc"}', "1:8"],
  ['{"a":"b\tc"}', "1:8"],
  ['{"a":"\\n\u0000"}', "1:9"],
  ['{"a":"b', "1:8"],
  ['{"a":"b\\', "1:8"],
  ['{"a":"\\x41"}', "1:7"],
  ['{"a":"\\\'"}', "1:7"],
  ['{"a":"\\u12"}', "1:7"],
  ['{"a":"\\u12g4"}', "1:7"],
  ['{"a":"😀é", "b": x}', "1:17"],
  ['\n\r\n  {"a": ?}', "3:9"],
];

suite("the strict JSON reader", () => {
  test("the reader refuses ambiguous or bad JSON, with line and column", { tags: ["service.json-bodies"] }, () => {
    for (const [text, position] of refused) {
      const [at, ...sentence] = fault(text).split(" ");
      assert.equal(at, position, JSON.stringify(text));
      says(`text ${text}`, sentence.join(" "));
    }
  });

  test("the reader refuses every prefix of a valid text", () => {
    const text = '{"a": [1, -2.5e+3, "x\\u00e9\\n", {"b": null, "c": [true, false]}], "d": {}}';
    for (let end = 0; end < text.length; end += 1)
      assert.notEqual(fault(text.slice(0, end)), "read", text.slice(0, end));
    assert.equal(fault(text), "read");
  });

  test("the reader treats names such as __proto__ as ordinary names", () => {
    const read = readJson(
      '{"__proto__": {"admin": true}, "constructor": 1, "toString": 2, "hasOwnProperty": 3, "": 4}',
    );
    assert.ok(read.ok);
    const names = ["__proto__", "constructor", "toString", "hasOwnProperty", ""];
    assert.deepEqual([...read.value.members.keys()], names);
    assert.equal(read.value.source("valueOf"), undefined);
    assert.equal(Object.hasOwn({}, "admin"), false);
  });

  test("a member's text is the sent text without white space outside strings", () => {
    const text = '{ "a" : { "x y" : [ 1.50 , "\\u0041 \\" \\\\" , -0 ] } ,\n"b":\t[1,2] , "c" : "  " , "d": 1e2\r\n}';
    const read = readJson(text);
    assert.ok(read.ok);
    const source = (name: string): string | undefined => read.value.source(name);
    assert.equal(source("a"), '{"x y":[1.50,"\\u0041 \\" \\\\",-0]}');
    assert.deepEqual([source("b"), source("c"), source("d")], ["[1,2]", '"  "', "1e2"]);
  });

  test("a long string full of escapes keeps its text", () => {
    const inner = '\\\\\\"\\n '.repeat(40_000);
    const read = readJson(`{"a": [ "${inner}" ]}`);
    assert.ok(read.ok);
    assert.equal(read.value.source("a"), `["${inner}"]`);
  });
});

/** `{"a":[[…]]}` of this many levels, including the outer object. */
function nested(levels: number): string {
  return `{"a":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;
}

/** `{"a":[[],[],…]}` of this many objects and arrays, including the outer two. */
function siblings(containers: number): string {
  return `{"a":[${"[],".repeat(containers - 3)}[]]}`;
}

const atLimits: readonly (readonly [what: string, text: string, place: string])[] = [
  ["depth", nested(limits.jsonDepthMax), "read"],
  ["depth", nested(limits.jsonDepthMax + 1), "1:69"],
  ["containers", siblings(limits.jsonContainersMax), "read"],
  ["containers", siblings(limits.jsonContainersMax + 1), "1:30001"],
  ["depth of objects", '{"a":'.repeat(64) + "1" + "}".repeat(64), "read"],
  ["depth of objects", '{"a":'.repeat(65) + "1" + "}".repeat(65), "1:321"],
  ["depth is not breadth", `{"a":[${"[],".repeat(100)}[]]}`, "read"],
  ["digits", `{"a":${"1".repeat(40)}}`, "read"],
  ["digits", `{"a":${"1".repeat(41)}}`, "1:6"],
  ["digits of a fraction", `{"a":-0.${"1".repeat(39)}}`, "read"],
  ["digits of a fraction", `{"a":-0.${"1".repeat(40)}}`, "1:6"],
  ["exponent", '{"a":1e400}', "read"],
  ["exponent", '{"a":1e401}', "1:6"],
  ["exponent", '{"a":1E-400}', "read"],
  ["exponent", '{"a":1e-401}', "1:6"],
  ["exponent of zero", '{"a":0e99999999999999999999}', "1:6"],
  ["exponent with zeros", '{"a":1e0000000000000000000400}', "read"],
];

test("the reader accepts a text at each limit and refuses a text beyond it", () => {
  for (const [what, text, position] of atLimits) {
    const [at, ...sentence] = fault(text).split(" ");
    assert.equal(at, position, `${what}: ${text.slice(0, 60)}`);
    if (position !== "read") says(`limit of ${what}`, sentence.join(" "));
  }
});

function bytes(...values: readonly number[]): Uint8Array {
  return Uint8Array.from(values);
}

const utf8: readonly (readonly [what: string, bytes: Uint8Array, place: string])[] = [
  ["ASCII", bytes(0x61, 0x0a), "good"],
  ["every length", new TextEncoder().encode("aé€😀\u{10ffff}"), "good"],
  ["a lone continuation", bytes(0x61, 0x80), "1:2"],
  ["an overlong slash", bytes(0xc0, 0xaf), "1:1"],
  ["an overlong of three", bytes(0xe0, 0x9f, 0xbf), "1:1"],
  ["a surrogate", bytes(0xed, 0xa0, 0x80), "1:1"],
  ["beyond U+10FFFF", bytes(0xf4, 0x90, 0x80, 0x80), "1:1"],
  ["five bytes", bytes(0xf8, 0x88, 0x80, 0x80, 0x80), "1:1"],
  ["cut short", bytes(0xc3, 0xa9, 0x0a, 0xe2, 0x82), "2:1"],
  ["Latin-1", bytes(0x63, 0x61, 0x66, 0xe9), "1:4"],
];

test("the gate finds the position of invalid UTF-8 in every text that TextDecoder refuses", () => {
  for (const [what, input, expected] of utf8) {
    const found = findUtf8Fault(input, new TextDecoder("utf-8", { ignoreBOM: true }).decode(input));
    assert.equal(found === undefined ? "good" : `${found.line}:${found.column}`, expected, what);
    const decoder = new TextDecoder("utf-8", { fatal: true });
    if (expected === "good") assert.doesNotThrow(() => decoder.decode(input), what);
    else assert.throws(() => decoder.decode(input), what);
  }
});

suite("a check request", () => {
  const requests: readonly string[] = [
    '{"tool_input":{}}',
    '{"tool_name":1,"tool_input":{}}',
    '{"tool_name":null,"tool_input":{}}',
    '{"tool_name":"","tool_input":{}}',
    '{"tool_name":"a\\u0000","tool_input":{}}',
    '{"tool_name":"a"}',
    '{"tool_name":"a","tool_input":null}',
    '{"tool_name":"a","tool_input":[]}',
    '{"tool_name":"a","tool_input":"{}"}',
    '{"tool_name":"a","tool_input":0.5}',
    '{"tool_name":"a","tool_input":true}',
    '{"tool_name":"a","tool_input":{},"session_id":1}',
    '{"tool_name":"a","tool_input":{},"session_id":null}',
    '{"tool_name":"a","tool_input":{},"session_id":""}',
    '{"tool_name":"a","tool_input":{},"platform_state":[]}',
    '{"tool_name":"a","tool_input":{},"platformState":{}}',
    '{"tool_name":"a","tool_input":{},"Tool_Name":"b"}',
    '{"tool_name":"a","tool_input":{},"mode":"observe"}',
    '{"tool_name":"a","tool_input":{},"\\u202e":1}',
    '{"tool_name":"a","tool_name":"b"}',
  ];

  test(
    "the parser refuses a bad request with a sentence that names the member",
    { tags: ["check.tool-name", "check.tool-input", "check.snapshot-member"] },
    () => {
      for (const body of requests) {
        const read = parseCheckRequest(body);
        assert.ok(!read.ok, body);
        says(`request ${body}`, read.problem.detail);
        assert.equal(refusals[read.problem.code].status, 400);
      }
    },
  );

  test(
    "the parser keeps the sent texts; a missing session or snapshot is null",
    { tags: ["check.session-id", "check.snapshot-optional"] },
    () => {
      const read = parseCheckRequest('{"tool_name":"a b","tool_input":{ "x": 1.0 },"platform_state":null}');
      assert.ok(read.ok);
      const { toolName, sessionId, platformState, inputText, platformText } = read.value;
      assert.deepEqual([toolName, sessionId, platformState, platformText], ["a b", null, null, null]);
      assert.equal(inputText, '{"x":1.0}');
    },
  );

  test("the parser counts names in bytes and accepts at most 256", () => {
    const body = (name: string): string => JSON.stringify({ tool_name: name, tool_input: {}, session_id: name });
    for (const name of ["a".repeat(256), "é".repeat(128), "😀".repeat(64)]) assert.ok(parseCheckRequest(body(name)).ok);
    for (const name of ["a".repeat(257), `${"é".repeat(128)}a`, "😀".repeat(65), "€".repeat(86)]) {
      const read = parseCheckRequest(body(name));
      assert.equal(read.ok ? "read" : read.problem.detail, '"tool_name" is over 256 bytes');
    }
  });
});

suite("numbers", () => {
  test("a parsed number keeps its exact value", () => {
    const exact = (text: string): string => {
      const number = parseNumber(text);
      if (typeof number === "number") return String(number);
      return "problem" in number ? number.problem : decimalText(number.coefficient, number.exponent);
    };
    const table: readonly (readonly [string, string])[] = [
      ["0", "0"],
      ["-0", "0"],
      ["-0.0e5", "0"],
      ["0.1", "0.1"],
      ["9007199254740993", "9007199254740993"],
      ["10.000", "10"],
      ["1e1", "10"],
      ["1.25E-2", "0.0125"],
      ["-12.5e1", "-125"],
      ["123456789012345", "123456789012345"],
      ["1234567890123456789012345678901234567890", "1234567890123456789012345678901234567890"],
    ];
    for (const [text, value] of table) assert.equal(exact(text), value, text);
  });

  test("sums of decimals are exact", () => {
    const table = [
      ["0.1", "0.2", "0.3"],
      ["12.50", "0.5", "13"],
      ["9007199254740991", "1", "9007199254740992"],
      ["999999999999999", "1", "1000000000000000"],
      ["-0.5", "0.5", "0"],
      ["1", "-1", "0"],
      ["0.000000001", "100000000000000000000", "100000000000000000000.000000001"],
    ] as const;
    for (const [left, right, sum] of table) assert.equal(addDecimals(left, right), sum);
  });
});

suite("texts for reviewers", () => {
  test("a quoted text shows hidden characters escaped and is cut at 64 characters", () => {
    const table: readonly (readonly [string, string])[] = [
      ["plain", '"plain"'],
      ['a"b\\c', '"a\\"b\\\\c"'],
      ["line\nbreak\ttab\u001b[31m", '"line\\u000abreak\\u0009tab\\u001b[31m"'],
      ["safe\u202egnp.exe", '"safe\\u202egnp.exe"'],
      ["zero\u200bwidth\u00ad", '"zero\\u200bwidth\\u00ad"'],
      ["tag\u{e0041}\ufe0f", '"tag\\u{e0041}\\ufe0f"'],
      ["\u3164\uffa0\u115f\u180b", '"\\u3164\\uffa0\\u115f\\u180b"'],
      ["naïve 😀", '"naïve 😀"'],
      ["x".repeat(64), `"${"x".repeat(64)}"`],
      ["x".repeat(65), `"${"x".repeat(64)}…"`],
      ["😀".repeat(65), `"${"😀".repeat(64)}…"`],
      ["x".repeat(1_000_000), `"${"x".repeat(64)}…"`],
    ];
    for (const [text, shown] of table) assert.equal(quote(text), shown);
    assert.equal(quoteAscii("pаy"), '"p\\u0430y"');
  });

  test("a mistyped name finds the known name that it resembles; other names find none", () => {
    const known = ["payment.send", "payment.refund", "fs.read"];
    const table: readonly (readonly [string, string | undefined])[] = [
      ["payment.sned", "payment.send"],
      ["Payment.Send", "payment.send"],
      ["payment_send", "payment.send"],
      ["pаyment.send", "payment.send"],
      ["payment.send\u200b", "payment.send"],
      ["ｐayment.send", "payment.send"],
      ["fs.raed", "fs.read"],
      ["shell.exec", undefined],
      ["", undefined],
    ];
    for (const [name, near] of table) assert.equal(nearest(name, known), near, name);
  });

  test("canonical text sorts members by code units and has safe integers only", () => {
    assert.equal(canonical({ b: [1, "é\n"], a: { z: null, A: true } }), '{"a":{"A":true,"z":null},"b":[1,"é\\n"]}');
    assert.throws(() => canonical(0.5), RangeError);
    assert.throws(() => canonical(2 ** 53), RangeError);
  });
});
