/**
 * Goal: the comparison with other engines measures correctly, and its charts and page are free of mistakes. Method:
 * everything but the servers. The gate's own engine decides the table of calls; policies of every language, requests
 * and responses on the wire, bars, charts and the page are tested with invented figures.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { suite, test } from "node:test";
import { fileURLToPath } from "node:url";
import { disagreements, expectedCalls } from "../../../bench/peers/calls.ts";
import { charts } from "../../../bench/peers/charts.ts";
import { answerLength, placeholder, quantile, requestParts, type Load, type Order } from "../../../bench/peers/load.ts";
import { pageWith, tables } from "../../../bench/peers/page.ts";
import { sessionId } from "../../../bench/requests.ts";
import { peers } from "../../../bench/peers/peers.ts";
import { policyFiles, type Language } from "../../../bench/peers/policies.ts";
import {
  barsOf,
  fastest,
  growth,
  type Figures,
  type PeerResult,
  type Results,
  type Series,
} from "../../../bench/peers/results.ts";
import { apart, barChart, powers, steps } from "../../../bench/peers/svg.ts";
import { compileContracts, planLookups, decide, prepare } from "../../../packages/readers/src/contract.ts";
import { parseCheckRequest, type Verdict } from "../../../packages/core/src/wire/mod.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const languages: readonly Language[] = ["rego", "cerbos", "cedar", "agt", "svc-gate"];

suite("the table of calls", () => {
  test("the gate's own contract decides every call as the table says, and a wrong limit is noticed", () => {
    assert.deepEqual(disagreements(verdicts({ wrong: false })), []);
    const [wrong = "", ...others] = disagreements(verdicts({ wrong: true }));
    assert.deepEqual(others, []);
    assert.match(wrong, /\b60 USD\b.*\bALLOW\b.*\bBLOCK\b/);
  });

  test("a missing verdict counts as a disagreement", () => {
    assert.equal(disagreements([]).length, expectedCalls.length);
  });

  test("the verdicts stay the same with counters and a thousand rules for other tools", () => {
    assert.deepEqual(disagreements(verdicts({ wrong: false, counted: true, others: 1000 })), []);
  });
});

suite("the policies in each language", () => {
  for (const language of languages) {
    test(`the ${language} policies change with a wrong limit and include the rules of other tools`, () => {
      const [right, wrong] = [false, true].map((each) =>
        Object.values(policyFiles(language, { others: 0, wrong: each, counted: false })).join(""),
      );
      assert.notEqual(right, wrong);
      const many = Object.values(policyFiles(language, { others: 100, wrong: false, counted: false })).join("");
      assert.equal(many.split(/"?a9"?/).length - 1 >= 10, true, "the tenth rule of ten tools");
      assert.equal(right?.includes("other"), language === "svc-gate" ? right?.includes("otherwise") : false);
    });
  }
});

suite("requests to a peer and its answers", () => {
  test("each peer's adapter recognises its verdicts and finds none in other answers", () => {
    const answers: Readonly<Record<string, readonly [string, Verdict | undefined][]>> = {
      "svc-gate-sqlite": [
        ['{"verdict":"ALLOW"}', "ALLOW"],
        ['{"verdict":"allow"}', undefined],
        ["{}", undefined],
      ],
      opa: [
        ['{"result":{"verdict":"ESCALATE"}}', "ESCALATE"],
        ["{}", undefined],
      ],
      cerbos: [
        ['{"results":[{"actions":{"run":"EFFECT_ALLOW"}}]}', "ALLOW"],
        ['{"results":[{"actions":{"run":"EFFECT_DENY"}}]}', "BLOCK"],
        ['{"results":[{"actions":{"run":"EFFECT_DENY"},"outputs":[{"val":"ESCALATE"}]}]}', "ESCALATE"],
        ['{"results":[{"actions":{"run":"EFFECT_DENY"},"outputs":[{"val":"ESCALATE"},{"val":"BLOCK"}]}]}', "BLOCK"],
        ['{"results":[]}', undefined],
      ],
      agt: [
        ['{"decision":"require_approval"}', "ESCALATE"],
        ['{"decision":"deny"}', "BLOCK"],
        ["{}", undefined],
      ],
    };
    for (const [id, cases] of Object.entries(answers)) {
      const peer = peers.find((each) => each.id === id);
      for (const [text, verdict] of cases) assert.equal(peer?.verdict(text), verdict, `${id}: ${text}`);
    }
  });

  test("a request contains the session's id and the right content-length", () => {
    const [parts] = requestParts(orderTo("http://127.0.0.1:80/check"));
    const text = parts?.join(sessionId(7)) ?? "";
    const [head = "", body = ""] = text.split("\r\n\r\n");
    assert.equal(body, `{"session_id":"${sessionId(7)}"}`);
    assert.match(head, new RegExp(`content-length: ${body.length}`));
    assert.equal(sessionId(999_999).length, placeholder.length);
  });

  test("an answer is complete only when its last byte has arrived", () => {
    const plain = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    const chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    for (const text of [plain, chunked]) {
      assert.equal(answerLength(`${text}HTTP`), text.length);
      for (let cut = 0; cut < text.length; cut += 1)
        assert.equal(answerLength(text.slice(0, cut)), 0, text.slice(0, cut));
    }
  });

  test("the p99 of a hundred times is the longest and the p50 is the 51st", () => {
    const times = Float64Array.from({ length: 100 }, (_, at) => at + 1);
    assert.deepEqual([quantile(times, 0.5), quantile(times, 0.99)], [51, 100]);
  });

  test("the load generator counts wrong answers and, with `once`, sends each session exactly once", async () => {
    const seen: string[] = [];
    const server = createServer((socket) => {
      socket.on("data", (chunk) => {
        const session = /run-[0-9a-f]+/.exec(chunk.toString())?.[0] ?? "";
        seen.push(session);
        const body = session.endsWith("3") ? "BLOCK" : "ALLOW";
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
      });
      socket.on("error", () => undefined);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/check`;
    const generator = spawn(process.execPath, [join(root, "bench/peers/load.ts")], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    generator.stdin.end(JSON.stringify({ ...orderTo(url), connections: 3, sessions: 20, once: true }));
    let text = "";
    generator.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
    await once(generator, "close");
    server.close();
    const load = JSON.parse(text) as Load;
    assert.deepEqual([load.total, load.failed], [20, 2]);
    assert.match(load.failure ?? "", /BLOCK/);
    assert.deepEqual(
      seen.toSorted(),
      Array.from({ length: 20 }, (_, at) => sessionId(at)).toSorted((one, other) => one.localeCompare(other)),
    );
  });
});

suite("the figures of the comparison and their bars", () => {
  test("the bars compare the gate with the fastest other engine", () => {
    const results = made({ speed: 9000, p99: 10 });
    assert.equal(fastest(results)?.id, "opa");
    const { sqlite_of_fastest_peer: speed, sqlite_p99_of_fastest_peer: p99 } = barsOf(results);
    assert.deepEqual([speed?.value, speed?.holds, p99?.value, p99?.holds], [2.25, true, 0.25, true]);
  });

  test("a gate that is too slow or whose latency grows misses its bars", () => {
    const bars = barsOf(made({ speed: 7000, p99: 30 }));
    assert.equal(bars["sqlite_of_fastest_peer"]?.holds, false);
    assert.equal(bars["sqlite_p99_of_fastest_peer"]?.holds, false);
    assert.equal(growth({ 10: figures(1, 10), 1000: figures(1, 16) }), 1.6);
    assert.equal(bars["sqlite_p99_growth_rules"]?.holds, true);
    assert.equal(barsOf(made({ speed: 9000, p99: 10, grown: 16 }))["sqlite_p99_growth_rules"]?.holds, false);
  });

  test("a skipped engine has no bar, and the page says why it was skipped", () => {
    const results = made({ speed: 9000, p99: 10 });
    const names = Object.keys(barsOf({ ...results, peers: results.peers.filter(({ ours }) => ours) }));
    assert.deepEqual(names, ["sqlite_p99_growth_rules", "sqlite_p99_growth_sessions"]);
    assert.match(tables(results), /\bCerbos\b.*\bit is not installed\b/);
  });

  test("new figures replace the old ones, and the rest of the page stays the same", () => {
    const page = "a\n<!-- figures: written by npm run bench -- peers -->\nstale\n<!-- end of figures -->\nz\n";
    const written = pageWith(page, made({ speed: 9000, p99: 10 }));
    assert.match(written, /^a\n<!--[\s\S]*\| OPA \| 4,000 \| 2 \| 40 \|[\s\S]*<!-- end of figures -->\nz\n$/);
    assert.doesNotMatch(written, /stale/);
    assert.equal(pageWith(written, made({ speed: 9000, p99: 10 })), written);
    assert.throws(() => pageWith("no marks", made({ speed: 1, p99: 1 })), /does not hold/);
  });
});

suite("the charts of the comparison", () => {
  test("every chart is well-formed XML, names every peer and contains no NaN, Infinity or undefined", () => {
    const drawn = charts(made({ speed: 9000, p99: 10 }));
    assert.deepEqual(Object.keys(drawn), ["checks.svg", "connections.svg", "latency.svg", "rules.svg", "sessions.svg"]);
    for (const [name, text] of Object.entries(drawn)) {
      assert.deepEqual(unclosed(text), [], name);
      for (const peer of ["svc-gate, SQLite", "OPA"]) assert.ok(text.includes(`>${peer}<`), `${name} names ${peer}`);
      assert.doesNotMatch(text, /NaN|Infinity|undefined/, name);
      assert.match(text, /prefers-color-scheme: dark/, name);
    }
  });

  test("the longest bar belongs to the highest value, and labels are escaped", () => {
    const text = barChart("a < b", [bar("one & two", 100), bar("three", 50)], "");
    assert.deepEqual(text.match(/(?<=class="bar" x="210" y="\d+" width=")\d+/g), ["300", "150"]);
    assert.match(text, /a &lt; b/);
    assert.match(text, /one &amp; two/);
    assert.deepEqual(unclosed(text), []);
    assert.deepEqual(unclosed("<svg><g></svg>"), ["g"]);
  });

  test("the scale of a chart covers every value that it draws", () => {
    assert.deepEqual(powers([0.3, 45]), [0.1, 1, 10, 100]);
    assert.deepEqual(powers([10]), [10, 100]);
    assert.deepEqual(steps(14_790), [0, 5000, 10_000, 15_000]);
    assert.deepEqual(steps(0), [0, 1]);
  });

  test("labels that would overlap are moved apart and keep their order", () => {
    const positions = apart([100, 101, 300], 17);
    assert.equal((positions[1] ?? 0) - (positions[0] ?? 0), 17);
    assert.equal(positions[2], 300);
  });
});

function verdicts(wanted: {
  readonly wrong: boolean;
  readonly counted?: boolean;
  readonly others?: number;
}): readonly Verdict[] {
  const files = policyFiles("svc-gate", { counted: false, others: 0, ...wanted });
  const contracts = Object.entries(files).filter(([name]) => name !== "mandate.yaml");
  const compiled = compileContracts(contracts.map(([name, text]) => ({ name, text })));
  if (!compiled.ok) throw new Error(compiled.problem.map(({ message }) => message).join("\n"));
  return expectedCalls.map(({ call }) => {
    const request = parseCheckRequest(JSON.stringify(call));
    if (!request.ok) throw new Error(request.problem.detail);
    const prepared = prepare(compiled.value, request.value, { keyName: "default", sessionId: request.value.sessionId });
    const lookupPlan = planLookups(prepared, 1_790_000_000_000);
    return decide(
      lookupPlan,
      lookupPlan.lookups.map(() => "0"),
    ).verdict;
  });
}

function orderTo(url: string): Order {
  const bodies = [`{"session_id":"${placeholder}"}`];
  return { url, headers: {}, bodies, marker: "ALLOW", connections: 1, seconds: 1, sessions: 1, once: false };
}

function figures(perSecond: number, p99: number): Figures {
  return { perSecond, p50: 2, p99 };
}

function made({
  speed,
  p99,
  grown = p99,
}: {
  readonly speed: number;
  readonly p99: number;
  readonly grown?: number;
}): Results {
  const of = (id: string, name: string, perSecond: number, slowest: number, most: number): PeerResult => {
    const series = (...sizes: readonly number[]): Series =>
      Object.fromEntries(sizes.map((size, at) => [size, figures(perSecond, at === sizes.length - 1 ? most : slowest)]));
    return {
      id,
      name,
      ours: id.startsWith("svc-gate"),
      startMs: 100,
      idleMb: 50,
      loadedMb: 60,
      connections: {
        1: figures(1000, 1),
        16: figures(2000, 2),
        64: figures(perSecond, slowest),
        256: figures(perSecond, 100),
      },
      rules: series(10, 100, 1000),
      sessions: series(1, 10_000, 1_000_000),
    };
  };
  return {
    machine: "a machine",
    day: "2026-01-01",
    seconds: 4,
    rounds: 3,
    flushMs: 0.2,
    peers: [
      of("svc-gate-sqlite", "svc-gate, SQLite", speed, p99, grown),
      of("opa", "OPA", 4000, 40, 40),
      of("cedar", "Cedar", 3000, 20, 20),
    ],
    skipped: [{ name: "Cerbos", why: "it is not installed" }],
  };
}

function bar(label: string, value: number): Parameters<typeof barChart>[1][number] {
  return { label, value, note: "", strong: false };
}

/** Returns the XML elements that are not closed correctly. */
function unclosed(text: string): readonly string[] {
  const open: string[] = [];
  const wrong: string[] = [];
  for (const [, closing, name = "", alone] of text.matchAll(/<(\/?)([A-Za-z]+)[^<>]*?(\/?)>/g)) {
    if (alone === "/") continue;
    if (closing !== "/") open.push(name);
    else if (open.at(-1) === name) open.pop();
    else wrong.push(open.pop() ?? name);
  }
  return [...wrong, ...open].slice(0, 1);
}
