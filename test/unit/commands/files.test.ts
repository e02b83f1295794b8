/**
 * Goal: the files that a command line names are found with their roles, in each folder in which the command may run, for
 * words that only a loop or another command knows, and for patterns. Method: texts with the expected paths.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { answerTo, tableOf } from "./kit.ts";

const table = tableOf(`
programs:
  git: { options: [-C enters FOLDER] }
  find: { style: single }
forms:
  - { run: cat, words: reads FILE *, does: reads }
  - { run: tee, words: writes FILE *, does: writes }
  - { run: ls, words: lists TREE *, does: reads, prints: names }
  - { run: cd, options: [-P, -L], words: [-- ?, reads FOLDER], does: reads }
  - { run: grep, needs: [-r], options: [-r, -l, --include INCLUDE], words: [TEXT, reads TREE * or .], does: reads, prints: names with -l }
  - { run: find, options: [-name INCLUDE, -not, -o, -path TEXT, -exec COMMAND], words: lists TREE * or ., does: reads, prints: names }
  - { run: xargs, options: [-0], words: COMMAND, does: runs }
  - { run: "env|command", words: COMMAND, does: runs }
  - { run: sh, needs: [-c], options: [-c], words: COMMAND, does: runs }
  - { run: git log, words: [REF *, -- ?, reads PATHSPEC *], does: reads }
  - { run: git show, words: reads OBJECT, does: reads }
  - { run: git ls-files, words: lists PATHSPEC * or ., does: reads, prints: names }
  - { run: git commit, options: [-m TEXT], does: writes }
  - { run: node, words: [reads FILE, ARGS *], does: runs }
`);

interface Expected {
  readonly verdict?: string;
  readonly reads?: readonly string[];
  readonly writes?: readonly string[];
  readonly lists?: readonly string[];
  readonly trees?: readonly string[];
}

const rows: readonly (readonly [text: string, expected: Expected])[] = [
  ["cat a ./b sub/../c /etc/x", { reads: ["/srv/app/a", "/srv/app/b", "/srv/app/c", "/etc/x"] }],
  ["cat ~/x", { reads: ["~/x"] }],
  ["cat $HOME/x", { reads: ["~/x"] }],
  ["cat '~/x'", { reads: ["/srv/app/\\~/x"] }],
  ["cat < a > b", { reads: ["/srv/app/a"], writes: ["/srv/app/b"] }],
  // folders
  ["cd sub && cat a", { reads: ["/srv/app/sub", "/srv/app/sub/a"] }],
  ["cd sub; cat a", { reads: ["/srv/app/sub", "/srv/app/sub/a", "/srv/app/a"] }],
  ["cd sub || cat a", { reads: ["/srv/app/sub", "/srv/app/a"] }],
  ["(cd sub && cat a) && cat b", { reads: ["/srv/app/sub", "/srv/app/sub/a", "/srv/app/b"] }],
  ["cd sub | cat a", { reads: ["/srv/app/sub", "/srv/app/a"] }],
  ["{ cd sub && cat a; } && cat b", { reads: ["/srv/app/sub", "/srv/app/sub/a", "/srv/app/sub/b"] }],
  ["if cd sub; then cat a; else cat b; fi", { reads: ["/srv/app/sub", "/srv/app/sub/a", "/srv/app/b"] }],
  ["! cd sub && cat a", { reads: ["/srv/app/sub", "/srv/app/a"] }],
  ["cd -P sub && cat a", { reads: ["/srv/app/sub", "/srv/app/sub/a"] }],
  ["cd a && cd ../b && cat c", { reads: ["/srv/app/a", "/srv/app/b", "/srv/app/b/c"] }],
  ["cd sub && sh -c 'cat a'", { reads: ["/srv/app/sub", "/srv/app/sub/a"] }],
  ["git -C sub log -- a", { reads: ["/srv/app/sub", "/srv/app/sub/a"] }],
  ["env -C sub cat a", { verdict: "ESCALATE", reads: ["/srv/app/sub/a"] }],
  ["cd && cat a", { verdict: "ESCALATE", reads: ["~/a"] }],
  ['cd "$X" && cat a', { verdict: "ESCALATE", reads: ["**/a"] }],
  ["command cd sub && git commit -m x", { verdict: "ESCALATE" }],
  ["while cd sub; do cat a; done", { verdict: "ESCALATE", reads: ["**/a", "/srv/app/a"] }],
  ["cd - && cat a", { verdict: "ESCALATE", reads: ["**/a"] }],
  ["command cd sub && cat a", { verdict: "ESCALATE", reads: ["**/a"] }],
  // words that only a loop or another command knows
  ['for f in a b; do cat "$f"; done', { reads: ["/srv/app/a", "/srv/app/b"] }],
  ["for f in a b; do cat $f.txt; done", { reads: ["/srv/app/a.txt", "/srv/app/b.txt"] }],
  ['for f in src/*.ts; do cat "$f"; done', { reads: ["/srv/app/src/*.ts"] }],
  ["for f in src/*.ts; do cat $f; done", { verdict: "ESCALATE" }],
  ['for f in a; do f=/etc/x; cat "$f"; done', { verdict: "ESCALATE" }],
  ['for f in a; do read f; cat "$f"; done', { verdict: "ESCALATE" }],
  ['for f in a; do :; done; cat "$f"', { verdict: "ESCALATE" }],
  ['for f in $X; do cat "$f"; done', { verdict: "ESCALATE" }],
  ["find src -name '*.ts' -exec cat {} +", { reads: ["/srv/app/src/**/*.ts"], lists: ["/srv/app/src"] }],
  ["find src -not -name '*.ts' -exec cat {} +", { trees: ["/srv/app/src"] }],
  ["find src -name a -o -name b -exec cat {} +", { trees: ["/srv/app/src"] }],
  ["find src | xargs cat", { trees: ["/srv/app/src"] }],
  ["grep -rl x src | xargs cat", { trees: ["/srv/app/src"] }],
  ["git ls-files sub | xargs cat", { trees: ["/srv/app/sub"] }],
  ["cat names | xargs cat", { verdict: "ESCALATE" }],
  ["grep -r x src | xargs cat", { verdict: "ESCALATE" }],
  ["find src -name '*' -exec cat {} +", { trees: ["/srv/app/src"] }],
  ["find src -name credentials -exec cat {} +", { trees: ["/srv/app/src"] }],
  ["find src -exec cat {} + -name '*.ts'", { trees: ["/srv/app/src"] }],
  ["find src -name '*.ts' | xargs cat < names", { verdict: "ESCALATE" }],
  ["cd sub && find src | xargs cat", { trees: ["/srv/app/sub/src"] }],
  ["git -C sub ls-files src | xargs cat", { verdict: "ESCALATE" }],
  ["git ls-files | xargs cat", { verdict: "ESCALATE" }],
  // patterns
  ["cat src/*.ts", { reads: ["/srv/app/src/*.ts"] }],
  ["cat ./*", { reads: ["/srv/app"], trees: ["/srv/app"] }],
  ["cat src/**/../../../x", { verdict: "ALLOW", reads: ["/srv/x"] }],
  ["cat *.ts", { verdict: "ESCALATE", reads: ["/srv/app/*.ts"] }],
  ["cat 'a[1].ts'", { reads: ["/srv/app/a\\[1\\].ts"] }],
  ["git log -- '.e*'", { reads: ["/srv/app/.e**"] }],
  ["git log -- 'src/*env'", { reads: ["/srv/app/src/**env"] }],
  ["git log -- ':(glob)**/.e?v'", { verdict: "ESCALATE" }],
  ["git show HEAD:a/b", { reads: ["/srv/app/a/b"] }],
  // folders with everything below
  ["grep -r x", { trees: ["/srv/app"] }],
  ["grep -r x src", { trees: ["/srv/app/src"] }],
  ["grep -r x --include='*.ts' .", { trees: [], reads: ["/srv/app/**/*.ts"] }],
  ["ls -R src", { verdict: "ESCALATE" }],
  ["ls src", { trees: [], lists: ["/srv/app/src"] }],
  // words that no form explains count as read and written
  [
    "odd a --out=b x:c y@d -ee",
    { verdict: "ESCALATE", writes: ["/srv/app/a", "/srv/app/b", "/srv/app/c", "/srv/app/d"] },
  ],
  ["node a.mjs --out=b", { reads: ["/srv/app/a.mjs", "/srv/app/b"], writes: ["/srv/app/b"] }],
  ["cat $X/.ssh/id_rsa", { verdict: "ESCALATE", reads: ["**/.ssh/id_rsa"] }],
  ["cat .ssh/$X", { verdict: "ESCALATE", reads: ["/srv/app/.ssh"] }],
  // the one here-document
  ["git commit -m \"$(cat <<'EOF'\nfix: a $(b) `c`\nEOF\n)\"", { verdict: "ALLOW" }],
  ['git commit -m "$(cat <<EOF\nfix $X\nEOF\n)"', { verdict: "ESCALATE" }],
  ["git commit -m \"x $(cat <<'EOF'\na\nEOF\n)\"", { verdict: "ESCALATE" }],
  ["git commit -m \"$(cat a <<'EOF'\na\nEOF\n)\"", { verdict: "ESCALATE" }],
  ["git commit -m \"$(cat <<'EOF'; cat b\na\nEOF\n)\"", { verdict: "ESCALATE" }],
  ["git commit -m $(cat <<'EOF'\na\nEOF\n)", { verdict: "ESCALATE" }],
  ["cat() { odd; }; git commit -m \"$(cat <<'EOF'\na\nEOF\n)\"", { verdict: "ESCALATE" }],
];

suite("files of a command line", () => {
  for (const [text, { verdict = "ALLOW", ...lists }] of rows)
    test(text.split("\n", 1)[0] ?? text, async () => {
      const answer = await answerTo(text, table);
      assert.equal(answer.verdict, verdict, answer.reason);
      for (const key of ["reads", "writes", "lists", "trees"] as const) {
        const missing = lists[key]?.filter((path) => !answer[key].includes(path)) ?? [];
        assert.deepEqual(missing, [], `${key}: ${answer[key].join(" ")}`);
        if (lists[key]?.length === 0) assert.deepEqual(answer[key], []);
      }
    });
});

/** Texts, and a path that none of their commands names. */
const others: readonly (readonly [text: string, path: string])[] = [
  ["cd sub && cat a", "/srv/app/a"],
  ["cd sub || cat a", "/srv/app/sub/a"],
  ["cd sub | cat a; cat b", "/srv/app/sub/b"],
  ["(cd sub); cat b", "/srv/app/sub/b"],
  ["cd sub & cat b", "/srv/app/sub/b"],
  ["cat $(cd sub) b", "/srv/app/sub/b"],
  ["if cd sub; then cat a; else cat b; fi", "/srv/app/sub/b"],
  ["git -C sub log && cat b", "/srv/app/sub/b"],
];

test("an address of the web names no file outside, and its neighbours do", async () => {
  const outside = async (text: string): Promise<readonly string[]> => {
    const { reads, writes } = await answerTo(text, table);
    return [...new Set([...reads, ...writes])].filter((path) => !path.startsWith("/srv/app"));
  };
  for (const text of [
    "odd -s https://h.example:8080/a/b.json?x=/c#/d /dev/null",
    "odd --url=http://127.0.0.1:9000/metrics",
  ])
    assert.deepEqual(await outside(text), [], text);
  for (const [text, path] of [
    ["odd file:///etc/x", "/etc/x"],
    ["odd https://h.example/a,/etc/x", "/etc/x"],
    ["odd @https://h.example/a@/etc/x", "/etc/x"],
    ["odd https://h.example/a -o/etc/x", "/etc/x"],
    ["odd https://h.example/a /etc/x", "/etc/x"],
    ["odd 'https://h.example/{a,/etc/x}'", "/etc/x"],
    ["odd ssh://h.example/etc/x", "/h.example/etc/x"],
  ] as const)
    assert.ok((await outside(text)).includes(path), `${text}: ${(await outside(text)).join(" ")}`);
});

test("a word is not looked for in a folder in which its command cannot run", async () => {
  for (const [text, path] of others) {
    const { reads } = await answerTo(text, table);
    assert.ok(!reads.includes(path), `${text}: ${reads.join(" ")}`);
  }
});
