/**
 * Goal: the contracts for coding agents say the same wherever the tools mean the same. Method: limits and rules of each are
 * compared with those for Claude Code, after the names of tools and members are replaced. Positive control: a contract
 * without one name of a limit, and one with another condition, are noticed.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { suite, test } from "node:test";
import { parse } from "yaml";

interface Rule {
  readonly rule: string;
  readonly when: string;
  readonly reason: string;
}

interface Contract {
  readonly limits: Readonly<Record<string, unknown>>;
  readonly platform: object;
  readonly host_facts: readonly string[];
  readonly counters: object;
  readonly let: Readonly<Record<string, string>>;
  readonly rules: readonly Rule[];
}

const hosts = ["codex", "gemini-cli", "copilot-cli", "opencode"];

/** Folders that only one host has, and sites of a tool that only some hosts have. */
const ownLimits = new Set(["also_read", "plans", "domains"]);
/** Rules on tools that Claude Code does not have. */
const ownRules = new Set([
  "patch-outside",
  "searches-outside",
  "patterns-outside",
  "secrets-by-search",
  "sql-on-files",
]);
/** The last clause of the rule that lets commands run is about a member that only one host has. */
const ownClause: Readonly<Record<string, string>> = {
  "claude-code": " && !input.?dangerouslyDisableSandbox.orValue(false)",
  codex:
    ' && !run.commands.exists(c, c.name == "git" && c.subcommand == "commit" && !("-m" in c.flags) && !("--no-edit" in c.flags))',
  "copilot-cli": " && !input.?detach.orValue(false)",
};

function textOf(host: string): string {
  return readFileSync(new URL(`../../../contracts/hosts/${host}.yaml`, import.meta.url), "utf8");
}

/** Returns a condition or reason with the words of Claude Code's contract. */
function translated(text: string, host: string): string {
  return text
    .replace(ownClause[host] ?? "no such text", "")
    .replaceAll(/\bstart\b(?=[.}])/g, "platform.cwd")
    .replaceAll(/\{input\.(?:path|filePath)\}/g, "{input.file_path}")
    .replaceAll(/\bplace\b(?=\.)/g, "input.file_path")
    .replaceAll(/ && !is_plan| && !\(tool == "\w+" && limits\.also_read\.exists\(\w+, [^)]*\)\)\)/g, "");
}

/** Returns a sentence for each limit, fact, counter and rule that differs from Claude Code's. */
function differences(host: string, text: string): readonly string[] {
  const [other, claude] = [parse(text) as Contract, parse(textOf("claude-code")) as Contract];
  const limits = Object.keys({ ...claude.limits, ...other.limits })
    .filter((name) => !ownLimits.has(name))
    .filter((name) => JSON.stringify(claude.limits[name]) !== JSON.stringify(other.limits[name]));
  const members = (["platform", "host_facts", "counters"] as const).filter(
    (name) => JSON.stringify(claude[name]) !== JSON.stringify(other[name]),
  );
  const lets = ["run", "named", "changed", "secrets", "settings", "obeyed"].filter(
    (name) => claude.let[name] !== other.let[name],
  );
  const rules = other.rules.filter(({ rule }) => !ownRules.has(rule)).filter((rule) => !isEqual(rule, claude, host));
  return [
    ...limits.map((name) => `limit ${name}`),
    ...members,
    ...lets.map((name) => `let ${name}`),
    ...rules.map(({ rule }) => `rule ${rule}`),
  ];
}

/** A rule about the files of a patch has the condition of the rule about one file, for each of them. */
function isEqual(one: Rule, claude: Contract, host: string): boolean {
  const isOfPatch = one.rule.endsWith("-by-patch");
  const model = claude.rules.find(({ rule }) => rule === one.rule.replace(/-by-patch$/, ""));
  if (model === undefined) return false;
  if (isOfPatch) return one.when === `patched.exists(f, ${translated(model.when, host).replaceAll(/\bfile\b/g, "f")})`;
  const comparable = (rule: Rule, of: string): string => {
    const { on: _, ...rest } = rule as Rule & { readonly on: unknown };
    return JSON.stringify({ ...rest, when: translated(rule.when, of), reason: translated(rule.reason, of) });
  };
  return comparable(one, host) === comparable(model, "claude-code");
}

suite("the contracts for coding agents", () => {
  for (const host of hosts) {
    test(`${host} has the limits and rules of claude-code`, () => {
      assert.deepEqual(differences(host, textOf(host)), []);
      const known = new Set((parse(textOf(host)) as Contract).rules.map(({ rule }) => rule));
      const commands = (parse(textOf("claude-code")) as Contract).rules.filter(({ rule }) =>
        /command|never|destroys|workspace/.test(rule),
      );
      for (const { rule } of commands) assert.ok(known.has(rule), `${host} lacks ${rule}`);
    });
  }

  test("positive control: a limit without one name and a changed condition are noticed", () => {
    const text = textOf("codex");
    const without = text.replace("[sudo, su, ", "[su, ");
    const changed = text.replace('c.name == "find" && "-delete" in c.args', 'c.name == "find"');
    assert.notEqual(without, text);
    assert.notEqual(changed, text);
    const patch = text.replace("patched.exists(f, settings.", "patched.exists(f, !settings.");
    assert.deepEqual(differences("codex", patch), ["rule settings-by-patch"]);
    assert.deepEqual(differences("codex", without), ["limit never"]);
    assert.deepEqual(differences("codex", changed), ["rule destroys"]);
  });
});
