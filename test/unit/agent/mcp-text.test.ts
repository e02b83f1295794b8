/**
 * Goal: names stay apart, a text has one reading, and a stream's pieces do not matter. Method: tables, and random texts
 * that are compared with a second reading.
 */
import assert, { fail } from "node:assert/strict";
import { once } from "node:events";
import { createReadStream } from "node:fs";
import { PassThrough } from "node:stream";
import { suite, test } from "node:test";
import fc from "fast-check";
import { canonicalJson, JsonError, readJson } from "../../../packages/agent/src/mcp/json.ts";
import { readMessage } from "../../../packages/agent/src/mcp/message.ts";
import { readLines } from "../../../packages/agent/src/mcp/lines.ts";
import { defaultName, escapedName, serverPrefix, toolName } from "../../../packages/agent/src/mcp/names.ts";
import { RecentMap } from "../../../packages/agent/src/mcp/recent.ts";
import { eventText, SseReader } from "../../../packages/agent/src/mcp/sse.ts";
import { randomRuns } from "../../support/random-test.ts";

suite("names at the gate", () => {
  test("names are written as the documentation says", () => {
    const rows = [
      ["github", "create_issue", "github.create_issue"],
      ["a.b", "c", "a%2Eb.c"],
      ["a", "b.c", "a.b%2Ec"],
      ["files", "read__all", "files.read%5F%5Fall"],
      ["a", "100%", "a.100%25"],
      ["a", "mcp.sampling", "a.mcp%2Esampling"],
      ["project:a", "é", "project%3Aa.%C3%A9"],
    ] as const;
    for (const [server, tool, expected] of rows) assert.equal(toolName(serverPrefix(server, false), tool), expected);
    assert.equal(serverPrefix("github", true), "project:github");
    assert.throws(() => escapedName("\ud800"), URIError);
  });

  test("two pairs of names have two names at the gate", (t) => {
    const part = fc.string({ unit: fc.constantFrom("a", ".", "_", "%", "2E", ":", "é", "\u{1F600}"), minLength: 1 });
    const pair = fc.tuple(part, part, fc.boolean());
    const named = ([server, tool, isProject]: readonly [string, string, boolean]): string =>
      toolName(serverPrefix(server, isProject), tool);
    fc.assert(
      fc.property(pair, pair, (one, other) => {
        assert.equal(named(one) === named(other), JSON.stringify(one) === JSON.stringify(other));
        assert.doesNotMatch(named(one), /__/);
      }),
      randomRuns(t),
    );
  });

  test("a server without a name has one of its command or address", () => {
    const rows = [
      [["node", "/srv/pay.mjs"], "pay"],
      [["npx", "-y", "@modelcontextprotocol/server-github@1.2.3"], "server-github"],
      [["uvx", "mcp-server-git"], "mcp-server-git"],
      [["server"], "server"],
    ] as const;
    for (const [command, expected] of rows) assert.equal(defaultName({ command }), expected);
    assert.equal(defaultName({ command: [], address: new URL("https://crm.example/mcp") }), "crm.example");
  });
});

suite("lines of a stream", () => {
  test("a file ends, although a file as standard input never closes", { timeout: 60_000 }, async () => {
    const file = createReadStream(import.meta.filename, { autoClose: false });
    const lines: string[] = [];
    await new Promise<void>((end) => readLines(file, { line: (text) => lines.push(text), fault: fail, end }));
    assert.equal(lines[0], "/**");
    file.destroy();
  });

  test("a stream that ends and closes ends once, after its last line", { timeout: 60_000 }, async () => {
    const stream = new PassThrough();
    const seen: string[] = [];
    readLines(stream, { line: (text) => seen.push(text), fault: fail, end: () => seen.push("(end)") });
    stream.end("one\ntwo");
    await once(stream, "close");
    assert.deepEqual(seen, ["one", "two", "(end)"]);
  });
});

suite("JSON with one reading", () => {
  test("a repeated member is refused wherever it is, and however it is spelled", () => {
    const texts = ['{"a":1,"a":2}', '{"a":1,"\\u0061":2}', '[{"b":{"a":[],"a":{}}}]', '{"x":"\\\\","y":"\\"","x":1}'];
    for (const text of texts) assert.throws(() => readJson(text), JsonError, text);
    const good = [
      '{"a":{"a":1},"b":["a","a"]}',
      '["{\\"a\\":1,\\"a\\":1}"]',
      '{"":1," ":2}',
      "1",
      '"a"',
      '{"a\\\\":1,"a":2}',
    ];
    for (const text of good) assert.deepEqual(readJson(text), JSON.parse(text));
    assert.throws(() => readJson("[".repeat(300) + "]".repeat(300)), JsonError);
    assert.throws(() => readJson('{"a":1'), JsonError);
  });

  test("every value that JSON can write is read, and its canonical text does not depend on order", (t) => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        assert.deepEqual(readJson(text), JSON.parse(text));
        assert.deepEqual(JSON.parse(canonicalJson(JSON.parse(text))), JSON.parse(text));
      }),
      randomRuns(t),
    );
    assert.equal(canonicalJson({ b: 1, a: { d: 1, c: 2 } }), canonicalJson({ a: { c: 2, d: 1 }, b: 1 }));
  });
});

suite("messages", () => {
  test("a message is one line for every reader of lines, and means the same", () => {
    const text = '{"jsonrpc":"2.0","method":"ping",\r"id":1,\r\n"params":{\n"a":"\\r\\n\u2028"}}';
    const message = readMessage(text);
    assert.doesNotMatch(message.text, /[\r\n]/);
    assert.deepEqual(JSON.parse(message.text), JSON.parse(text));
  });
});

suite("maps of limited size", () => {
  test("an entry too many replaces the one that was set longest ago", () => {
    const map = new RecentMap<string, number>(2);
    map.set("a", 1).set("b", 2).set("a", 3).set("c", 4);
    assert.deepEqual(
      [...map],
      [
        ["a", 3],
        ["c", 4],
      ],
    );
  });
});

suite("server-sent events", () => {
  test("a long line in many pieces costs one search", () => {
    const reader = new SseReader();
    const [piece, start] = ["x".repeat(256), process.cpuUsage()];
    reader.read("data: ");
    for (let count = 0; count < 20_000; count += 1) reader.read(piece);
    const [event] = reader.read("\n\n");
    assert.equal(event?.data.length, 5_120_000);
    assert.ok(process.cpuUsage(start).user < 3_000_000, "it takes less than 0.1 s of the processor");
  });

  test("the pieces of a stream do not change its events", (t) => {
    const line = fc.string({ unit: fc.constantFrom("a", ":", " ", "é") });
    const event = fc.record({
      data: fc.array(line, { minLength: 1 }).map((lines) => lines.join("\n")),
      id: fc.option(line, { nil: undefined }),
    });
    fc.assert(
      fc.property(fc.array(event), fc.array(fc.nat(30)), fc.constantFrom("\n", "\r\n", "\r"), (events, cuts, end) => {
        const text = `: a comment\n\n${events.map(eventText).join("")}`.replaceAll("\n", end);
        const reader = new SseReader();
        const found = [];
        let rest = text;
        for (const cut of cuts) {
          found.push(...reader.read(rest.slice(0, cut)));
          rest = rest.slice(cut);
        }
        found.push(...reader.read(rest), ...reader.read("\n"));
        assert.deepEqual(
          found.map(({ data, id }) => ({ data, id })),
          events.map(({ data, id }) => ({ data, id: id?.replace(/^ /, " ") })),
        );
      }),
      randomRuns(t),
    );
  });
});
