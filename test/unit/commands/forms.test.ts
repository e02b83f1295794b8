/**
 * Goal: a form permits exactly what it lists, and a stricter form matches by one sign. Method: a small table, and texts with
 * the answer that a person who reads the table would give. A matcher with a planted fault must change an answer.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { compileContracts } from "../../../packages/readers/src/compile.ts";
import { findWrongExamples } from "../../../packages/readers/src/tables.ts";
import { answerTo, contractOf, problemsOf, tableOf } from "./kit.ts";

const table = tableOf(`
programs:
  git: { options: [--no-pager, -C enters FOLDER] }
  find: { style: single }
  tar: { style: bare }
  say: { style: words }
generated: [dist, "**/node_modules"]
variables: [CI]
forms:
  - { run: cat, options: [-n, -b], words: [-- ?, reads FILE +], does: reads }
  - { run: head, options: [-n | --lines NUMBER, -NUMBER, --color (always | never)], words: reads FILE *, does: reads }
  - { run: grep, options: [-i, -n, -A NUMBER], words: [-- ?, TEXT, reads FILE *], does: reads }
  - { run: grep, needs: [-r], options: [like grep, -r, --include INCLUDE], words: [TEXT, reads TREE * or .], does: reads }
  - { run: find, options: [-name INCLUDE, -type f | d, -not, -exec COMMAND], words: lists TREE * or ., does: reads, prints: names }
  - { run: "xargs|env|timeout|sh", words: COMMAND, does: runs }
  - { run: env, unless: { words: COMMAND }, does: reads, verdict: BLOCK, reason: prints the environment }
  - { run: echo, words: ANY *, does: reads }
  - { run: cd, words: reads FOLDER, does: reads }
  - { run: cp, words: [reads FILE +, writes PATH], does: writes }
  - { run: rm, options: [-f], words: writes PATH +, does: writes }
  - { run: rm, needs: [-r], options: [-r, -f], words: writes GENERATED +, does: writes }
  - { run: rm, marked: [-r, --recursive], unless: { words: writes GENERATED + }, does: destroys, reason: "deletes {words}" }
  - { run: rm, marked: [-r, --recursive], any: ROOT, does: destroys, verdict: BLOCK, reason: "may delete everything" }
  - { run: git log, options: [-n NUMBER, --stat], words: [REF *, -- ?, reads PATHSPEC *], does: reads }
  - { run: git show, words: reads OBJECT, does: reads }
  - { run: git commit, options: [-m TEXT, -a], does: writes }
  - { run: git push, words: [NAME ?, REF *], does: sends, reason: "sends commits to {word.1}" }
  - { run: git push, marked: [-f, --force], does: [sends, destroys], verdict: BLOCK, reason: "\`{option}\` overwrites branches" }
  - { run: git apply, does: writes, writes: unseen, reason: changes files that the patch names }
  - { run: git branch, words: REF, does: writes }
  - { run: npm run, words: [build | test, -- ?, ARGS *], does: runs, refuses: [--outDir] }
  - { run: "pnpm, yarn", options: --filter PACKAGE, refuses: like npm run, words: [TASK | generate, ARGS *], does: runs }
  - { run: put, unless: { words: ANY + }, does: reads, verdict: BLOCK, reason: prints everything }
  - { run: say, options: [-n], words: [PATTERN +], does: reads }
  - { run: curl, words: URL, does: sends, reason: "asks {word.1}" }
  - { run: tar, needs: [-c], options: [-c, -z, -f writes PATH], words: reads TREE +, does: writes }
`);

type Row = readonly [verdict: string, text: string, reason?: string];

const rows: readonly Row[] = [
  // options: one by one, in bundles, with attached values
  ["ALLOW", "cat -n a.txt"],
  ["ALLOW", "cat -nb a.txt"],
  ["ESCALATE", "cat -nx a.txt", "the option `-x` is not listed"],
  ["ESCALATE", "cat --number a.txt", "the option `--number` is not listed"],
  ["ALLOW", "head -n 5 a.txt"],
  ["ALLOW", "head -n5 a.txt"],
  ["ALLOW", "head -5 a.txt"],
  ["ALLOW", "head --lines=5 a.txt"],
  ["ALLOW", "head --lines 5 a.txt"],
  ["ESCALATE", "head -n x a.txt", "the value `x` of `-n` is not a number"],
  ["ESCALATE", "head -n", "the option `-n` has no value"],
  ["ALLOW", "head --color=always a.txt"],
  ["ALLOW", "head --color a.txt"],
  ["ESCALATE", "head --color=odd a.txt", "not one of always, never"],
  ["ESCALATE", "git --no-pager=x log", "the option `--no-pager` is listed without a value"],
  ["ESCALATE", "head a.txt --odd", "the option `--odd` is not listed"],
  ["ALLOW", "cat -- -odd-name"],
  // words in order
  ["ESCALATE", "cat", "a word is missing"],
  ["ALLOW", "grep x a.txt b.txt"],
  ["ALLOW", "cp a b c"],
  ["ESCALATE", "cp a", "a word is missing"],
  ["ALLOW", "git log main -- src"],
  ["ALLOW", "git -C sub log"],
  ["ESCALATE", "git log -C sub", "the option `-C` is not listed"],
  ["ESCALATE", "git odd", "`git odd`: it is not listed"],
  ["ALLOW", "npm run build -- --watch x"],
  ["ESCALATE", "npm run deploy", "`deploy` is not one of build, test"],
  ["ESCALATE", "npm run build --prefix /other", "the option `--prefix` is not listed"],
  ["ALLOW", "tar czf a.tgz src"],
  // kinds
  ["ALLOW", "git show HEAD:src/a.ts"],
  ["ESCALATE", "git show HEAD", "is not a commit of git and a file in it"],
  ["ALLOW", "git branch feature/x"],
  ["ESCALATE", "git branch +x", "is not a branch, tag or commit"],
  ["ESCALATE", "git branch a:b", "is not a branch, tag or commit"],
  ["ESCALATE", "git branch .env", "is not a branch, tag or commit"],
  ["ESCALATE", "git branch src/", "is not a branch, tag or commit"],
  ["ESCALATE", "git push +main", "sends commits to `+main`"],
  ["ESCALATE", "cat ''", "is not"],
  ["ESCALATE", "grep @x a.txt", "is not"],
  ["ALLOW", "pnpm --filter @acme/web test"],
  ["ALLOW", "yarn --filter ./packages/web test"],
  ["ALLOW", "pnpm --filter ...web test"],
  ["ESCALATE", "pnpm --filter ../web test", "is not a package by its name or folder"],
  ["ESCALATE", "pnpm --filter @ test", "is not a package by its name or folder"],
  ["ESCALATE", "pnpm --filter web/.env test", "is not a package by its name or folder"],
  ...["test:unit", "lint-fix", "unit-test", "ci_check", ":app:testDebug", "format:check"].map((task): Row => [
    "ALLOW",
    `pnpm ${task}`,
  ]),
  ...[
    "deploy:test",
    "test:deploy",
    "build-and-push",
    "testDeploy",
    "db:test",
    "check:prod",
    "update-docs",
    "install:check",
  ]
    .concat([
      "contest",
      "builder",
      "te$X",
      "test/../x",
      "-test",
      "a",
      "test,deploy",
      "test:RESET",
      "testAPIDeploy",
      "test:predeploy",
      "tsc-watch",
      "watch",
    ])
    .map((task): Row => ["ESCALATE", `pnpm ${task}`]),
  ["ALLOW", "yarn generate"],
  ["ESCALATE", "yarn deploy", "by its name, such as `test:unit`, or one of generate"],
  ["ESCALATE", "yarn test --import=data:text/javascript,x", "may be code"],
  ["ALLOW", "yarn lint --fix src"],
  ["ESCALATE", "yarn build --out-dir src", "the option `--outDir` is not listed"],
  // stricter forms match openly
  ["ESCALATE", "git push", "sends commits to"],
  ["ESCALATE", "git push origin main", "sends commits to `origin`"],
  ["BLOCK", "git push -f", "`-f` overwrites"],
  ["BLOCK", "git push --for origin", "`--force` overwrites"],
  ["BLOCK", "git push -uf origin", "`-f` overwrites"],
  ["BLOCK", "git push origin --force=x --odd", "`--force` overwrites"],
  ["BLOCK", "git -C sub push -f", "`-f` overwrites"],
  ["ESCALATE", "git apply a.patch", "changes files that the patch names"],
  ["ESCALATE", "curl https://a.example/x", "asks `https://a.example/x`"],
  // removals
  ["ALLOW", "rm a.txt"],
  ["ALLOW", "rm -rf dist packages/a/node_modules"],
  ["ESCALATE", "rm -rf src", "deletes `src`"],
  ["ESCALATE", "rm -rf dist src", "deletes"],
  ["BLOCK", "rm -rf /", "may delete everything"],
  ["BLOCK", "rm -rf ~", "may delete everything"],
  ["BLOCK", "rm -rf /srv/app", "may delete everything"],
  ["BLOCK", "rm -rf /srv", "may delete everything"],
  ["BLOCK", "rm -rf .", "may delete everything"],
  ["BLOCK", "rm -rf ..", "may delete everything"],
  ["BLOCK", "rm -rf *", "may delete everything"],
  ["BLOCK", 'rm -rf "$X"/*', "may delete everything"],
  ["BLOCK", "rm -r --odd $X", "may delete everything"],
  ["BLOCK", "cd src && rm -rf ..", "may delete everything"],
  // words that look like options, braces and numbers
  ["ALLOW", "say -n -----"],
  ["ALLOW", "say '--- x ---' --odd -x @a"],
  ["ESCALATE", "say $X", "known only when it runs"],
  ["ALLOW", "rm {a,b}.txt"],
  ["ALLOW", "rm -rf dist/{a,b}"],
  ["ESCALATE", "rm -rf {dist,src}", "deletes"],
  ["BLOCK", "rm -rf {/,dist}", "may delete everything"],
  ["ESCALATE", "cat {-n,a}.txt", "known only when it runs"],
  ["ESCALATE", "cat {a,{b,c}}.txt", "known only when it runs"],
  ["ESCALATE", "cat {1..3}.txt", "known only when it runs"],
  ["ESCALATE", "head -n {1,2} a.txt", "is not a number"],
  ["ALLOW", 'echo "exit ${PIPESTATUS[0]}" $?'],
  ["ESCALATE", "for a in x; do cat $a{b,c}; done", "known only when it runs"],
  ["ESCALATE", "for a in x; do cat $a[1]; done", "known only when it runs"],
  ["ESCALATE", "cat {,x}~root/a", "known only when it runs"],
  ["ALLOW", 'for a in x; do echo "$a: $?"; done'],
  ["ESCALATE", "echo ${OTHER[0]}", "known only when it runs"],
  ["ESCALATE", "echo $(nproc)", "`nproc`: it is not listed"],
  // an exception may have a word of which only a part is known
  ["BLOCK", "put", "prints everything"],
  ["BLOCK", "put $X", "prints everything"],
  ["ESCALATE", "put A=$X", "is not listed"],
  ["ESCALATE", "echo A=$X", "known only when it runs"],
  // the strictest command of a text decides
  ["ESCALATE", "cat a.txt | odd", "`odd`: it is not listed"],
  ["BLOCK", "cat a.txt; git push; git push -f", "`-f` overwrites"],
  ["BLOCK", "sh -c 'git push -f'", "`-f` overwrites"],
  ["ALLOW", "timeout 5 cat a.txt"],
  ["ESCALATE", "timeout 5 odd", "`odd`: it is not listed"],
  // what nobody lists
  ["ESCALATE", "odd a", "`odd`"],
  ["BLOCK", "odd --x rm -rf /", "may delete everything"],
  ["ESCALATE", "odd rm -rf src", "`odd`"],
  ["ESCALATE", "odd rm", "`odd`"],
  ["ESCALATE", "odd put x", "`odd`"],
  ["BLOCK", "env", "prints the environment"],
  ["BLOCK", "env | grep x", "prints the environment"],
  ["ALLOW", "CI=1 cat a.txt"],
  ["ESCALATE", "ODD=1 cat a.txt", "the variable `ODD` is not listed"],
  ["ESCALATE", "CI=$X cat a.txt", "the value of the variable `CI`"],
  ["ESCALATE", "f() { cat a.txt; }; f", "the text defines the function `f`"],
  ["ESCALATE", "cat a.txt &", "stays in the background"],
  ["ESCALATE", "cat <<< $X", "known only when it runs"],
  ["error", "eval $X", "in doubt"],
];

suite("forms", () => {
  for (const [verdict, text, reason = ""] of rows)
    test(`${text} is ${verdict}`, async () => {
      const answer = await answerTo(text, table);
      assert.equal(answer.verdict, verdict, answer.reason);
      assert.ok(answer.reason.includes(reason), answer.reason);
    });
});

/** Mistakes of authors, and a part of what the compiler says. */
const mistakes: readonly (readonly [forms: string, problem: string])[] = [
  ["{ run: a }", "does not say what it does"],
  ["{ does: reads }", "a form has no `run:`"],
  ["{ run: a, does: odd }", "`odd` is not an effect"],
  ["{ run: a, does: sends }", "needs a reason"],
  ["{ run: a, does: destroys, verdict: ALLOW }", "sends or destroys, so it is not ALLOW"],
  ["{ run: a, does: reads, marked: [-x] }", "is ALLOW, so it has no `marked`"],
  ["{ run: a, does: reads, words: FILE }", "`FILE` needs a role"],
  ["{ run: a, does: reads, words: reads TEXT }", "names no file, so it has no role"],
  ["{ run: a, does: reads, words: reads FILES }", "is not a kind of word"],
  ["{ run: a, does: reads, words: FILE | b }", "is not a kind of word"],
  ["{ run: a, does: reads, words: TASK | NAME }", "is not a kind of word"],
  ["{ run: a, does: reads, words: ANY }", "permits any word"],
  ["{ run: a, does: reads, words: [ARGS *, TEXT] }", "a word follows all words"],
  ["{ run: a, does: reads, words: [TEXT ?, reads FILE *] }", "lets a file pass as a `TEXT`"],
  ["{ run: a, does: reads, options: [-e SED], words: reads FILE * }", "lets a script pass as a file"],
  ["{ run: a, does: reads, needs: [-x] }", "needs `-x`, which is not under `options`"],
  ["{ run: a, does: reads, options: [like b] }", "no form `b` is above this one"],
  ["{ run: a, does: reads, options: [x y z] }", "is not an option"],
  ["{ run: a, does: writes, writes: all }", "the value of `writes` is `unseen`"],
  ["{ run: a, does: reads, patterns: all }", "the value of `patterns` is `any` or `code`"],
  ["{ run: a -x, does: sends, reason: r }", "has an option in `run`"],
  ['{ run: a, does: sends, reason: "sends {word1}" }', "has `{word1}` in its reason"],
  ['{ run: a, does: sends, reason: "sends {words" }', "has `{words` in its reason"],
  ["{ run: sed, does: reads, options: [-i], words: TEXT * }", "permits any code, because `sed` runs its words"],
  ["{ run: gawk, does: reads, words: [NAME, reads FILE *] }", "permits any code, because `gawk` runs its words"],
  ["{ run: jq, does: reads, words: ARGS * }", "permits any code, because `jq` runs its words"],
  ["{ run: sh|bash, does: runs, words: TEXT }", "permits any code, because `bash` runs its words"],
];

/** Slips in the shape of a word, and what the compiler proposes. */
const slips: readonly (readonly [form: string, hint: string])[] = [
  ["{ run: a, does: reads, words: test run }", "write `test | run` for one of these texts, or `test, run`"],
  ["{ run: a, does: reads, options: --all --fast TEXT }", "a comma is missing before `--fast`"],
  ["{ run: a, does: reads, words: [read FILE *] }", "did you mean `reads`?"],
  ["{ run: a, does: reads, words: reads FILES }", "did you mean `FILE`?"],
];

test("the compiler reports each mistake of a form with its reason", () => {
  for (const [form, problem] of mistakes) {
    const found = problemsOf(`forms:\n  - ${form}`);
    assert.ok(
      found.some((each) => each.includes(problem)),
      `${form}: ${found.join("; ")}`,
    );
  }
});

test("the compiler says what an author probably meant", () => {
  for (const [form, hint] of slips) {
    const compiled = compileContracts([{ name: "c.yaml", text: contractOf(`forms:\n  - ${form}`) }]);
    const hints = compiled.ok ? [] : compiled.problem.map((problem) => problem.hint ?? "");
    assert.ok(
      hints.some((each) => each.includes(hint)),
      `${form}: ${hints.join("; ")}`,
    );
  }
});

test("a program is described in one table, so that a pack does not weaken the forms of another", () => {
  const one = "pack: one\nprograms: { rm: { options: [-C TEXT] } }\n";
  const two = "pack: two\nprograms: { find: { style: single }, rm: { style: single } }\n";
  const own = "programs: { find: { style: gnu } }";
  assert.deepEqual(problemsOf("from: one.yaml", { "one.yaml": one }), []);
  assert.deepEqual(problemsOf("from: one.yaml, two.yaml", { "one.yaml": one, "two.yaml": two }), [
    "form: `one` describes the program `rm` already",
  ]);
  const alike = { "one.yaml": one, "alike.yaml": one.replace("-C", "-D") };
  assert.ok(problemsOf("from: one.yaml, alike.yaml", alike).includes("form: `one` describes the program `rm` already"));
  assert.deepEqual(problemsOf(`from: two.yaml\n${own}`, { "two.yaml": two }), [
    "form: `two` describes the program `find` already",
  ]);
});

test("an example must run the program of its form, and have the answer that the form says", async () => {
  const forms = `forms:
  - { run: a|b go, words: one ?, does: reads, examples: [a go, "ls | b go one", c go], counterexamples: [b go two, c stop] }
  - { run: [a stay, b stop], does: reads, examples: [a stay, b stop] }
  - { run: a go, marked: [-f], does: destroys, reason: r, counterexamples: [a go one] }`;
  const found = await findWrongExamples(tableOf(forms));
  assert.deepEqual([...new Set(found.map(({ message }) => message))].toSorted(), [
    "the counterexample `a go one` of `a go -f` is ALLOW, by `a go`",
    "the example `c go` of `a go` does not run `a`",
    "the example `c go` of `a go` is ESCALATE, not ALLOW: `c`: it is not listed",
    "the example `c go` of `b go` does not run `b`",
    "the example `c go` of `b go` is ESCALATE, not ALLOW: `c`: it is not listed",
    "the example `c stop` of `a go` does not run `a`",
    "the example `c stop` of `b go` does not run `b`",
    "the example `ls | b go one` of `a go` is ESCALATE, not ALLOW: `ls`: it is not listed",
    "the example `ls | b go one` of `b go` is ESCALATE, not ALLOW: `ls`: it is not listed",
  ]);
});

test("a form without a mistake has no problem", () => {
  assert.deepEqual(problemsOf("forms:\n  - { run: a, options: [-x], words: reads FILE *, does: reads }"), []);
});
