/**
 * Goal: documents do not grow, and sources grow only for a reason. Method: count the words of all documents, and the
 * lines of each package's sources. ratchets.json has the maximum of each, in whole hundreds. A commit that raises one
 * says why, in a line of its message: `Grows NAME: REASON`. UPDATE_GOLDEN=1 only lowers a maximum.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { control } from "../support/controls/control.ts";
import { commitsAfter, fileAt } from "../support/history.ts";
import { environment, SmallRepository } from "../support/small-repository.ts";
import { root, trackedPaths } from "../support/tracked.ts";

type Counts = Readonly<Record<string, number>>;
type SourceText = { readonly path: string; readonly text: string };

const file = "test/repository/ratchets.json";
const step = 100;
const documents = "documents";
/** The changelog and the decisions are records: they only grow. */
const document = /^(?!CHANGELOG\.md$|docs\/decisions\/).*\.md$/;
/** Conformance folders contain tests. */
const source =
  /^(packages\/[^/]+(?=\/src\/)|(?:clients|adapters)(?!\/conformance\/))(?!.*\/generated\/).*\.(?:m?ts|mjs|py|css)$/;

/** Returns what a file belongs to: the documents, or its package. */
function ownerOf(path: string): string | undefined {
  return document.test(path) ? documents : source.exec(path)?.[1];
}

function count(files: readonly SourceText[]): Counts {
  const counts: Record<string, number> = {};
  for (const { path, text } of files) {
    const name = ownerOf(path);
    if (name === undefined) continue;
    counts[name] = (counts[name] ?? 0) + (name === documents ? wordsOf(text) : text.split("\n").length - 1);
  }
  return counts;
}

/** Blocks and generated parts do not count, because their length follows from a contract or an output. */
function wordsOf(markdown: string): number {
  const prose = markdown
    .replaceAll(/^(`{3,}|~{3,})[\s\S]*?^\1/gm, "")
    .replaceAll(/^<!-- (\w+): generated [\s\S]*?^<!-- \/\1 -->/gm, "");
  return prose.match(/\S+/g)?.length ?? 0;
}

function excesses(counts: Counts, maxima: Counts): readonly string[] {
  const over = Object.entries(counts)
    .filter(([name, counted]) => counted > (maxima[name] ?? 0))
    .map(([name, counted]) => {
      const unit = name === documents ? "words" : "lines";
      const way = `remove some, or raise ${file} in a commit with a line \`Grows ${name}: REASON\``;
      return `${name}: ${counted} ${unit}, over ${maxima[name] ?? 0}: ${way}`;
    });
  const stale = Object.keys(maxima).filter((name) => !(name in counts));
  return [...over, ...stale.map((name) => `${name} does not exist: remove it from ${file}`)];
}

function lowered(counts: Counts, maxima: Counts): Counts {
  const least = (name: string, max: number): number => Math.min(max, Math.ceil((counts[name] ?? 0) / step) * step);
  return Object.fromEntries(
    Object.entries(maxima)
      .filter(([name]) => name in counts)
      .map(([name, max]) => [name, least(name, max)]),
  );
}

/** Returns a line for each maximum that a commit raised without a reason, or the reason if the history is unknown. */
function unexplained(folder: string, env = process.env): readonly string[] | string {
  const commits = commitsAfter(folder, file, { changing: file, environment: env });
  if (typeof commits === "string") return commits;
  return commits.flatMap(({ hash, subject, body, parents }) => {
    const before = parents.map((parent) => parsed(fileAt(folder, parent, file, env)));
    const raised = Object.entries(parsed(fileAt(folder, hash, file, env))).filter(([name, max]) =>
      before.every((maxima) => max > (maxima[name] ?? 0)),
    );
    const lines = body.split("\n").map((line) => line.trim());
    const explains = (name: string): boolean => lines.some((line) => line.startsWith(`Grows ${name}: `));
    const silent = raised.filter(([name]) => !explains(name));
    return silent.map(
      ([name]) =>
        `${hash.slice(0, 10)} "${subject}" raises ${name}: add a line \`Grows ${name}: REASON\` to its message`,
    );
  });
}

function parsed(text = "{}"): Counts {
  return JSON.parse(text) as Counts;
}

suite("the size of documents and sources", () => {
  const paths = trackedPaths().filter((path) => ownerOf(path) !== undefined);
  const counts = count(paths.map((path) => ({ path, text: readFileSync(join(root, path), "utf8") })));
  const silent = unexplained(root);
  const unknown = typeof silent === "string" && silent;

  test("documents and sources are not over their maximum", (t) => {
    const kept = parsed(readFileSync(join(root, file), "utf8"));
    const maxima = process.env["UPDATE_GOLDEN"] === "1" ? lowered(counts, kept) : kept;
    for (const [name, counted] of Object.entries(counts)) t.diagnostic(`${name}: ${counted} of ${maxima[name]}`);
    if (maxima !== kept) writeFileSync(join(root, file), `${JSON.stringify(maxima, null, 2)}\n`);
    assert.deepEqual(excesses(counts, maxima), []);
  });

  test("every commit that raises a maximum says why", { skip: unknown }, () => assert.deepEqual(silent, []));

  test("the words of prose and the lines of sources are counted, and nothing else", () => {
    const files = [
      { path: "README.md", text: "# two words\n\n```sh\nnot these\n```\n\nand two\n" },
      { path: "spec/a.md", text: "<!-- a: generated from b -->\nnot these\n<!-- /a -->\n" },
      { path: "CHANGELOG.md", text: "not these\n" },
      { path: "docs/decisions/0001-a.md", text: "not these\n" },
      { path: "docs/decisions/archive/0002-b.md", text: "not these\n" },
      { path: "packages/a/src/b/c.ts", text: "1\n2\n" },
      { path: "packages/a/src/generated/c.ts", text: "1\n2\n" },
      { path: "packages/a/package.json", text: "1\n2\n" },
      { path: "clients/python/a.py", text: "1\n2\n3\n" },
      { path: "clients/conformance/a.ts", text: "1\n2\n3\n" },
      { path: "adapters/a.d.mts", text: "1\n" },
      { path: "adapters/conformance/a.ts", text: "1\n" },
      { path: "test/a.ts", text: "1\n" },
    ];
    assert.deepEqual(count(files), { documents: 5, "packages/a": 2, clients: 3, adapters: 1 });
  });

  control("positive control: an excess, a package without a maximum and a removed package are noticed", () => {
    const maxima = { documents: 100, clients: 100, gone: 100 };
    assert.deepEqual(excesses({ documents: 101, clients: 100, "packages/new": 1 }, maxima), [
      `documents: 101 words, over 100: remove some, or raise ${file} in a commit with a line \`Grows documents: REASON\``,
      `packages/new: 1 lines, over 0: remove some, or raise ${file} in a commit with a line \`Grows packages/new: REASON\``,
      `gone does not exist: remove it from ${file}`,
    ]);
  });

  test("a maximum is lowered to whole hundreds, and never raised or added", () => {
    const maxima = { documents: 1000, clients: 1000, adapters: 1000, gone: 1000 };
    assert.deepEqual(lowered({ documents: 801, clients: 1500, adapters: 800, new: 5 }, maxima), {
      documents: 900,
      clients: 1000,
      adapters: 800,
    });
  });

  control("positive control: each commit that raises a maximum without a reason is found, also a merge", (t) => {
    const repository = new SmallRepository(t);
    const change = (message: string, maxima: Counts): void => repository.commit(message, file, JSON.stringify(maxima));
    change("first", { clients: 200, adapters: 100 });
    assert.deepEqual(unexplained(repository.folder, environment), []);
    change("lower", { clients: 100, adapters: 100 });
    change("raise\n\nGrows clients: a second client", { clients: 200, adapters: 100 });
    repository.branch("side", "main");
    change("raise on the side\n\nGrows adapters: one more", { clients: 200, adapters: 200 });
    repository.git("switch", "--quiet", "main");
    repository.commit("beside");
    repository.merge("merge", "side");
    assert.deepEqual(unexplained(repository.folder, environment), []);

    change("raise in silence", { clients: 300, adapters: 200 });
    change("raise another\n\nGrows clients: not this", { clients: 300, adapters: 300 });
    change("give no reason\n\nGrows clients: ", { clients: 400, adapters: 300 });
    change("add in silence", { clients: 400, adapters: 300, more: 100 });
    repository.branch("late", "main");
    repository.commit("late");
    repository.git("switch", "--quiet", "main");
    repository.git("merge", "--quiet", "--no-ff", "--no-commit", "late");
    change("raise in a merge", { clients: 500, adapters: 300, more: 100 });
    const found = unexplained(repository.folder, environment);
    assert.ok(typeof found !== "string");
    assert.deepEqual(
      found.map((line) => line.replace(/^\w+ /, "").replace(/: add .*/, "")),
      [
        '"raise in a merge" raises clients',
        '"add in silence" raises more',
        '"give no reason" raises clients',
        '"raise another" raises adapters',
        '"raise in silence" raises clients',
      ],
    );
  });

  test("the check of commits is skipped with its reason where the history is unknown", (t) => {
    assert.equal(unexplained(new SmallRepository(t).folder, environment), `${file} is not committed yet`);
  });
});
