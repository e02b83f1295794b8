/**
 * Goal: a call updates exactly the counters that it matches, under one typed key, and a rule reads their values from
 * before the call. Method: tables of definitions with their problems; the updates and lookups of calls; comparisons of
 * identities.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import {
  planLookups,
  count,
  prepare,
  type Caller,
  type Lookup,
  type CounterUpdate,
} from "../../../../packages/core/src/contract/mod.ts";
import { verdicts } from "../../../../packages/core/src/wire/mod.ts";
import {
  codes,
  compile,
  contractText,
  diagnostics,
  judge,
  marked,
  problems,
  request,
  snapshot,
  type Call,
} from "../../../support/contract-kit.ts";
import { sentencesOf } from "../../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const required = { requires: "platform.present" };

function withCounter(definition: string, rules?: string): string {
  return contractText({ ...required, counters: `{ k: ${definition} }`, ...(rules === undefined ? {} : { rules }) });
}

const definitions: readonly (readonly [definition: string, ...codes: readonly string[]])[] = [
  ["{ of: t, per: session }"],
  ["{ of: ['*'], per: [key, platform.wallet], within: 10m }"],
  ["{ of: ['*'], per: call, within: 10m }"],
  ["{ of: t, per: [call, session], sum: platform.spent }"],
  ["{ of: [t], per: gate, sum: platform.spent, within: 7d, counting: possible }"],
  ["{ of: [t], per: input.s, when: input.n > 1, within: week, timezone: Europe/Berlin, week_starts: sunday }"],
  ["{ of: [t], per: gate, since: platform.spent, settles_within: 10m, within: 24h }"],
  ["{ of: [t], per: gate, sum: input.?m.orValue(0) * 2 + 1 }"],
  ["{ of: t, per: gate, sum: platform.spent, counting: possible, settles: outcome }"],
  ["{ of: t, per: gate, sum: platform.spent, counting: released, settles: outcome, within: 24h }"],
  ["{ of: t, per: gate, counting: done }"],
  ["{ of: t, per: gate, sum: platform.spent, counting: possible, settles: later }", "counter"],
  ["{ of: t, per: gate, counting: possible, settles: outcome }", "counter"],
  ["{ of: t, per: gate, sum: platform.spent, settles: outcome }", "counter"],
  ["{ of: t, per: gate, sum: platform.spent, counting: done, settles: outcome }", "counter"],
  ["{ of: [t] }", "missing"],
  ["{ per: gate }", "missing"],
  ["{ of: [u], per: gate }", "unknown-tool"],
  ["{ of: t, per: gate, window: 10m }", "unknown-key"],
  ["{ of: t, per: sesion }", "unknown-name"],
  ["{ of: t, per: input.t }", "unproven-member"],
  ["{ of: t, per: input.any }", "unproven-member"],
  ["{ of: t, per: input }", "counter"],
  ["{ of: t, per: limits.most }", "counter"],
  ["{ of: t, per: input.n + 1 }", "counter"],
  ["{ of: t, per: platform.price }", "unproven-member"],
  ["{ of: t, per: now }", "not-here"],
  ["{ of: t, per: gate, when: counters.k > 1 }", "not-here"],
  ["{ of: t, per: gate, when: input.n }", "type"],
  ["{ of: t, per: gate, sum: input.n }", "counter"],
  ["{ of: t, per: gate, sum: platform.spent - 1 }", "counter"],
  ["{ of: t, per: gate, sum: '-1' }", "counter"],
  ["{ of: t, per: gate, sum: platform.spent / 3 }", "counter"],
  ["{ of: t, per: gate, sum: platform.spent % 3 }", "counter"],
  ["{ of: t, per: gate, sum: input.s }", "type"],
  ["{ of: t, per: gate, counting: alowed }", "counter"],
  ["{ of: t, per: gate, counting: constructor }", "counter"],
  ["{ of: t, per: gate, within: 10 }", "counter"],
  ["{ of: t, per: gate, within: 0s }", "counter"],
  ["{ of: t, per: gate, within: 1us }", "counter"],
  ["{ of: t, per: gate, within: '-1h' }", "counter"],
  ["{ of: t, per: gate, within: day }", "counter"],
  ["{ of: t, per: gate, within: day, timezone: Mars/Olympus }", "counter"],
  ["{ of: t, per: gate, within: day, timezone: '+02:00' }", "counter"],
  ["{ of: t, per: gate, within: 10m, timezone: UTC }", "counter"],
  ["{ of: t, per: gate, within: day, timezone: UTC, week_starts: monday }", "counter"],
  ["{ of: t, per: gate, within: week, timezone: UTC, week_starts: mon }", "counter"],
  ["{ of: t, per: gate, settles_within: 10m }", "counter"],
];

suite("a counter's definition", () => {
  test("the compiler accepts a valid counter and reports each mistake in an invalid one once", () => {
    for (const [definition, ...expected] of definitions) {
      assert.deepEqual(codes(withCounter(definition)), expected, definition);
      if (expected.length > 0) says(definition, problems(withCounter(definition)).join("\n"));
    }
  });

  test("the compiler requires `since` to be a number of seconds or a timestamp", () => {
    const rules = '[{ rule: r, on: t, when: "counters.k > 1", verdict: BLOCK, reason: x }]';
    const text = withCounter("{ of: t, per: gate, since: platform.wallet }", rules);
    assert.deepEqual(codes(text), ["type"]);
    says("since-a-text", problems(text).join("\n"));
    assert.deepEqual(problems(withCounter("{ of: t, per: gate, since: timestamp(platform.spent) }", rules)), []);
  });
});

function identity(definition: string, parts: { readonly let?: string; readonly limits?: string } = {}): string {
  const used =
    parts.let === undefined
      ? {}
      : {
          rules: `[{ rule: r, on: t, when: "${parts.let.includes("w:") ? "w == w" : "true"}", verdict: ALLOW, reason: x }]`,
        };
  const policySet = compile(contractText({ ...required, counters: `{ k: ${definition} }`, ...parts, ...used }));
  return policySet.counters[0]?.identity ?? "";
}

suite("the part of a counter that parked calls reserve", () => {
  const reading = (definition: string, condition = "counters.k.held > 1"): string =>
    withCounter(
      definition,
      `[{ rule: r, on: t, when: ${JSON.stringify(condition)}, verdict: BLOCK, reason: "{counters.k}" }]`,
    );
  const possible = "{ of: t, per: gate, counting: possible }";

  test("only a `possible` counter that does not remember has `held`, and the error is at that word", () => {
    assert.deepEqual(codes(reading(possible)), []);
    assert.deepEqual(codes(reading("{ of: t, per: session, sum: platform.spent, counting: possible }")), []);
    for (const counting of ["attempts", "released", "blocked", "escalated"]) {
      const text = reading(`{ of: t, per: gate, counting: ${counting} }`);
      const [problem, ...others] = diagnostics(text);
      assert.ok(problem);
      assert.deepEqual([problem.code, marked(problem), others], ["counter", "held", []], counting);
      if (counting === "released") says("not-possible", `${problem.message}: ${problem.hint ?? ""}`);
    }
    const remembering = withCounter(
      "{ of: t, per: gate, remembers: input.s, counting: possible }",
      "[{ rule: r, on: t, when: counters.k.held > 1, verdict: BLOCK, reason: x }]",
    );
    assert.deepEqual(codes(remembering), ["counter"]);
  });

  test("`held` is a number without members, and other counters' names are as before", () => {
    assert.deepEqual(codes(reading(possible, 'counters.k.held == "a"')), ["type"]);
    assert.deepEqual(codes(reading(possible, "counters.k.helt > 1")), ["type"]);
    assert.deepEqual(codes(reading(possible, "counters.j.held > 1")), ["unknown-counter"]);
    assert.deepEqual(codes(withCounter("{ of: t, per: gate, counting: possible, when: counters.k.held > 1 }")), [
      "not-here",
    ]);
    const own = contractText({ ...required, counters: "{ held: { of: t, per: gate, counting: possible } }" });
    assert.deepEqual(
      codes(`${own}rules: [{ rule: r, on: t, when: counters.held.held > counters.held, verdict: BLOCK, reason: x }]`),
      [],
    );
  });

  test("a contract that never reads it has no such counter, and its calls reserve nothing under it", () => {
    const [plain, read] = [compile(reading(possible, "counters.k > 1")), compile(reading(possible))];
    assert.deepEqual(
      plain.counters.map(({ name }) => name),
      ["c.k"],
    );
    assert.deepEqual(
      read.counters.map(({ name, counting }) => [name, counting]),
      [
        ["c.k", "possible"],
        ["c.k.held", "held"],
      ],
    );
    assert.equal(new Set(read.counters.map((each) => each.identity)).size, 2);
    const caller = { keyName: "k", sessionId: null };
    const call = request({ platform: snapshot });
    assert.equal(prepare(plain, call, caller).updates.length, 1);
    const prepared = prepare(read, call, caller);
    const escalated = { verdict: "ESCALATE", answered: "ESCALATE" } as const;
    const namesOf = (outcome: Parameters<typeof count>[1]): readonly string[] =>
      count(prepared, outcome).map(({ counter: { name }, held }) => `${name} ${held === true ? "held" : "event"}`);
    assert.deepEqual(namesOf({ ...escalated, how: "opened" }), ["c.k held", "c.k.held held"]);
    assert.deepEqual(namesOf({ ...escalated, how: "attached" }), []);
    assert.deepEqual(namesOf(escalated), ["c.k event"]);
    assert.deepEqual(namesOf({ verdict: "ESCALATE", answered: "ALLOW", how: "used" }), ["c.k event"]);
    assert.deepEqual(namesOf({ verdict: "ALLOW", answered: "ALLOW" }), ["c.k event"]);
  });

  test("a tool's calls reserve amounts under a part that only another tool's rule reads", () => {
    const text = contractText({ ...required, counters: "{ k: { of: t, per: gate, counting: possible } }" })
      .replace("tools:\n", "tools:\n  u: { input: { type: object, additionalProperties: false }, otherwise: ALLOW }\n")
      .concat("rules: [{ rule: r, on: u, when: counters.k.held > 1, verdict: BLOCK, reason: x }]\n");
    const { tools } = compile(text);
    assert.deepEqual(
      tools.get("t")?.writers.map(({ counter }) => counter.name),
      ["c.k", "c.k.held"],
    );
    assert.deepEqual([...(tools.get("u")?.readers.keys() ?? [])], ["c.k.held"]);
  });
});

suite("a counter's identity is its definition", () => {
  const base =
    "{ of: t, per: platform.wallet, sum: platform.spent * limits.most, when: input.n > 1, within: " +
    "10m, since: platform.spent, settles_within: 60s }";
  const same = [
    '{ within: "10m", of: [t], per: [platform.wallet], counting: attempts, when: "input.n  >  1.0", ' +
      "sum: (platform.spent*limits.most), since: platform.spent, settles_within: 1m }",
    "{ of: ['*'], per: 'platform[\"wallet\"]', sum: platform.spent * limits.most, when: \"(input.n) > " +
      '1e0 // many", within: 600s, since: platform.spent, settles_within: 60000ms }',
  ];
  const other = [
    base.replace("n > 1", "n >= 1"),
    base.replace("n > 1", "n > 2"),
    base.replace("per: platform.wallet", "per: input.s"),
    base.replace("per: platform.wallet", "per: [gate, platform.wallet]"),
    base.replace("per: platform.wallet", "per: call"),
    base.replace("10m", "11m"),
    base.replace("60s", "61s"),
    base.replace(", when: input.n > 1", ""),
    base.replace("sum: platform.spent * limits.most, ", ""),
    base.replace("of: t", "of: t, counting: possible"),
    base.replace("within: 10m", "within: day, timezone: UTC"),
    base.replace("within: 10m", "within: day, timezone: Europe/Berlin"),
  ];

  test("formatting, quotes, brackets and the spelling of numbers and times do not change the identity", () => {
    for (const definition of same) assert.equal(identity(definition), identity(base), definition);
    assert.ok(identity(base).length > 100);
  });

  test("every change in a counter's meaning changes its identity", () => {
    const found = [base, ...other].map((definition) => identity(definition));
    assert.equal(new Set(found).size, found.length);
    assert.notEqual(identity(base, { limits: "{ most: 11, names: [] }" }), identity(base));
    assert.equal(identity(base, { limits: "{ most: 10.0, names: [x] }" }), identity(base));
  });

  test("the identity uses the definition of each name under `let:`, also in `per:`", () => {
    for (const key of ["per: w", "per: gate, when: w == 'x'"]) {
      const definition = `{ of: t, ${key} }`;
      const found = ["platform.wallet", "input.s", "platform.wallet "].map((meaning) =>
        identity(definition, { let: `{ w: "${meaning}" }` }),
      );
      assert.notEqual(found[0], found[1], key);
      assert.equal(found[0], found[2], key);
    }
    const chain = (end: string): string =>
      identity("{ of: t, per: gate, when: w }", { let: `{ w: v && true, v: "input.n > ${end}" }` });
    assert.notEqual(chain("1"), chain("2"));
  });
});

const caller: Caller = { keyName: "default", sessionId: "s" };

function updates(text: string | readonly string[], call: Call = {}, from: Caller = caller): readonly CounterUpdate[] {
  const policySet = compile(...(typeof text === "string" ? [text] : text));
  return prepare(policySet, request({ platform: snapshot, ...call }), from).updates;
}

suite("the counters that a call moves", () => {
  test("a call adds one or its exact sum to the counter, under a typed key", () => {
    const table: readonly (readonly [
      definition: string,
      call: Call,
      updates: readonly (readonly [string, string])[],
    ])[] = [
      ["{ of: t, per: gate }", {}, [['[["gate"]]', "1"]]],
      ["{ of: t, per: session }", {}, [['[["session","default","s"]]', "1"]]],
      ["{ of: t, per: key }", {}, [['[["key","default"]]', "1"]]],
      ["{ of: t, per: input.s }", { input: { n: 1, s: "1" } }, [['[["text","1"]]', "1"]]],
      ["{ of: t, per: input.n }", { input: '{"n": 1.0, "s": ""}' }, [['[["number","1"]]', "1"]]],
      ["{ of: t, per: [platform.wallet, key] }", {}, [['[["text","w"],["key","default"]]', "1"]]],
      [
        "{ of: t, per: gate, sum: platform.spent }",
        { platform: '{"wallet": "w", "spent": 0.10}' },
        [['[["gate"]]', "0.1"]],
      ],
      [
        "{ of: t, per: gate, sum: platform.spent * 3 }",
        { platform: '{"wallet": "w", "spent": 1e-400}' },
        [['[["gate"]]', `0.${"0".repeat(399)}3`]],
      ],
      ["{ of: t, per: gate, when: input.n > 1 }", {}, []],
      ["{ of: t, per: gate, when: input.n > 1 }", { input: { n: 2, s: "" } }, [['[["gate"]]', "1"]]],
    ];
    for (const [definition, call, expected] of table) {
      const found = updates(withCounter(definition), call).map(({ key, amount }) => [key, amount]);
      assert.deepEqual(found, expected, definition);
    }
  });

  test("a call that fails its input schema does not move counters that read the input", () => {
    const text = contractText({
      ...required,
      counters:
        "{ a: { of: t, per: session }, b: { of: t, per: input.s }, c: { of: t, per: gate, when: input.n > " +
        "0 }, d: { of: t, per: key, when: platform.present } }",
    });
    assert.deepEqual(
      updates(text).map(({ counter }) => counter.name),
      ["c.a", "c.b", "c.c", "c.d"],
    );
    assert.deepEqual(
      updates(text, { input: {} }).map(({ counter }) => counter.name),
      ["c.a", "c.d"],
    );
  });

  test("without a session a per-session counter counts nothing and reads 0", () => {
    const text = withCounter(
      "{ of: t, per: session }",
      '[{ rule: r, on: t, when: "counters.k > 0", verdict: BLOCK, reason: x }]',
    );
    assert.deepEqual(updates(text, {}, { keyName: "default", sessionId: null }), []);
    const decision = judge(compile(text), { platform: snapshot, counters: { "c.k": "5" } });
    assert.deepEqual([decision.verdict, decision.read], ["ALLOW", [["c.k", "0"]]]);
    assert.equal(judge(compile(text), { platform: snapshot, counters: { "c.k": "5" }, session: "s" }).verdict, "BLOCK");
  });

  test("sessions with the same id under different keys are counted separately", () => {
    const keys = ["a", "b"].map(
      (keyName) => updates(withCounter("{ of: t, per: session }"), {}, { keyName, sessionId: "s" })[0]?.key,
    );
    assert.notEqual(keys[0], keys[1]);
  });

  test("two counters with one definition share a value that each call moves once", () => {
    const rules = '[{ rule: r, on: t, when: "counters.a + counters.b > 5", verdict: BLOCK, reason: x }]';
    const text = contractText({
      ...required,
      counters: "{ a: { of: t, per: gate }, b: { of: [t], per: [gate] } }",
      rules,
    });
    assert.equal(updates(text).length, 1);
    assert.equal(
      updates([text, contractText({ ...required, counters: "{ z: { of: t, per: gate } }" }, "d")]).length,
      1,
    );
    assert.equal(judge(compile(text), { platform: snapshot, counters: { "c.a": "3", "c.b": "3" } }).verdict, "BLOCK");
  });

  test("a counter key over 16384 bytes blocks the call, and the reason names the counter", () => {
    const text = withCounter("{ of: t, per: input.s }");
    for (const s of ["é".repeat(8192), "x".repeat(16_384), "😀".repeat(4096)])
      assert.equal(judge(compile(text), { input: { n: 1, s }, platform: snapshot }).verdict, "ALLOW");
    const decision = judge(compile(text), { input: { n: 1, s: "x".repeat(16_385) }, platform: snapshot });
    assert.deepEqual([decision.verdict, decision.rule, decision.final], ["BLOCK", "c.$counters.k", true]);
    says("key-over-its-bytes", decision.reason);
  });

  test("`counting` decides which verdicts and answers a counter counts", () => {
    const counters =
      "{ a: { of: t, per: gate, counting: attempts }, r: { of: t, per: gate, counting: released }, p: { " +
      "of: t, per: gate, counting: possible }, b: { of: t, per: gate, counting: blocked }, e: { of: t, " +
      "per: gate, counting: escalated } }";
    const prepared = prepare(compile(contractText({ ...required, counters })), request({ platform: snapshot }), caller);
    const counted = verdicts.map((verdict) =>
      verdicts.map((answered) =>
        count(prepared, { verdict, answered })
          .map(({ counter }) => counter.name.slice(2))
          .join(""),
      ),
    );
    assert.deepEqual(counted, [
      ["arp", "ap", "a"],
      ["arpe", "ape", "ae"],
      ["arpb", "apb", "ab"],
    ]);
  });
});

function lookups(definition: string, now: number, platform: unknown = snapshot): readonly Lookup[] {
  const rules = '[{ rule: r, on: t, when: "counters.k > 0", verdict: BLOCK, reason: "{counters.k}" }]';
  return planLookups(prepare(compile(withCounter(definition, rules)), request({ platform }), caller), now).lookups;
}

suite("the counters that a rule reads", () => {
  const at = (moment: string): number => Temporal.Instant.from(moment).epochMilliseconds;
  const now = at("2026-03-29T01:30:00Z");

  test("a rule reads only events after the start of the counter's window", () => {
    const table: readonly (readonly [window: string, after: number])[] = [
      ["", -1],
      ["within: 10m, ", now - 600_000],
      ["within: 7d, ", now - 7 * 86_400_000],
      ["within: hour, timezone: UTC, ", at("2026-03-29T01:00:00Z") - 1],
      ["within: day, timezone: UTC, ", at("2026-03-29T00:00:00Z") - 1],
      ["within: day, timezone: Europe/Berlin, ", at("2026-03-28T23:00:00Z") - 1],
      ["within: week, timezone: UTC, ", at("2026-03-23T00:00:00Z") - 1],
      ["within: week, timezone: UTC, week_starts: sunday, ", at("2026-03-29T00:00:00Z") - 1],
      ["within: month, timezone: America/New_York, ", at("2026-03-01T05:00:00Z") - 1],
      ["within: year, timezone: UTC, ", at("2026-01-01T00:00:00Z") - 1],
    ];
    for (const [window, after] of table)
      assert.deepEqual(
        lookups(`{ of: t, ${window}per: gate }`, now).map((lookup) => lookup.after),
        [after],
        window,
      );
  });

  test("`since` drops events that the snapshot includes, and a future `since` is an error", () => {
    const definition = "{ of: t, per: gate, since: platform.spent, settles_within: 10m, within: 24h }";
    const after = (spent: string): number | undefined =>
      lookups(definition, now, `{"wallet": "w", "spent": ${spent}}`)[0]?.after;
    assert.equal(after(`${now / 1000}`), now - 600_000);
    assert.equal(after(`${now / 1000 - 3600}`), now - 3_600_000 - 600_000);
    assert.equal(after("0"), now - 86_400_000);
    const text = withCounter(definition, '[{ rule: r, on: t, when: "counters.k > 0", verdict: BLOCK, reason: x }]');
    const decision = judge(compile(text), { platform: `{"wallet": "w", "spent": ${now / 1000}.001}`, now });
    assert.equal(decision.rule, "c.r");
    assert.match(decision.reason, /\bc\.k\b.*`since` \(1774747800\.001\).*\bfuture$/);
  });

  test("the gate looks up only counters that a rule reads", () => {
    const rules = '[{ rule: r, on: t, when: "input.n > 1 && counters.k > 0", verdict: BLOCK, reason: x }]';
    const policySet = compile(withCounter("{ of: t, per: gate }", rules));
    const unknown = planLookups(
      prepare(policySet, request({ input: { n: 2, s: "" }, platform: snapshot }), caller),
      now,
    );
    assert.equal(unknown.lookups.length, 1);
    assert.deepEqual(updates(withCounter("{ of: t, per: gate }")).length, 1);
    assert.equal(
      planLookups(prepare(compile(withCounter("{ of: t, per: gate }")), request({ platform: snapshot }), caller), now)
        .lookups.length,
      0,
    );
  });

  test("a rule reads a counter as an exact decimal", () => {
    const text = withCounter(
      "{ of: t, per: gate, sum: platform.spent }",
      '[{ rule: r, on: t, when: "counters.k + 0.1 == 0.3", verdict: BLOCK, reason: "{counters.k}" }]',
    );
    const decision = judge(compile(text), { platform: snapshot, counters: { "c.k": "0.2" } });
    assert.deepEqual([decision.reason, decision.read], ["Svc: 0.2", [["c.k", "0.2"]]]);
  });
});
