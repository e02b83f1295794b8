/**
 * Goal: a function on a text from outside has one meaning or fails, so that an uncertain text is a BLOCK. Method: a
 * corpus of hostile and plain texts for each function (spec/vectors/functions), built from reports about other
 * programs. Careless code that people write instead must get many rows wrong. Random texts cause neither a crash nor a
 * hang.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, suite, test } from "node:test";
import fc from "fast-check";
import picomatch from "picomatch";
import { compileExpression, functions } from "../../../../packages/readers/src/ir.ts";
import { readJson, type Json } from "../../../../packages/core/src/wire/mod.ts";
import { control } from "../../../support/controls/control.ts";
import { randomRuns } from "../../../support/random-test.ts";

/** `npm test` runs a part of the random cases. */
const share = Number(process.env["PROPERTY_SHARE"] ?? 1);

interface Row {
  readonly name: string;
  readonly given: Readonly<Record<string, string>>;
  readonly expression: string;
  readonly expected: string;
  readonly why: string;
}

function rowsOf(corpus: string): readonly Row[] {
  const text = readFileSync(new URL(`../../../../spec/vectors/functions/${corpus}.json`, import.meta.url), "utf8");
  return (JSON.parse(text) as { readonly rows: readonly Row[] }).rows;
}

function bound(given: Readonly<Record<string, unknown>>): ReadonlyMap<string, Json> {
  const read = readJson(JSON.stringify(given));
  // JSON text cannot contain an unpaired surrogate, but a function can still receive one.
  return read.ok ? read.value.members : new Map(Object.entries(given) as [string, string][]);
}

/** Returns the exact value, or "error". A compile error is allowed only if the literals cause it. */
function outcome({ expression, given }: Pick<Row, "expression" | "given">): string {
  const compiled = compileExpression(expression, bound(given));
  if (!compiled.ok) {
    const [problem] = compiled.problem;
    assert.ok(["literal", "pattern"].includes(problem?.code ?? ""), `${expression}: ${problem?.message}`);
    return "error";
  }
  const result = compiled.value.evaluate();
  if (result.ok) return result.value.exact;
  assert.doesNotMatch(result.problem, /\bengine\b|\bloaded\b|\bsteps\b|^the pattern "/);
  return "error";
}

async function loadAll(): Promise<void> {
  await Promise.all(functions.map(async ({ load }) => load?.()));
}

test("a call of a function is an error before its parser is loaded", () => {
  for (const expression of ['url("https://a.com").host == ""', 'email("a@b.com").host == ""', '"a".glob("a")']) {
    const compiled = compileExpression(expression);
    const result = compiled.ok ? compiled.value.evaluate() : undefined;
    assert.match(result?.ok === false ? result.problem : "", /is not loaded$/, expression);
  }
});

type Careless = (text: string, row: Row) => string;

/** Code that people write without such a function, and how many rows of the corpus it must get wrong. */
const careless: Readonly<Record<string, { readonly code: Careless; readonly rows: number; readonly wrong: number }>> = {
  url: { rows: 120, wrong: 45, code: (text) => JSON.stringify(new URL(text).hostname) },
  cidr: { rows: 55, wrong: 30, code: (text) => String(!/^(?:10|127|172\.(?:1[6-9]|2\d|3[01])|192\.168)\./.test(text)) },
  path: { rows: 60, wrong: 35, code: (text) => String(text.startsWith("/srv")) },
  glob: { rows: 30, wrong: 8, code: carelessGlob },
  email: {
    rows: 55,
    wrong: 20,
    code: (text) => JSON.stringify(/[^\s@]+@([^\s@]+\.[^\s@]+)/.exec(text)?.[1]?.toLowerCase()),
  },
  similar: {
    rows: 30,
    wrong: 15,
    code: (text) => String(text.toLowerCase() === "paypal.com" && text !== "paypal.com"),
  },
  patch: {
    rows: 60,
    wrong: 25,
    code: (text) =>
      spelled([...text.matchAll(/^\s*\*\*\* (?:Add|Update|Delete) File: (.*)$/gm)].map(([, name]) => name)),
  },
  calendar: { rows: 20, wrong: 12, code: (text) => String(new Date(text).getUTCHours()) },
};

function spelled(names: readonly (string | undefined)[]): string {
  return `[${names.map((name) => JSON.stringify(name)).join(", ")}]`;
}

/** picomatch alone does not finish on the longest texts. */
function carelessGlob(text: string, { expression }: Row): string {
  if (text.length > 100) return "it hangs";
  return String(picomatch(/glob\("(.*)"\)/.exec(expression)?.[1] ?? "")(text));
}

suite("the corpus of each function", () => {
  before(loadAll);
  for (const [corpus, { code, rows: least, wrong }] of Object.entries(careless)) {
    const rows = rowsOf(corpus);
    test(`every row of the ${corpus} corpus has the expected result`, () => {
      assert.ok(rows.length >= least, `${rows.length} rows`);
      for (const row of rows) assert.equal(outcome(row), row.expected, `${row.name} (${row.why})`);
    });

    control(`positive control: careless code gets at least ${wrong} rows of the ${corpus} corpus wrong`, () => {
      const missed = rows.filter((row) => attempt(() => code(row.given["text"] ?? "", row)) !== row.expected);
      assert.ok(missed.length >= wrong, `${missed.length} wrong`);
    });
  }
});

function attempt(run: () => string): string {
  try {
    return run();
  } catch {
    return "error";
  }
}

const literals: readonly (readonly [expression: string, code: string])[] = [
  ['t.glob("a**")', "pattern"],
  ['t.glob("**a/b")', "pattern"],
  ['t.glob("a/***/b")', "pattern"],
  ['t.glob("[a]")', "pattern"],
  ['t.glob("!a")', "pattern"],
  ['t.glob("+(a|aa)")', "pattern"],
  ['t.glob("@(a)")', "pattern"],
  ['t.glob("a/")', "pattern"],
  ['t.glob("")', "pattern"],
  ['t.glob("../a")', "pattern"],
  ['t.glob("./a")', "pattern"],
  ['t.glob("a//b")', "pattern"],
  ['t.glob("a\\\\b")', "pattern"],
  ['t.glob("{a")', "pattern"],
  ['t.glob("a}")', "pattern"],
  ['t.glob("{a}")', "pattern"],
  ['t.glob("{a,{b,c}}")', "pattern"],
  ['t.glob("{a/b,c}")', "pattern"],
  ['t.glob("{**,c}")', "pattern"],
  ['t.glob("{1..9}")', "pattern"],
  ['t.glob("{1..9,a}")', "pattern"],
  ['t.glob("a,b")', "pattern"],
  [`t.glob("${"a".repeat(257)}")`, "pattern"],
  ["t.glob(t)", "literal"],
  ['t.cidr("10.0.0.0")', "literal"],
  ['t.cidr("10.0.0/8")', "literal"],
  ['t.cidr("010.0.0.0/8")', "literal"],
  ['t.cidr("::ffff:10.0.0.0/104")', "literal"],
  ['t.under("/srv/")', "literal"],
  ['t.under("/srv/../a")', "literal"],
  ['t.underDomain(".example.com")', "literal"],
  ['t.underDomain("*.example.com")', "literal"],
  ['t.underDomain("example.com.")', "literal"],
  ['day(timestamp(0), "Mars/Olympus")', "literal"],
  ['hour(timestamp(0), "+01:00")', "literal"],
  ["url(t).hots", "unknown-member"],
  ["url(t).port == '80'", "type"],
  ["similar(t, t)", "arguments"],
];

suite("calls of functions in a contract", () => {
  before(loadAll);

  test("the compiler reports invalid patterns, literals, members, types and arguments in calls of functions", () => {
    for (const [expression, code] of literals) {
      const compiled = compileExpression(expression, bound({ t: "a" }));
      assert.equal(compiled.ok ? "compiled" : compiled.problem[0]?.code, code, expression);
    }
  });

  control("positive control: the correct counterparts of these calls compile and evaluate to true or false", () => {
    for (const expression of [
      't.glob("{a,b}/**")',
      'host.underDomain("Example.com")',
      '"10.0.0.1".underDomain("example.com")',
      '"::1".underDomain("example.com")',
      '["10.0.0.0/8", "fd00::/8"].exists(n, ip.cidr(n))',
      '"src/a".under("src")',
    ])
      assert.match(
        outcome({ expression, given: { t: "a/b", host: "x.EXAMPLE.com", ip: "fd00::1" } }),
        /^(?:true|false)$/,
      );
  });

  test("a variable can have the name of a function", () => {
    const given = { url: "https://a.example.com/x", path: "a/b", day: "monday", ip: "10.0.0.1", email: "a@b.com" };
    const expression =
      'url(url).host == "a.example.com" && path(path).name == "b" && day == "monday" && ip(ip).version == 4';
    assert.equal(outcome({ expression, given }), "true");
    assert.equal(outcome({ expression: "email(email).local == 'a' && [1].exists(hour, hour == 1)", given }), "true");
  });

  test("underDomain compares hosts label by label and fails for malformed hosts", () => {
    const domain = (host: string): string =>
      outcome({ expression: 'host.underDomain("example.com")', given: { host } });
    assert.deepEqual(
      ["example.com", "a.b.example.com", "A.EXAMPLE.COM", "evil-example.com", "example.com.evil.test", "com"].map(
        domain,
      ),
      ["true", "true", "true", "false", "false", "false"],
    );
    assert.deepEqual(
      ["", "example.com.", ".example.com", "a_b.example.com", "ex%61mple.com", "0x7f.1", "127.1", "a b"].map(domain),
      Array.from({ length: 8 }, () => "error"),
    );
  });
});

const textCalls = [
  "url(t).host",
  "ip(t).text",
  't.cidr("10.0.0.0/8")',
  '"10.0.0.1".cidr(t)',
  "path(t).segments",
  "patch(t).files",
  't.under("/a")',
  '"/a".under(t)',
  't.underDomain("example.com")',
  '"a.example.com".underDomain(t)',
  "email(t).domain",
  't.glob("{a,b}*/**/?")',
  'similar(t, ["paypal.com", "a"])',
  'similar("paypa1", [t, "paypal"])',
  "hour(timestamp(0), t)",
];

suite("the functions on random texts", () => {
  before(loadAll);
  const known = Object.keys(careless).flatMap((corpus) => rowsOf(corpus).map(({ given }) => given["text"] ?? ""));
  const changed = fc
    .tuple(fc.constantFrom(...known), fc.nat(), fc.string({ unit: "binary", maxLength: 4 }), fc.nat(3))
    .map(([text, at, part, gone]) => {
      const position = at % (text.length + 1);
      return text.slice(0, position) + part + text.slice(position + gone);
    });
  const anyText = fc.oneof(
    changed,
    fc.string({ unit: "binary" }),
    fc.string({ unit: "grapheme" }),
    fc.webUrl(),
    fc.emailAddress(),
  );

  test("every function returns a value or an evaluation error for any text", (t) => {
    fc.assert(
      fc.property(anyText, (text) => textCalls.forEach((expression) => outcome({ expression, given: { t: text } }))),
      randomRuns(t, 1500 * share),
    );
  });

  test("url() agrees with Node's URL parser on every URL it accepts, also after normalization", (t) => {
    fc.assert(
      fc.property(anyText, (text) => {
        const host = outcome({ expression: "url(t).host", given: { t: text } });
        if (host === "error") return;
        const parsed = new URL(text);
        assert.equal(JSON.parse(host), parsed.hostname.replace(/^\[|\]$/g, ""));
        assert.equal(parsed.username + parsed.password, "");
        assert.equal(
          outcome({ expression: "url(t).path", given: { t: parsed.href } }),
          JSON.stringify(parsed.pathname),
        );
      }),
      randomRuns(t, 1500 * share),
    );
  });

  test("a path under a folder starts with the folder and a slash", (t) => {
    const segment = fc.constantFrom("a", "b", "ab", "a.b", "..", ".", "", "a b", "%2e", "~", "\u00e9", "e\u0301");
    const somePath = fc.array(segment, { maxLength: 4 }).map((segments) => segments.join("/"));
    fc.assert(
      fc.property(somePath, somePath, (path, folder) => {
        const under = outcome({ expression: "p.under(f)", given: { p: path, f: folder } });
        if (under === "error") return;
        assert.equal(under, String(folder === "/" || `${path}/`.startsWith(`${folder}/`)));
        assert.ok(!path.split("/").includes(".."));
      }),
      randomRuns(t),
    );
  });
});

suite("glob() compared with picomatch", () => {
  before(loadAll);
  const part = fc.constantFrom("a", "b", ".a", "*", "*", "?", "a*", "*.b", "{a,b}", "{a,*b}c", "a?b*");
  const segment = fc.oneof(part, fc.constant("**"));
  const pattern = fc
    .tuple(fc.constantFrom("", "/"), fc.array(segment, { minLength: 1, maxLength: 4 }))
    .map(([root, segments]) => root + segments.join("/"));
  const name = fc.string({ unit: fc.constantFrom("a", "b", ".", "c"), minLength: 1, maxLength: 4 });
  const path = fc
    .tuple(fc.constantFrom("", "/"), fc.array(name, { minLength: 1, maxLength: 4 }))
    .map(([root, names]) => root + names.join("/"));

  const globbed = (glob: string, text: string): string =>
    outcome({ expression: `t.glob(${JSON.stringify(glob)})`, given: { t: text } });

  test("glob() and picomatch agree on every path that glob() accepts", (t) => {
    fc.assert(
      fc.property(pattern, path, (glob, text) => {
        const ours = globbed(glob, text);
        if (ours === "error") return;
        // picomatch lets `*` match the empty text before the first slash; glob() does not.
        const skips = text.startsWith("/") && !/^\/|^\*\*/.test(glob);
        assert.equal(ours, String(!skips && picomatch(glob, { dot: true })(text)), `${glob} on ${text}`);
      }),
      randomRuns(t, 4000 * share),
    );
  });

  test("more than one in twenty of the random paths match their pattern", () => {
    const pairs = fc.sample(fc.tuple(pattern, path), { seed: 1, numRuns: 1000 });
    const matched = pairs.filter(([glob, text]) => globbed(glob, text) === "true").length;
    assert.ok(matched > 50, `${matched} matched`);
  });

  test("each plain character in a pattern matches only itself", () => {
    for (const character of "aZ9 ._@+=#&;~-é") {
      const given = { t: `x${character}y`, other: "x|y" };
      assert.equal(outcome({ expression: `t.glob("x${character}y")`, given }), "true", character);
      assert.equal(outcome({ expression: `other.glob("x${character}y")`, given }), "false", character);
    }
  });
});

suite("similar() compared with the full table of edit distances", () => {
  before(loadAll);
  const letters = fc.constantFrom("a", "b", "x");
  const word = fc.string({ unit: letters, minLength: 1, maxLength: 12 });
  /** A word, and another one that is a few edits away or not similar at all. */
  const pair = fc.oneof(
    fc.tuple(word, word),
    fc.tuple(word, fc.nat(12), word, fc.nat(3)).map(([text, at, part, gone]) => {
      return [text, text.slice(0, at) + part.slice(0, 3) + text.slice(at + gone)] as const;
    }),
  );

  test("similar() finds exactly the words within the allowed edit distance", (t) => {
    fc.assert(
      fc.property(pair, ([text, listed]) => {
        const shorter = Math.min(text.length, listed.length);
        const most = shorter < 4 ? 0 : shorter < 8 ? 1 : 2;
        const expected = text !== listed && slips(text, listed) <= most;
        assert.equal(outcome({ expression: "similar(t, [l])", given: { t: text, l: listed } }), String(expected));
      }),
      randomRuns(t, 2000 * share),
    );
  });

  test("a long list costs evaluation steps, and a list that is too long is an error", () => {
    const ask = (items: number, letter: string): string => {
      const list = Array.from({ length: items }, (_, at) => `${letter.repeat(240)}${at}`);
      const compiled = compileExpression("similar(t, list)", bound({ t: "m".repeat(240), list }));
      const result = compiled.ok ? compiled.value.evaluate() : undefined;
      return result?.ok === true ? result.value.exact : String(result?.ok === false && result.problem);
    };
    assert.equal(ask(4000, "n"), "false");
    assert.match(ask(10_000, "n"), /steps/);
    assert.match(ask(4000, "\uFDFA"), /steps/, "a character that unfolds to eighteen");
  });
});

/** Computes the optimal string alignment distance with the full table. */
function slips(a: string, b: string): number {
  const table = Array.from({ length: a.length + 1 }, (_, row) =>
    Array.from({ length: b.length + 1 }, (__, at) => row || at),
  );
  const cell = (row: number, at: number): number => table[row]?.[at] ?? 0;
  for (let row = 1; row <= a.length; row += 1) {
    for (let at = 1; at <= b.length; at += 1) {
      const same = a[row - 1] === b[at - 1];
      const swapped = row > 1 && at > 1 && a[row - 1] === b[at - 2] && a[row - 2] === b[at - 1];
      const ways = [cell(row - 1, at) + 1, cell(row, at - 1) + 1, cell(row - 1, at - 1) + (same ? 0 : 1)];
      (table[row] ?? [])[at] = Math.min(...ways, swapped ? cell(row - 2, at - 2) + 1 : Infinity);
    }
  }
  return cell(a.length, b.length);
}
