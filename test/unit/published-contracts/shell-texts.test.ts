/**
 * Goal: a ready contract judges a command by what the reader found in it, and never by the look of its text. Method:
 * the conditions of its rules are searched for the text that `commands()` reads. Unknown words and moves to
 * another folder are put into commands, alone and beside quoted text that looks like a harmless command. Positive
 * controls: a condition on the text is found, and the same commands with plain words are allowed.
 */
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { before, suite, test } from "node:test";
import { parse } from "yaml";
import { loadFunctions, type PolicySet } from "../../../packages/core/src/contract/mod.ts";
import { compile, judge, readReady } from "../../support/contract-kit.ts";
import { control } from "../../support/controls/control.ts";

const folder = new URL("../../../contracts/", import.meta.url);
const workspace = "/srv/app";

/** The shell's tool in each contract, and the member with the text. */
const tools: Readonly<Record<string, string>> = {
  shell: "shell.run",
  "hosts/claude-code": "Bash",
  "hosts/codex": "Bash",
  "hosts/gemini-cli": "run_shell_command",
  "hosts/copilot-cli": "bash",
  "hosts/opencode": "bash",
};

interface Contract {
  readonly let?: Readonly<Record<string, string>>;
  readonly rules: readonly {
    readonly rule: string;
    readonly when: string;
    readonly let?: Readonly<Record<string, string>>;
  }[];
}

/** Returns the rules that look at a text that `commands()` reads, and not at what it found there. */
function rulesByText(text: string): readonly string[] {
  const contract = parse(text) as Contract;
  return contract.rules
    .filter(({ when, let: own = {} }) => {
      const lets = { ...contract.let, ...own };
      const read = Object.values(lets).flatMap((value) =>
        Array.from(value.matchAll(/commands\((input\.\w+),/g), ([, member]) => member),
      );
      const whole = expanded(when, lets).replaceAll(/commands\(input\.\w+, [\w.]+\)|patch\(input\.\w+\)/g, "");
      return read.some((member) => member !== undefined && new RegExp(`${member.replace(".", "[.]")}\\b`).test(whole));
    })
    .map(({ rule }) => rule);
}

/** Puts the conditions of the names in `let` instead of these names. */
function expanded(when: string, lets: Readonly<Record<string, string>>): string {
  const names = Object.keys(lets).filter((name) => new RegExp(`(?<![.\\w])${name}\\b`).test(when));
  return [when, ...names.map((name) => expanded(lets[name] ?? "", { ...lets, [name]: "" }))].join("\n");
}

/** Words that only the shell knows. */
const unknownWords = [
  "$KEY",
  '"$KEY"',
  "${X:-.en}v",
  "$(cat a)",
  "`cat a`",
  "a{b,{c,d}}",
  "a{1..3}",
  "$X $X",
  "$((1 + Y))",
];

/** Commands that are allowed if the word is plain, such as `notes.txt`. */
const commands = [
  "echo WORD",
  "cat WORD",
  "head -n 3 WORD",
  "printf '%s' WORD",
  "echo x > WORD",
  "cat < WORD",
  "cp a WORD",
  "rm -f WORD",
  "touch WORD",
  "git add WORD",
  "cd WORD && ls",
  "git commit -m WORD",
];

/** Quoted text that looks like a commit with its message, in the words of several commands. */
const disguises = [
  (command: string) => command,
  (command: string) => `${command} ' git commit -m "$(cat <<'EOF'\n' "\nEOF\n)"`,
  (command: string) => `${command} '\ngit commit -m "$(cat <<'"'"'EOF'"'"'\nx\nEOF\n)"'`,
  (command: string) => `${command} # git commit -m "$(cat <<'EOF'\nls\nEOF\n)"`,
  (command: string) => `git commit -m "$(${command} <<'EOF'\nx\nEOF\n)"`,
  (command: string) => `git commit -m "$(cat <<'EOF'\nx\nEOF\n${command})"`,
  (command: string) => `git commit -m "$(cat <<EOF\n$(${command})\nEOF\n)"`,
  (command: string) => `git status && ${command}`,
];

/** Moves to a folder that is not known: the shell may go to the home folder, or anywhere. */
const moveWords = '-P|-L|-e|-@|--|-LP|-L -P|-P --|-|-1|+1|~|~+|\'\'|""|src lib|"$DIR"|$(pwd)|a{b,c}|*.d|s?c.d|=ls';
const moves = ["cd", ...moveWords.split("|").map((words) => `cd ${words}`)];
const movesByOthers = ["pushd src", "popd", "builtin cd src", "command cd src", "env -C src pwd", "eval cd src"];
/** Commands with a relative word, which is a file of the workspace only in a known folder. */
const relative = ["cat notes.txt", "rm -f notes.txt", "echo x > notes.txt", "ls", "git status", "npm test"];

suite("what lets a command run", () => {
  const contracts = new Map<string, PolicySet>();
  const verdictOf = (name: string, command: string): string => {
    const [contract, tool = ""] = [contracts.get(name), tools[name]];
    assert.ok(contract !== undefined);
    const input = { command, ...extra[name] };
    return judge(contract, { tool, input, platform: { cwd: workspace }, session: "s" }).verdict;
  };
  const extra: Readonly<Record<string, object>> = {
    shell: { cwd: workspace },
    "hosts/copilot-cli": { description: "x" },
    "hosts/opencode": { description: "x" },
  };

  before(async () => {
    for (const name of Object.keys(tools)) {
      const contract = compile(readReady(name));
      await loadFunctions(contract);
      contracts.set(name, contract);
    }
  });

  test("each contract that reads command lines is in the table", () => {
    const names = globSync("{,hosts/}*.yaml", { cwd: folder })
      .map((file) => file.replace(/\.yaml$/, ""))
      .filter((name) => !name.endsWith(".test") && / (?:shell|commands)\(/.test(readReady(name)));
    assert.deepEqual(names.toSorted(), Object.keys(tools).toSorted());
  });

  for (const name of Object.keys(tools)) {
    test(`${name}: no rule looks at the text of its command`, () => {
      assert.deepEqual(rulesByText(readReady(name)), []);
    });

    test(`${name}: a command with a word that only the shell knows is not allowed, with any text around it`, () => {
      const texts = commands.flatMap((command) =>
        unknownWords.flatMap((word) => disguises.map((disguise) => disguise(command.replace("WORD", word)))),
      );
      assert.deepEqual(
        texts.filter((text) => verdictOf(name, text) === "ALLOW"),
        [],
      );
    });

    test(`${name}: after a move to a folder that is not known, no relative word is allowed`, () => {
      const texts = [...moves, ...movesByOthers].flatMap((move) =>
        relative.flatMap((command) => [`${move} && ${command}`, `${move}; ${command}`, `(${move}\n${command})`]),
      );
      assert.deepEqual(
        texts.filter((text) => verdictOf(name, text) === "ALLOW"),
        [],
      );
    });
  }

  control("positive control: a condition on the command's text is found, in the rule and behind a name", () => {
    const text = readReady("hosts/codex");
    const asked = 'when: run.verdict == "ESCALATE"';
    const direct = text.replace(asked, `${asked} && !input.command.matches("^(?:git .*)$")`);
    const named = text
      .replace("let:\n", "let:\n  looks: 'input.command.startsWith(\"git \")'\n")
      .replace(asked, `${asked} && !looks`);
    assert.deepEqual([rulesByText(direct), rulesByText(named)], [["asks"], ["asks"]]);
  });

  control("positive control: the same commands with plain words are allowed by the contracts of the hosts", () => {
    for (const name of Object.keys(tools).filter((one) => one.startsWith("hosts/"))) {
      for (const command of commands)
        assert.equal(verdictOf(name, command.replace("WORD", "notes.txt")), "ALLOW", `${name}: ${command}`);
      for (const move of ["cd src", "cd ./src", `cd ${workspace}/src`, "cd 'a b'"])
        for (const command of relative)
          assert.equal(verdictOf(name, `${move} && ${command}`), "ALLOW", `${name}: ${move} && ${command}`);
    }
  });
});
