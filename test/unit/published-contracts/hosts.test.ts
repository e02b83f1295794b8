/**
 * Goal: the contracts for coding agents say the same wherever the tools mean the same. Method: limits and rules of each are
 * compared with those for Claude Code, after the names of tools and members are replaced. Positive control: a contract
 * without one name of a limit, and one with another condition, are noticed.
 *
 * Goal: a sub-agent or a skill, whose file can make the host run commands that no hook sees, waits for a person. Method: a
 * call of each, in the contract of each host that runs such commands. For Claude Code also under a mandate that states
 * managed settings. Positive control: a contract that allows the tool is noticed.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { parse } from "yaml";
import { compileMandate, renderDiagnostic, type PolicySet } from "../../../packages/readers/src/contract.ts";
import { good } from "../../../packages/core/src/wire/mod.ts";
import { openReady } from "../../../packages/gate/src/server/policy/contracts.ts";
import { compile, judge, readReady } from "../../support/contract-kit.ts";
import { control } from "../../support/controls/control.ts";

interface Rule {
  readonly rule: string;
  readonly when: string;
  readonly reason: string;
}

interface Contract {
  readonly commands: { readonly from: string };
  readonly limits: Readonly<Record<string, unknown>>;
  readonly platform: object;
  readonly host_facts: readonly string[];
  readonly counters: { readonly sub_agents: object };
  readonly let: Readonly<Record<string, string>>;
  readonly rules: readonly Rule[];
}

const hosts = ["codex", "gemini-cli", "copilot-cli", "opencode"];

/** Folders and settings that only one host has, and sites of a tool that only some hosts have. */
const ownLimits = new Set(["also_read", "plans", "domains", "managed_settings"]);
/** Rules on tools that Claude Code does not have. */
const ownRules = new Set([
  "detached",
  "patch-outside",
  "searches-outside",
  "patterns-outside",
  "secrets-by-search",
  "sql-on-files",
]);
/** Clauses about folders that only one host has. */
const ownClauses = / && !is_(?:plan|memory)| && !\(tool == "\w+" && limits\.also_read\.exists\(\w+, [^)]*\)\)\)/g;

function textOf(host: string): string {
  return readReady(`hosts/${host}`);
}

/** Returns a condition or reason with the words of Claude Code's contract. */
function translated(text: string): string {
  return text
    .replaceAll(ownClauses, "")
    .replace(/ && (?:!\(tool in \[[^\]]*\]\)|tool != "\w+")$/, "") // tools that only wait
    .replaceAll(/\bstart\b(?=[.,})\]])/g, "platform.cwd")
    .replaceAll(/\{input\.(?:path|filePath)\}/g, "{input.file_path}")
    .replaceAll("[place].", "file.")
    .replaceAll(/\bplace\b(?=\.)/g, "input.file_path")
    .replace(
      "run.reads.outside([limits.workspace] + limits.also_read) + (run.writes + run.lists).outside([limits.workspace])",
      "(run.reads + run.writes + run.lists).outside([limits.workspace])",
    );
}

/** A contract in which the tool that starts a sub-agent has no name. */
function parsed(text: string): Contract {
  const contract = parse(text) as Contract;
  const { counters } = contract;
  return { ...contract, counters: { ...counters, sub_agents: { ...counters.sub_agents, of: "" } } };
}

/** Returns a sentence for each limit, fact, counter and rule that differs from Claude Code's. */
function differences(text: string): readonly string[] {
  const [other, claude] = [parsed(text), parsed(textOf("claude-code"))];
  const limits = Object.keys({ ...claude.limits, ...other.limits })
    .filter((name) => !ownLimits.has(name))
    .filter((name) => JSON.stringify(claude.limits[name]) !== JSON.stringify(other.limits[name]));
  const members = (["commands", "platform", "host_facts", "counters"] as const).filter(
    (name) => JSON.stringify(claude[name]) !== JSON.stringify(other[name]),
  );
  const lets = ["run", "named", "open"].filter((name) => claude.let[name] !== translated(other.let[name] ?? ""));
  const rules = other.rules.filter(({ rule }) => !ownRules.has(rule)).filter((rule) => !isEqual(rule, claude));
  return [
    ...limits.map((name) => `limit ${name}`),
    ...members,
    ...lets.map((name) => `let ${name}`),
    ...rules.map(({ rule }) => `rule ${rule}`),
  ];
}

/** A rule about the files of a patch has the condition of the rule about one file, for each of them. */
function isEqual(one: Rule, claude: Contract): boolean {
  const isOfPatch = one.rule.endsWith("-by-patch");
  const model = claude.rules.find(({ rule }) => rule === one.rule.replace(/-by-patch$/, ""));
  if (model === undefined) return false;
  if (isOfPatch) return one.when === translated(model.when).replaceAll(/\bfile\b/g, "targets");
  const comparable = (rule: Rule & { readonly let?: object }): string => {
    const { on: _, let: own = {}, ...rest } = rule as Rule & { readonly on: unknown; readonly let?: object };
    const lets = translated(Object.values(own).join());
    const text = JSON.stringify({ ...rest, lets, when: translated(rule.when), reason: translated(rule.reason) });
    // Not every host's shell has a limit of time.
    return text.replace(',"free":["input.timeout"]', "");
  };
  return comparable(one) === comparable(model);
}

suite("the contracts for coding agents", () => {
  for (const host of hosts) {
    test(`${host} has the limits and rules of claude-code`, () => {
      assert.deepEqual(differences(textOf(host)), []);
      const known = new Set((parse(textOf(host)) as Contract).rules.map(({ rule }) => rule));
      const commands = (parse(textOf("claude-code")) as Contract).rules.filter(({ rule }) =>
        /command|never|asks|whole-folders|workspace/.test(rule),
      );
      for (const { rule } of commands) assert.ok(known.has(rule), `${host} lacks ${rule}`);
    });
  }

  control("positive control: a limit without one name and a changed condition are noticed", () => {
    const text = textOf("codex");
    const doctored = (from: string, to: string): readonly string[] => differences(text.replace(from, to));
    assert.deepEqual(doctored("targets.naming(limits.settings) !=", "targets.naming(limits.secrets) !="), [
      "rule settings-by-patch",
    ]);
    assert.deepEqual(doctored("[src, lib, ", "[src, "), ["limit open_folders"]);
    assert.deepEqual(doctored("search, git,", "search,"), ["commands"]);
    assert.deepEqual(doctored('run.verdict == "ESCALATE"', 'run.verdict == "BLOCK"'), ["rule asks"]);
    assert.deepEqual(doctored("[key, platform.cwd, call]", "[key, call]"), ["counters"]);
    assert.deepEqual(doctored("counters.equal + 1", "counters.equal"), ["rule loops"]);
    assert.deepEqual(doctored("run.reads + run.writes + run.lists", "run.reads + run.writes"), [
      "rule commands-outside",
    ]);
  });
});

/** A call for each tool that prepares a file of the repository. */
const preparing: Readonly<Record<string, Readonly<Record<string, object>>>> = {
  "claude-code": { Agent: { prompt: "x", subagent_type: "general-purpose" }, Skill: { skill: "setup" } },
  "gemini-cli": { invoke_agent: { agent_name: "helper", prompt: "x" }, activate_skill: { name: "setup" } },
  "copilot-cli": { task: { prompt: "x", agent_type: "helper" }, skill: { skill: "setup" } },
};

/** The verdict on each call of `preparing`. */
function verdicts(host: string, policySet: PolicySet): Readonly<Record<string, string>> {
  const calls = Object.entries(preparing[host] ?? {});
  const verdictOn = (tool: string, input: object): string =>
    judge(policySet, { tool, input, platform: { cwd: "/srv/app" }, session: "s" }).verdict;
  return Object.fromEntries(calls.map(([tool, input]) => [tool, verdictOn(tool, input)]));
}

/** The contract under a mandate that sets one of its limits. */
function withLimit(host: string, limit: string): PolicySet {
  const text = `mandate: m\ncontracts: [${host}.yaml]\nlimits:\n  ${host}: { ${limit} }\n`;
  const compiled = compileMandate(
    { name: "mandate.yaml", text },
    (name) => openReady(name) ?? good({ name, text: textOf(host) }),
  );
  if (!compiled.ok) assert.fail(compiled.problem.map(renderDiagnostic).join("\n"));
  return compiled.value;
}

suite("tools that prepare a sub-agent or a skill of the repository", () => {
  for (const [host, calls] of Object.entries(preparing))
    test(`${host} lets a person decide about ${Object.keys(calls).join(" and ")}`, () => {
      const waiting = Object.fromEntries(Object.keys(calls).map((tool) => [tool, "ESCALATE"]));
      assert.deepEqual(verdicts(host, compile(textOf(host))), waiting);
      const open = textOf(host).replaceAll(/\{ verdict: ESCALATE, reason: the sub-agent [^}]*\}/g, "ALLOW");
      assert.notDeepEqual(verdicts(host, compile(open)), waiting, "positive control: an open contract");
    });

  test("with managed settings, claude-code allows both, and only then", () => {
    const host = "claude-code";
    assert.deepEqual(verdicts(host, withLimit(host, "managed_settings: true")), { Agent: "ALLOW", Skill: "ALLOW" });
    assert.deepEqual(verdicts(host, withLimit(host, "managed_settings: false")), {
      Agent: "ESCALATE",
      Skill: "ESCALATE",
    });
  });
});
