/**
 * Goal: the contracts to copy let ordinary work through. Method: 112 calls that agents make on ordinary days
 * (test/unit/published-contracts/ordinary-calls.jsonl), each in its own session. A call that is not allowed is listed
 * with its verdict and the reason.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, suite, test } from "node:test";
import { loadFunctions, type PolicySet } from "../../../packages/readers/src/contract.ts";
import { compile, judge, readReady } from "../../support/contract-kit.ts";

interface OrdinaryCall {
  readonly tool_name: string;
  readonly tool_input: object;
  /** ALLOW if it is absent. */
  readonly verdict?: string;
  readonly why?: string;
}

const calls = readFileSync(new URL("ordinary-calls.jsonl", import.meta.url), "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as OrdinaryCall);

/** The shell's tool in the contract of each coding agent. */
const shells = {
  "claude-code": "Bash",
  codex: "Bash",
  "gemini-cli": "run_shell_command",
  "copilot-cli": "bash",
  opencode: "bash",
};

suite("ordinary calls", () => {
  const contracts = new Map<string, PolicySet>();

  before(async () => {
    for (const name of ["shell", "sql", "http", "email", "files", "git"]) {
      const contract = compile(readReady(name));
      await loadFunctions(contract);
      for (const tool of contract.tools.keys()) contracts.set(tool, contract);
    }
  });

  test("at least 97 of 112 calls are allowed, and the others have a reason", () => {
    assert.equal(calls.length, 112);
    const others = calls.filter(({ verdict }) => verdict !== undefined);
    assert.ok(calls.length - others.length >= 97, `${others.length} are not allowed`);
    for (const { why, tool_input: input } of others) assert.ok((why ?? "").length > 20, JSON.stringify(input));
  });

  for (const [host, tool] of Object.entries(shells))
    test(`the shell of ${host} may run the commands that the contract shell allows`, async () => {
      const contract = compile(readReady(`hosts/${host}`));
      await loadFunctions(contract);
      const commands = calls.filter(({ tool_name, verdict }) => tool_name === "shell.run" && verdict === undefined);
      assert.equal(commands.length, 45);
      const refused = commands.filter(({ tool_input: input }) => {
        const { command, cwd } = input as { readonly command: string; readonly cwd: string };
        const call = { tool, input: { command }, platform: { cwd } };
        return judge(contract, { ...call, session: "s" }).verdict !== "ALLOW";
      });
      assert.deepEqual(refused, []);
    });

  test("each call has the verdict that the list names", () => {
    const differences = calls.flatMap(({ tool_name: tool, tool_input: input, verdict = "ALLOW" }) => {
      const contract = contracts.get(tool);
      assert.ok(contract !== undefined, tool);
      const decision = judge(contract, { tool, input, session: "s" });
      return decision.verdict === verdict
        ? []
        : [`${tool} ${JSON.stringify(input)}: ${decision.verdict}, ${decision.reason}`];
    });
    assert.deepEqual(differences, []);
  });
});
