/**
 * Goal: `svc-gate hook` ends with 0 only if it has printed an answer of the gate to this very call, and with 2 and a
 * sentence otherwise. Method: the command runs as a host starts it, against a real gate and against servers that answer
 * wrongly. Positive controls: hooks with planted defects, each of which a case must notice.
 */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import type { ServerResponse } from "node:http";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { setTimeout } from "node:timers/promises";
import { runAgent, startFakeGate, type AgentRun } from "../../support/agent.ts";
import { startDesk } from "../../support/approvals.ts";
import { control } from "../../support/controls/control.ts";
import { key, temporaryFolder } from "../../support/gate.ts";
import type { Mutation } from "../../support/mutation/mutate.ts";
import { eventually } from "../../support/patience.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);
const input = JSON.stringify({
  hook_event_name: "PreToolUse",
  session_id: "s",
  tool_name: "Bash",
  tool_input: { command: "ls" },
  tool_use_id: "toolu_1",
});
const allowed = {
  hookSpecificOutput: {
    hookEventName: "PreToolUse",
    permissionDecision: "allow",
    permissionDecisionReason: "Svc: fine",
  },
};

function keyFile(t: TestContext): string {
  const file = join(temporaryFolder(t), "host.key");
  writeFileSync(file, `${key}\n`, { mode: 0o600 });
  return file;
}

function hook(
  t: TestContext,
  url: string,
  words: readonly string[] = [],
  defects: readonly Mutation[] = [],
): Promise<AgentRun> {
  const all = ["hook", "--agent", "claude-code", "--url", url, "--key-file", keyFile(t), ...words];
  return runAgent(all, { stdin: input, defects });
}

type Answer = (response: ServerResponse, body: Buffer) => void;

/** A server that answers each hook in the same way. */
function answering(t: TestContext, answer: Answer): Promise<string> {
  return startFakeGate(t, (request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => answer(response, Buffer.concat(pieces)));
  });
}

const send =
  (status: number, text: string, digest?: string): Answer =>
  (response, body) => {
    response.writeHead(status, {
      "content-type": "application/json",
      "svc-request": digest ?? hash("sha256", body, "hex"),
    });
    response.end(text);
  };

/** Answers that are none, each with the planted defect of a hook that would take it for one. */
const wrong: readonly {
  readonly name: string;
  readonly answer: Answer;
  readonly defect?: Mutation;
  readonly words?: readonly string[];
}[] = [
  { name: "an empty 200", answer: send(200, "") },
  { name: "no object", answer: send(200, "[]") },
  { name: "null", answer: send(200, "null") },
  { name: "no JSON", answer: send(200, "<html>") },
  {
    name: "the verdict of POST /check",
    answer: send(200, '{"verdict":"ALLOW","reason":"Svc: fine","mode":"enforce"}'),
  },
  {
    name: "an unknown decision",
    answer: send(200, JSON.stringify(allowed).replace('"allow"', '"ALLOW"')),
    defect: { within: "outputIn", module: "src/hook", find: "outputs[agent]?.(objectIn(body))", put: "objectIn(body)" },
  },
  { name: "ask", answer: send(200, JSON.stringify(allowed).replace('"allow"', '"ask"')) },
  {
    name: "the answer to another call",
    answer: send(200, JSON.stringify(allowed), "0".repeat(64)),
    defect: {
      within: "post",
      module: "src/hook",
      find: 'headers["svc-request"]',
      put: 'createHash("sha256").update(input).digest("hex")',
    },
  },
  {
    name: "500 with an allow",
    answer: send(500, JSON.stringify(allowed)),
    defect: { within: "post", module: "src/hook", find: "status !== 200", put: "status === 401" },
  },
  { name: "401", answer: send(401, "{}") },
  {
    name: "a redirect",
    answer: (response) => response.writeHead(302, { location: "/hooks/claude-code" }).end(),
  },
  {
    name: "an answer that is cut short",
    answer: (response, body) => {
      response.writeHead(200, { "content-length": "1000", "svc-request": hash("sha256", body, "hex") });
      response.write(JSON.stringify(allowed));
      void setTimeout(50).then(() => response.destroy());
    },
  },
  { name: "no answer in time", answer: () => undefined, words: ["--timeout", "1"] }, // short wait: the case is about the time-out
  {
    name: "bytes that never end",
    answer: (response) => {
      response.writeHead(200);
      const more = setInterval(() => response.write(" ".repeat(1000)), 100);
      response.on("close", () => clearInterval(more));
    },
    words: ["--timeout", "1"], // short wait: the case is about the time-out
  },
];

const before = (more: object): object => ({ hookSpecificOutput: { hookEventName: "PreToolUse", ...more } });
const reasoned = (permissionDecision: string, permissionDecisionReason: unknown = "Svc: fine"): object => ({
  permissionDecision,
  permissionDecisionReason,
});

/** For each host, answers of a gate and what the hook prints; undefined if it refuses. */
const dialects: readonly { readonly agent: string; readonly answers: readonly (readonly [object, object?])[] }[] = [
  {
    agent: "codex",
    answers: [
      [before(reasoned("allow")), before({})],
      [before({ ...reasoned("deny"), updatedInput: {} }), before(reasoned("deny"))],
      [
        { hookSpecificOutput: { hookEventName: "PostToolUse" } },
        { hookSpecificOutput: { hookEventName: "PostToolUse" } },
      ],
      [before({})],
      [before(reasoned("deny", ""))],
      [before(reasoned("deny", " "))],
      [before(reasoned("ask"))],
      [before(reasoned("ALLOW"))],
      [reasoned("allow")],
      [{ decision: "allow" }],
      [{ verdict: "ALLOW" }],
      [{}],
    ],
  },
  {
    agent: "gemini-cli",
    answers: [
      [{ decision: "allow", reason: "Svc: fine", continue: false }, { decision: "allow" }],
      [
        { decision: "deny", reason: "Svc: no" },
        { decision: "deny", reason: "Svc: no" },
      ],
      [{ hookSpecificOutput: { hookEventName: "AfterTool" } }, {}],
      [{ hookSpecificOutput: { hookEventName: "AfterTool" }, decision: "BLOCK" }],
      [{ decision: "deny" }],
      [{ decision: "BLOCK", reason: "Svc: no" }],
      [{ decision: "ask", reason: "Svc: no" }],
      [before(reasoned("allow"))],
      [{}],
    ],
  },
  {
    agent: "copilot-cli",
    answers: [
      [{ ...reasoned("allow"), modifiedArgs: {} }, reasoned("allow")],
      [reasoned("deny"), reasoned("deny")],
      [{ decision: "none" }, {}],
      [{ decision: "none", permissionDecision: "DENY" }],
      [reasoned("ALLOW")],
      [reasoned("ask")],
      [{ permissionDecision: "allow" }],
      [before(reasoned("allow"))],
      [{}],
    ],
  },
];

suite("svc-gate hook", { concurrency: 2 }, () => {
  for (const { name, answer, defect, words = [] } of wrong) {
    test(`it refuses the call after ${name}`, async (t) => {
      const { code, stdout, stderr } = await hook(t, await answering(t, answer), words);
      assert.deepEqual([code, stdout], [2, ""]);
      says(name, stderr);
    });
    if (defect === undefined) continue;
    control(`positive control: a hook with a defect does not refuse after ${name}`, async (t) => {
      assert.equal((await hook(t, await answering(t, answer), words, [defect])).code, 0);
    });
  }

  test("it prints the gate's answers and ends with 0, and passes on no member that it does not know", async (t) => {
    const more = {
      continue: true,
      hookSpecificOutput: { ...allowed.hookSpecificOutput, updatedInput: { command: "rm" } },
    };
    const { code, stdout } = await hook(t, await answering(t, send(200, JSON.stringify(more))));
    assert.equal(code, 0);
    assert.deepEqual(JSON.parse(stdout), allowed);
    const desk = await startDesk(t, { contract: contract("ALLOW") });
    assert.match((await hook(t, desk.address)).stdout, /"permissionDecision":"allow"/);
  });

  for (const { agent, answers } of dialects) {
    test(`for ${agent} it prints what the host reads, and refuses every other answer`, async (t) => {
      for (const [answer, printed] of answers) {
        const url = await answering(t, send(200, JSON.stringify(answer)));
        const { code, stdout } = await runAgent(["hook", "--agent", agent, "--url", url, "--key-file", keyFile(t)], {
          stdin: input,
        });
        assert.deepEqual(
          [code, stdout],
          printed === undefined ? [2, ""] : [0, `${JSON.stringify(printed)}\n`],
          JSON.stringify(answer),
        );
      }
    });
  }

  control("positive control: a hook that takes no decision for an allowed call is noticed", async (t) => {
    const url = await answering(t, send(200, '{"hookSpecificOutput":{"hookEventName":"PreToolUse"}}'));
    const words = ["hook", "--agent", "codex", "--url", url, "--key-file", keyFile(t)];
    assert.equal((await runAgent(words, { stdin: input })).code, 2);
    const defect = { within: "outputs", module: "src/hook", find: 'hookEventName === "PostToolUse"', put: "true" };
    assert.equal((await runAgent(words, { stdin: input, defects: [defect] })).code, 0);
  });

  test("it refuses if nothing listens, if its key is missing or readable by others, and after a wrong command line", async (t) => {
    const ends: (() => unknown)[] = [];
    const closed = await startFakeGate({ after: (end) => void ends.push(end as () => unknown) }, () => undefined);
    for (const end of ends) await end();
    says("nothing listens", (await hook(t, closed)).stderr);
    const file = keyFile(t);
    const run = async (name: string, words: readonly string[], env = {}): Promise<void> => {
      const { code, stdout, stderr } = await runAgent(["hook", ...words], { stdin: input, env });
      assert.deepEqual([code, stdout], [2, ""], name);
      says(name, stderr, { FILE: file });
    };
    const agent = ["--agent", "claude-code"];
    await run("no key", agent);
    await run("no agent", ["--key-file", file]);
    await run("an unknown option", [...agent, "--key", "x"]);
    await run("a wrong address", [...agent, "--key-file", file, "--url", "http://a:b@gate"]);
    await run("a missing key file", [...agent, "--key-file", `${file}.none`]);
    if (process.platform === "win32") return;
    chmodSync(file, 0o644);
    await run("a key file that others can read", [...agent, "--key-file", file]);
  });

  test("it never prints the key", async (t) => {
    for (const { answer, words = [] } of wrong) {
      const { stdout, stderr } = await hook(t, await answering(t, answer), words);
      assert.ok(!`${stdout}${stderr}`.includes(key));
    }
  });

  test("with wait, it asks until a person has decided, and prints the answer after that", async (t) => {
    const desk = await startDesk(t, { contract: contract("ESCALATE") });
    const waiting = hook(t, desk.address, ["--on-escalate", "wait", "--wait", "20"]);
    const approval = await firstPending(desk);
    assert.equal((await desk.decides("anna", approval, "approve")).status, 200);
    assert.match((await waiting).stdout, /"permissionDecision":"allow"/);
    const refused = hook(t, desk.address, ["--on-escalate", "wait", "--wait", "20"]);
    await desk.decides("anna", await firstPending(desk), "deny");
    assert.match((await refused).stdout, /"deny".*anna denied this call/);
  });

  test("with wait, it refuses when the time is over", async (t) => {
    const desk = await startDesk(t, { contract: contract("ESCALATE") });
    // short wait: the case is about the time-out
    const { code, stdout } = await hook(t, desk.address, ["--on-escalate", "wait", "--wait", "1"]);
    assert.equal(code, 0);
    assert.match(stdout, /"permissionDecision":"deny"/);
    const parked = await hook(t, desk.address, ["--on-escalate", "defer"]);
    assert.match(parked.stdout, /"permissionDecision":"defer"/);
  });
});

const contract = (verdict: string): string =>
  `contract: host\ntools:\n  Bash:\n    input: { type: object, additionalProperties: true }\n    otherwise: ${verdict}\n`;

async function firstPending(desk: Awaited<ReturnType<typeof startDesk>>): Promise<string> {
  return eventually("a call that waits", async () => {
    const [approval] = (await desk.as("anna", "/approvals?state=pending")).json.approvals;
    return approval?.id as string | undefined;
  });
}
