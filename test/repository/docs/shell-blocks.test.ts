/**
 * Goal: a reader can paste each block of shell commands in the documents. Method: `sh -n` reads every block. A parser
 * finds the first word of each command, which must be in the list below, so a line that starts in the middle of a command
 * is found. No comment has a command in it: an editor that wraps text joins lines, and then the comment hides the rest.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { forEachChild, parse, type SyntaxNode } from "unbash";
import { control } from "../../support/controls/control.ts";
import { fencedBlocks, hasProgram } from "../../support/page-commands.ts";
import { temporaryFolder } from "../../support/gate.ts";
import { root, trackedPaths } from "../../support/tracked.ts";

const shells = ["sh", "bash", "shell", "console", "zsh"];

/** Programs whose name is not an English word. In a comment, one with an argument is a command. */
const programs = wordsOf(
  "npm npx node svc-gate curl docker kubectl helm git python3 pip mkdir openssl sudo systemctl ssh printf echo cp sed grep",
  "codex gemini copilot jq od umask sha256sum litellm/bin/pip /opt/svc-gate/node_modules/.bin/svc-gate",
);
/** Other first words of commands. */
const others = wordsOf("cat cd continue cut head install kill read tail test tr");

function wordsOf(...lines: readonly string[]): ReadonlySet<string> {
  return new Set(lines.flatMap((line) => line.split(" ")));
}

function nodesOf(script: string): readonly SyntaxNode[] {
  const nodes: SyntaxNode[] = [];
  const visit = (node: SyntaxNode): void => {
    nodes.push(node);
    forEachChild(node, visit);
  };
  visit(parse(script));
  return nodes;
}

/** Returns the first words of all commands, also of those in `$(...)`. */
function firstWords(script: string): readonly string[] {
  return nodesOf(script).flatMap((node) => (node.type === "Command" && node.name ? [node.name.value] : []));
}

function commentsOf(script: string): readonly string[] {
  const taken = nodesOf(script).filter(
    ({ type }) => type === "Word" || type === "Assignment" || type === "HereDocBody",
  );
  const isInWord = (index: number): boolean => taken.some(({ pos, end }) => pos <= index && index < end);
  const marks = Array.from(script.matchAll(/(?<=^|[\s;&|()])#/gm), ({ index }) => index);
  const comments: string[] = [];
  let end = 0;
  for (const index of marks) {
    if (index < end || isInWord(index)) continue;
    end = (script.indexOf("\n", index) + script.length + 1) % (script.length + 1);
    comments.push(script.slice(index, end));
  }
  return comments;
}

/** Finds a program's name with an argument, such as `svc-gate keys`. */
const hidden = new RegExp(
  String.raw`(?<=^|[\s(;&|])(?:${[...programs].map((each) => each.replaceAll(".", String.raw`\.`)).join("|")}) +[\w./~<"'$-]`,
);

/** Returns one line for each fault of a block. */
function faultsOf(script: string): readonly string[] {
  const strange = firstWords(script).filter((word) => !programs.has(word) && !others.has(word));
  return [
    ...strange.map(
      (word) => `\`${word}\` is not a program of the list: does the line start in the middle of a command?`,
    ),
    ...commentsOf(script).flatMap((comment) => [
      ...(hidden.test(comment) ? [`the comment has a command in it: ${comment}`] : []),
      // An interactive zsh does not know comments: there, a quotation mark waits for its end.
      ...(/["'`]/.test(comment) ? [`the comment has a quotation mark: ${comment}`] : []),
    ]),
  ];
}

function syntaxFault(script: string): string {
  const { status, stderr } = spawnSync("sh", ["-n"], { input: script, encoding: "utf8" });
  return status === 0 ? "" : `sh -n: ${stderr.trim()}`;
}

/** Commands in a block without a language, which no check would read; a line that starts with `$` shows a session. */
function unmarked(text: string): readonly string[] {
  const command = new RegExp(String.raw`^(?:\w+=\S+ )*\(?(?:${[...programs].join("|")}) (?!listens )\S`, "gm");
  return text.match(command) ?? [];
}

const blocks = trackedPaths()
  .filter((path) => path.endsWith(".md"))
  .flatMap((path) => fencedBlocks(readFileSync(join(root, path), "utf8")).map((block) => ({ path, ...block })));
const scripts = blocks.filter(({ kind }) => shells.includes(kind));

/** The block of docs/hosts/codex.md that an editor had joined. */
const joined = `svc-gate keys create codex --kind host # on the gate's machine mkdir -p ~/.config/svc-gate && (umask 077 && cat >
~/.config/svc-gate/codex.key) # paste the key, Enter, Ctrl-D svc-gate hook install --agent codex --url https://gate.example # shows the
difference, and asks codex features disable unified_exec_tty # the model cannot type into running commands svc-gate doctor --agent codex #
tests that a blocked call does not run codex # open /hooks, and trust the two hooks of svc-gate
`;

suite("the blocks of shell commands in the documents", () => {
  test(
    "each block has the syntax of a POSIX shell",
    { skip: hasProgram("sh") ? false : "this machine has no sh" },
    (t) => {
      const faults = scripts.flatMap(({ path, line, text }) => {
        const fault = syntaxFault(text);
        return fault === "" ? [] : [`${path}:${line}: ${fault}`];
      });
      assert.deepEqual(faults, []);
      t.diagnostic(`${scripts.length} blocks`);
      assert.ok(scripts.length > 100, "the reader finds the blocks");
      for (const broken of ["npm test |\n", "git clone <this repository> && cd svc-gate\n", joined])
        assert.notEqual(syntaxFault(broken), "", `positive control: ${broken}`);
    },
  );

  test("each command starts with a known program, and no comment hides a command", () => {
    assert.deepEqual(
      scripts.flatMap(({ path, line, text }) => faultsOf(text).map((fault) => `${path}:${line}: ${fault}`)),
      [],
    );
  });

  test("a block of commands is marked as `sh`", () => {
    const plain = blocks.filter(({ kind }) => kind === "" || kind === "text");
    const found = plain.flatMap(({ path, line, text }) =>
      unmarked(text).map((command) => `${path}:${line}: ${command}`),
    );
    assert.deepEqual(found, []);
    assert.equal(unmarked("SVC_PORT=1 svc-gate serve\n(umask 077; cat)\nsvc-gate stop --list\n$ npm test\n").length, 3);
  });

  control("positive control: joined lines are found, with and without an error of syntax", () => {
    assert.equal(faultsOf(joined).filter((fault) => fault.includes("has a command in it")).length, 3);
    const table: readonly (readonly [string, number])[] = [
      ["svc-gate keys list # all keys svc-gate keys create a\n", 1],
      ["tests that a call does not run\n", 1],
      ["curl -s url |\n  difference, and\n", 1],
      ["npm start # the gate's port\n", 1],
      ["echo 'a # svc-gate keys' \"$(cat x)\" b#c # once: needs Go, npm, and Python; then look\n", 0],
      ["cat <<X\n# svc-gate keys list\nX\n(umask 077 && cat > ~/a) # paste the key\n", 0],
    ];
    for (const [script, count] of table) assert.equal(faultsOf(script).length, count, script);
  });

  test("the formatter does not join the lines of a block", (t) => {
    const folder = temporaryFolder(t);
    const page = `# Page\n\n\`\`\`sh\n${"npm test # a comment that is long enough to be wrapped by an editor\n".repeat(3)}\`\`\`\n`;
    mkdirSync(join(folder, "docs"));
    writeFileSync(join(folder, "docs", "page.md"), page);
    writeFileSync(join(folder, ".oxfmtrc.json"), readFileSync(join(root, ".oxfmtrc.json")));
    const args = [join(root, "node_modules", "oxfmt", "bin", "oxfmt"), "."];
    spawnSync(process.execPath, args, { cwd: folder });
    assert.equal(readFileSync(join(folder, "docs", "page.md"), "utf8"), page);
  });
});
