/**
 * Goal: a row's leaf and evidence follow the receipt format byte for byte. Method: the ledger's writers are compared with
 * the general canonical writer and with naive code that shares nothing with them; the digest rule with RFC 9901's own
 * examples. Eleven worked rows are recomputed here and in Python.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash, createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import fc from "fast-check";
import { partDigest, partNames, type PartName } from "../../../../packages/core/src/record/entry/disclosure.ts";
import {
  areSalted,
  evidenceDigest,
  isEmptyList,
  makeEvidence,
  partText,
} from "../../../../packages/core/src/record/entry/evidence.ts";
import { leafHash, leafText, parseLeaf, zeroHash, type Leaf } from "../../../../packages/core/src/record/entry/leaf.ts";
import { openLedger } from "../../../../packages/gate/src/ledger/mod.ts";
import { readEffects } from "../../../../packages/core/src/record/entry/mod.ts";
import { MissingParts } from "../../../../packages/core/src/record/entry/erasure.ts";
import { firstLink, verifyRow } from "../../../../packages/core/src/record/entry/verifier.ts";
import {
  canonical,
  limits,
  modes,
  parseCheckRequest,
  verdicts,
  type Canonical,
} from "../../../../packages/core/src/wire/mod.ts";
import { control } from "../../../support/controls/control.ts";
import { append, contracts, engine, entry, sha256, temporaryFolder } from "../../../support/ledger-fixture.ts";
import { vectorFile } from "../../../support/ledger-vectors.ts";
import { randomRuns } from "../../../support/random-test.ts";
import { sentencesOf } from "../../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const words = fc.string({ unit: "grapheme", maxLength: 40 });
const digest = fc.stringMatching(/^[0-9a-f]{64}$/);
const checks: fc.Arbitrary<Leaf> = fc.record({
  act: fc.constant(null),
  answered: fc.constantFrom(...verdicts, null),
  at: fc.nat({ max: 999_999_999_999_999 }),
  check: fc.constant(null),
  contract: fc.option(digest.map((hex) => `sha256:${hex}`)),
  engine: words,
  evidence: digest,
  key: fc.option(words),
  kind: fc.constant("check" as const),
  log: words,
  mode: fc.constantFrom(...modes, null),
  prev: digest,
  rule: fc.option(words),
  seq: fc.integer({ min: 1, max: 999_999_999_999_999 }),
  tool: fc.option(words),
  v: fc.constant(1 as const),
  verdict: fc.constantFrom(...verdicts, null),
});
const leaves = fc.oneof(
  checks,
  fc.tuple(checks, words).map(([leaf, act]): Leaf => ({ ...leaf, act, kind: "change" })),
  fc
    .tuple(checks, fc.nat({ max: 999_999_999_999_999 }))
    .map(([leaf, check]): Leaf => ({ ...leaf, answered: null, check, kind: "result", rule: null, verdict: null })),
);

/** Implements RFC 8785 again: sorted members, the short escapes, four hex digits for other control characters. */
function naive(value: unknown): string {
  if (typeof value === "string") {
    const short: Record<string, string> = {
      '"': '\\"',
      "\\": "\\\\",
      "\b": "\\b",
      "\f": "\\f",
      "\n": "\\n",
      "\r": "\\r",
      "\t": "\\t",
    };
    const escape = (unit: string): string =>
      short[unit] ?? (unit < " " ? `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}` : unit);
    return `"${value.split("").map(escape).join("")}"`;
  }
  if (Array.isArray(value)) return `[${value.map(naive).join(",")}]`;
  if (typeof value !== "object" || value === null) return String(value);
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${naive(name)}:${naive(member)}`).join(",")}}`;
}

suite("the leaf of a row", { tags: ["receipt.fields"] }, () => {
  test("a leaf is the RFC 8785 text of its members, whatever they contain", (t) => {
    fc.assert(
      fc.property(leaves, (leaf) => {
        const written = leafText(leaf);
        const members = Object.fromEntries(
          Object.entries(leaf).filter(([name, value]) => value !== null || (name !== "act" && name !== "check")),
        );
        assert.equal(written, canonical(members as unknown as Canonical));
        assert.equal(written, naive(members));
        assert.deepEqual(parseLeaf(written), { ...leaf });
        assert.equal(leafHash(written), createHash("sha256").update(Buffer.of(0)).update(written).digest("hex"));
      }),
      randomRuns(t),
    );
  });

  test("each kind of leaf has its own members, and the parser refuses any others", () => {
    const check = leafText(sampleLeaf());
    const change = leafText({ ...sampleLeaf(), act: "reload", kind: "change" });
    const result = leafText({ ...sampleLeaf(), answered: null, check: 3, kind: "result", verdict: null });
    for (const leaf of [check, change, result]) assert.notEqual(parseLeaf(leaf), undefined, leaf);
    const wrong: readonly (readonly [leaf: string, from: string, to: string])[] = [
      [check, '"at":5,', '"at":5,"check":3,'],
      [check, '"kind":"check"', '"kind":"result"'],
      [change, '"at":5,', '"at":5,"check":3,'],
      [change, '"kind":"change"', '"kind":"result"'],
      [result, "{", '{"act":"reload",'],
      [result, '"kind":"result"', '"kind":"check"'],
      [result, '"kind":"result"', '"kind":"change"'],
      [result, '"check":3,', ""],
      [result, '"check":3', '"check":03'],
      [result, '"check":3', '"check":"3"'],
      [result, '"answered":null', '"answered":"ALLOW"'],
      [result, '"rule":null', '"rule":"a.b"'],
      [result, '"verdict":null', '"verdict":"ALLOW"'],
    ];
    for (const [leaf, from, to] of wrong) {
      assert.ok(leaf.includes(from), from);
      assert.equal(parseLeaf(leaf.replace(from, to)), undefined, `${from} -> ${to}`);
    }
  });

  test("the parser refuses a text that is not exactly a leaf", () => {
    const leaf = leafText(sampleLeaf());
    const changes: readonly ((text: string) => string)[] = [
      (text) => ` ${text}`,
      (text) => `${text}\n`,
      (text) => text.replace('"v":1', '"v":2'),
      (text) => text.replace('"v":1', '"v":1.0'),
      (text) => text.replace('"seq":7', '"seq":07'),
      (text) => text.replace('"seq":7', '"seq":7e0'),
      (text) => text.replace('"seq":7', '"seq":9007199254740993'),
      (text) => text.replace('"kind":"check"', '"kind":"act"'),
      (text) => text.replace('"tool":"payment.send"', '"tool":"payment\\u002esend"'),
      (text) => text.replace('"tool":"payment.send"', '"tool":"payment\\/send"'),
      (text) => text.replace('"tool":"payment.send"', '"tool":"a\\q"'),
      (text) => text.replace('"tool":"payment.send"', '"tool":["payment.send"]'),
      (text) => text.replace('"verdict":"ALLOW"}', '"verdict":"MAYBE"}'),
      (text) => text.replace('"engine":"e"', '"engine":null'),
      (text) => text.replace('"v":1', '"v":1,"x":1'),
      (text) => text.replace('"answered":"ALLOW","at":5', '"at":5,"answered":"ALLOW"'),
    ];
    assert.notEqual(parseLeaf(leaf), undefined);
    for (const change of changes) {
      assert.notEqual(change(leaf), leaf, String(change));
      assert.equal(parseLeaf(change(leaf)), undefined, String(change));
    }
  });

  test("a leaf with the longest unescaped names is under 1 KiB", () => {
    const plain = {
      engine: "svc-gate/10.10.10",
      key: "k".repeat(64),
      log: "l".repeat(100),
      rule: `${"c".repeat(64)}.${"r".repeat(64)}`,
    };
    const numbers = { at: 999_999_999_999_999, seq: 999_999_999_999_999 };
    const longest = leafText({
      ...sampleLeaf(),
      ...plain,
      ...numbers,
      answered: "ESCALATE",
      verdict: "ESCALATE",
      mode: "observe",
      contract: `sha256:${zeroHash}`,
      tool: "t".repeat(limits.toolNameBytesMax),
    });
    console.log(`  the longest leaf of plain names: ${Buffer.byteLength(longest)} bytes`);
    assert.ok(Buffer.byteLength(longest) < 1024);
    const escaped = leafText({ ...sampleLeaf(), tool: "\u0001".repeat(limits.toolNameBytesMax) });
    assert.ok(Buffer.byteLength(escaped) > 1024, "control characters in a contract's tool name take six bytes each");
  });
});

function sampleLeaf(): Leaf {
  return {
    act: null,
    answered: "ALLOW",
    at: 5,
    check: null,
    contract: null,
    engine: "e",
    evidence: zeroHash,
    key: null,
    kind: "check",
    log: "l",
    mode: "enforce",
    prev: zeroHash,
    rule: null,
    seq: 7,
    tool: "payment.send",
    v: 1,
    verdict: "ALLOW",
  };
}

suite("the evidence of a row", { tags: ["receipt.fields"] }, () => {
  test("the digest of a disclosure matches the examples of RFC 9901, sections 4.2.3, 4.2.4 and appendix", () => {
    const examples = [
      ["WyI2cU1RdlJMNWhhaiIsICJmYW1pbHlfbmFtZSIsICJNw7ZiaXVzIl0", "uutlBuYeMDyjLLTpf6Jxi7yNkEF35jdyWMn9U7b_RYY"],
      ["WyJsa2x4RjVqTVlsR1RQVW92TU5JdkNBIiwgIkZSIl0", "w0I8EKcdCtUPkGCNUrfwVp2xEgNjtoIDlOxc9-PlOhs"],
      [
        "WyIyR0xDNDJzS1F2ZUNmR2ZyeU5STjl3IiwgImdpdmVuX25hbWUiLCAiSm9obiJd",
        "jsu9yVulwQQlhFlM_3JlzMaSFzglhQG0DpfayQwLUK4",
      ],
    ] as const;
    for (const [disclosure, expected] of examples) assert.equal(partDigest(disclosure), expected);
  });

  test("the evidence is six disclosures of salt, name and value, with a digest over all of them", (t) => {
    fc.assert(
      fc.property(fc.array(fc.json(), { minLength: 6, maxLength: 6 }), (values) => {
        const { stored, digest: committed } = makeEvidence(values);
        const parts = stored.split("~");
        for (const [index, name] of partNames.entries()) {
          const text = Buffer.from(parts[index] ?? "", "base64url").toString("utf8");
          const found = /^\["([A-Za-z0-9_-]{22})","([a-z]+)",(.*)\]$/s.exec(text);
          assert.deepEqual(found?.slice(2), [name, values[index]]);
          assert.equal(partText(stored, name), values[index]);
        }
        const digests = parts.map((part) => createHash("sha256").update(part, "ascii").digest("base64url"));
        assert.deepEqual([sha256(digests.toSorted().join("")), evidenceDigest(stored)], [committed, committed]);
        assert.equal(isEmptyList(stored, "effects"), values[5]?.length === 2);
      }),
      randomRuns(t),
    );
  });

  test("the reader refuses a part without 22 characters of salt, its whole name and the closing bracket", () => {
    const { stored } = makeEvidence(['"a"', "{}", "null", '"b"', "5", "[]"]);
    const parts = stored.split("~");
    const bytes = Buffer.from('\0!",-.09:AZ[]^_`az{\x7f\x80\xff', "latin1");
    for (const [index, name] of partNames.entries()) {
      const part = Buffer.from(parts[index] ?? "", "base64url");
      const head = new RegExp(`^\\["[A-Za-z0-9_-]{22}","${name}",`);
      for (const [at] of part.entries()) {
        for (const byte of bytes) {
          const changed = Buffer.from(part);
          changed.writeUInt8(byte, at);
          const line = parts.with(index, changed.toString("base64url")).join("~");
          const [isPart, title] = [head.test(changed.toString("latin1")), `${name}: byte ${byte} at ${at}`];
          assert.equal(evidenceDigest(line) !== undefined && areSalted(line), isPart, title);
          assert.equal(partText(line, name) !== undefined, isPart && changed.at(-1) === 0x5d, title);
        }
      }
      const other = `${parts[index]?.slice(0, 40)}*${parts[index]?.slice(40)}`;
      assert.equal(partText(parts.with(index, other).join("~"), name), undefined, "a decoder would pass it over");
      for (const end of [0, 1, 4, 35, 36]) {
        const cut = parts.with(index, parts[index]?.slice(0, end) ?? "").join("~");
        assert.equal(evidenceDigest(cut), undefined, `${name} cut at ${end}`);
      }
    }
  });

  test("the evidence keeps input and snapshot as received, without the white space outside strings", () => {
    const input = '{ "a" : [ 1.50 , -0, 1E+2 ] ,\n\t"b c" : "\\u00e4 \\/  x" , "d":{ } }';
    const parsed = parseCheckRequest(
      `{ "tool_input": ${input}, "platform_state" :{"e" :\r\n12345678901234567890.10 }, "tool_name":"t"}`,
    );
    assert.ok(parsed.ok);
    assert.equal(parsed.value.inputText, '{"a":[1.50,-0,1E+2],"b c":"\\u00e4 \\/  x","d":{}}');
    assert.equal(parsed.value.platformText, '{"e":12345678901234567890.10}');
  });

  test("salts are 128 bits and never the same", () => {
    const salts = Array.from({ length: 500 }, () =>
      makeEvidence([])
        .stored.split("~")
        .map((part) => String(JSON.parse(Buffer.from(part, "base64url").toString())[0])),
    ).flat();
    assert.equal(new Set(salts).size, 3000);
    assert.ok(salts.every((salt) => Buffer.from(salt, "base64url").length === 16));
    const bytes = salts.flatMap((salt) => [...Buffer.from(salt, "base64url")]);
    const bits = bytes.reduce((sum, byte) => sum + byte.toString(2).replaceAll("0", "").length, 0);
    assert.ok(Math.abs(bits / (bytes.length * 8) - 0.5) < 0.01, "half of the bits are set");
  });

  test("proofs stay valid after an erasure, and an erasure that no row records is an error", async (t) => {
    const [row, log] = await oneRow(temporaryFolder(t));
    const parts = row.evidence.split("~");
    const erased = {
      ...row,
      evidence: parts.map((part, index) => (index === 1 ? `!${partDigest(part)}` : part)).join("~"),
    };
    assert.equal(evidenceDigest(erased.evidence), evidenceDigest(row.evidence));
    assert.equal(partText(erased.evidence, "input"), undefined);
    const lacking = (shown: typeof row): readonly PartName[] => {
      const verified = verifyRow(shown, firstLink, log);
      return "missing" in verified ? verified.missing : assert.fail(verified.problem);
    };
    assert.deepEqual(lacking(row), []);
    const missing = new MissingParts();
    missing.pass(parseLeaf(row.leaf) ?? assert.fail(), erased.evidence, lacking(erased));
    says("erasure-without-a-row", String(missing.first?.problem));
  });

  test("the evidence records each counter's amount under a keyed digest, in the order of the counters", async (t) => {
    const [row] = await oneRow(temporaryFolder(t));
    const effects = readEffects(row.evidence) ?? [];
    assert.deepEqual(effects.map(({ amount }) => amount).toSorted(), ["0.10", "2"]);
    assert.deepEqual(
      effects.map(({ counter }) => counter),
      [sha256("a"), sha256("b")].toSorted(),
    );
    assert.ok(effects.every(({ key }) => /^[0-9a-f]{64}$/.test(key)));
    assert.ok(
      !Buffer.from(row.evidence.split("~")[5] ?? "", "base64url")
        .toString()
        .includes("secret-wallet"),
    );
  });
});

async function oneRow(folder: string): Promise<readonly [Parameters<typeof verifyRow>[0], string]> {
  const ledger = await openLedger({ folder, engine });
  for (const definition of ["a", "b"]) await ledger.keepCounter({ definition, through: null, unknownThrough: -1 }, []);
  await ledger.keepContract(contracts[0]);
  const moves = ["b", "a"].map((name) => ({
    counter: sha256(name),
    key: "secret-wallet",
    amount: name === "a" ? "0.10" : "2",
  }));
  await append(ledger, [[entry(), moves]]);
  const slices = await Array.fromAsync(ledger.rows.scan(1));
  await ledger.close();
  return [slices[0]?.[0] ?? assert.fail(), ledger.name];
}

/** The file of worked rows. */
interface Worked {
  readonly log: string;
  readonly engine: string;
  readonly counter_secret: string;
  readonly contracts: readonly string[];
  readonly rows: readonly {
    readonly title: string;
    readonly given: Given;
    readonly leaf: string;
    readonly hash: string;
    readonly evidence: readonly string[];
  }[];
}

interface Given extends Readonly<
  Record<"answered" | "key" | "mode" | "rule" | "verdict" | "tool_name" | "input" | "reason", string>
> {
  readonly at: number;
  readonly routed: boolean;
  readonly contract: number;
  readonly rare?: Readonly<Record<string, string>>;
  readonly session_id: string | null;
  readonly platform: string | null;
  readonly outcome: object;
  readonly moves: readonly { readonly counter: string; readonly key: string; readonly amount: string }[];
}

suite(
  "eleven worked rows",
  {
    tags: [
      "receipt.fields",
      "receipt.chain-hashes",
      "receipt.holds-snapshot",
      "platform.recorded",
      "receipt.reached-verdict",
    ],
  },
  () => {
    const worked = JSON.parse(readFileSync(vectorFile, "utf8")) as Worked;

    test("the worked rows are what the ledger writes today", () => {
      const made = spawnSync(
        process.execPath,
        [join(import.meta.dirname, "..", "..", "..", "support", "ledger-vectors.ts"), "--print"],
        { encoding: "utf8" },
      );
      const isSame = made.stdout === readFileSync(vectorFile, "utf8");
      assert.ok(isSame, `${made.stderr}after a change that is meant: node test/support/ledger-vectors.ts --write`);
    });

    test("independent code computes the worked rows from their inputs", () => {
      assert.equal(worked.rows.length, 11);
      let prev = "0".repeat(64);
      for (const [index, { title, given, leaf, hash, evidence }] of worked.rows.entries()) {
        const values = valuesOf(given, worked.counter_secret);
        const salts = evidence.map((part) => /^\["([^"]*)"/.exec(Buffer.from(part, "base64url").toString())?.[1]);
        const made = ["call", "input", "platform", "reason", "outcome", "effects"].map((name, at) =>
          Buffer.from(`["${salts[at]}","${name}",${values[at]}]`).toString("base64url"),
        );
        assert.deepEqual(evidence, made, title);
        const digests = made.map((part) => createHash("sha256").update(part).digest("base64url"));
        const { answered, at, key, mode, rule, verdict } = given;
        const members = {
          answered,
          at,
          key,
          mode,
          rule,
          verdict,
          prev,
          kind: "check",
          v: 1,
          seq: index + 1,
          log: worked.log,
          engine: worked.engine,
          contract: `sha256:${sha256(worked.contracts[given.contract] ?? "")}`,
          evidence: sha256(digests.toSorted().join("")),
          tool: given.routed ? given.tool_name : null,
        };
        assert.equal(leaf, naive(members), title);
        prev = sha256(Buffer.concat([Buffer.of(0), Buffer.from(leaf)]));
        assert.equal(hash, prev, title);
      }
    });

    test("the worked rows verify", () => {
      let link = firstLink;
      for (const { given, leaf, evidence, title } of worked.rows) {
        const row = {
          seq: link.seq + 1,
          leaf,
          evidence: evidence.join("~"),
          session: given.session_id,
          tool: given.tool_name,
          verdict: given.verdict,
        };
        const verified = verifyRow(row, link, worked.log);
        assert.ok("link" in verified, `${title}: ${JSON.stringify(verified)}`);
        link = verified.link;
      }
    });

    test("Python recomputes the worked rows", (t) => {
      const run = spawnSync(
        "python3",
        [join(import.meta.dirname, "..", "..", "..", "support", "recompute_chain.py"), vectorFile],
        {
          encoding: "utf8",
        },
      );
      if (run.error !== undefined) return t.skip("python3 is not installed");
      assert.equal(run.stdout, "all rows recomputed\n", run.stderr);
    });

    control("positive control: Python notices a changed row", (t) => {
      const changed = { ...worked, log: "example.org/another" };
      const run = spawnSync(
        "python3",
        [join(import.meta.dirname, "..", "..", "..", "support", "recompute_chain.py"), "-"],
        {
          encoding: "utf8",
          input: JSON.stringify(changed),
        },
      );
      if (run.error !== undefined) return t.skip("python3 is not installed");
      assert.equal(run.status, 1);
      assert.match(run.stdout, /^row 1: the leaf is /);
    });
  },
);

/** Returns the JSON texts of the six parts. */
function valuesOf(given: Given, secret: string): readonly string[] {
  const { rare, session_id, tool_name, moves } = given;
  const effects = moves.map(({ counter, key, amount }) => ({
    amount,
    counter,
    key: createHmac("sha256", secret).update(key).digest("hex"),
  }));
  return [
    naive({ ...rare, session_id, tool_name }),
    given.input,
    given.platform ?? "null",
    naive(given.reason),
    naive(given.outcome),
    naive(effects.toSorted((a, b) => (a.counter + a.key < b.counter + b.key ? -1 : 1))),
  ];
}
