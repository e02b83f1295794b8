/**
 * Goal: the Python adapter refuses options under which a call could run without the gate, as the one in JavaScript does. Method:
 * a program in the environment of the hosts makes such options, and prints the adapter's error for each.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { installed } from "../../../adapters/conformance/hosts.ts";
import { root } from "../../support/gate.ts";

/** Arguments of ClaudeAgentOptions, and a part of the sentence. */
const wrong: readonly (readonly [options: string, says: string])[] = [
  ['permission_mode="acceptEdits"', "permission_mode must be dontAsk"],
  ['allowed_tools=["Bash"]', "allowed_tools must be empty"],
  ['skills="all"', "skills must be absent"],
  ["can_use_tool=lambda *args: None", "can_use_tool"],
  ['settings="settings.json"', "settings must be JSON"],
  ['settings=\'{"permissions":{"allow":["Bash"]}}\'', "permissions.allow must be empty"],
  ["settings='{\"disableAllHooks\":true}'", "disableAllHooks"],
  [
    'agents={"a": AgentDefinition(description="d", prompt="p", permissionMode="acceptEdits")}',
    "an agent's permissionMode",
  ],
  ['sandbox={"enabled": True, "autoAllowBashIfSandboxed": True}', "sandbox"],
  ['extra_args={"dangerously-skip-permissions": None}', "extra_args"],
  ['extra_args={"plugin-dir": "x"}', "extra_args"],
  ['plugins=[{"type": "local", "path": "x"}]', "plugins"],
  ['hooks={"PermissionRequest": [HookMatcher(hooks=[])]}', "PermissionRequest"],
  ['hooks={"PreToolUse": [HookMatcher(hooks=[])]}', "another PreToolUse hook"],
  ['tools=["Bash", "WebSearch"]', "the provider runs WebSearch"],
  ['agents={"a": AgentDefinition(description="d", prompt="p", tools=["WebSearch"])}', "the provider runs WebSearch"],
];

const program = `import sys
sys.path[:0] = [sys.argv[1]]
from claude_agent_sdk import AgentDefinition, ClaudeAgentOptions, HookMatcher
from svc_gate_claude_agent_sdk import _name_of, guarded
gate = type("Gate", (), {"check": None})()
def error(**options):
    try:
        return guarded(ClaudeAgentOptions(**options), gate) and "guarded"
    except ValueError as found:
        return str(found)
${wrong.map(([options]) => `print(error(${options}))`).join("\n")}
plain = guarded(ClaudeAgentOptions(settings="{}", max_turns=3), gate)
print(plain.permission_mode, plain.setting_sources, plain.disallowed_tools, plain.hooks["PreToolUse"][0].on_failure)
print(_name_of("Bash", None), _name_of("odd.name", None), _name_of("mcp__a_b__c", {"name": "a.b"}))
print(_name_of("mcp__a__b__c", {"name": "a", "source": "user"}), _name_of("mcp__a__b", {"name": "c"}))
print(_name_of("Bash", {"name": "kit", "source": "sdk"}), _name_of("Bash", {}))
`;

test("the Python adapter refuses options that could let a call run without the gate", (t) => {
  const python = join(installed("hosts"), ".venv", "bin", "python");
  if (!existsSync(python)) return t.skip("the SDK is not installed: it needs python3 with venv and pip");
  const words = ["-B", "-c", program, join(root, "adapters")];
  const { stdout, stderr } = spawnSync(python, words, { encoding: "utf8" });
  const lines = stdout.trimEnd().split("\n");
  for (const [index, [options, says]] of wrong.entries())
    assert.ok(lines[index]?.includes(says), `${options}: ${lines[index]}\n${stderr}`);
  assert.deepEqual(lines.slice(wrong.length), [
    "dontAsk [] ['WebSearch'] block",
    "Bash None project:a%2Eb.c",
    "a.b%5F%5Fc None",
    "kit.Bash None",
  ]);
  return undefined;
});
