/**
 * Goal: both clients behave alike, as spec/client.md says, in every situation and under every runtime that they
 * promise. Method: a scripted server plays one table of cases (spec/vectors/client) to each client; one expected row
 * serves both languages. Clients that are broken on purpose must fail it.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { suite, test, type TestContext } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { cases, outcomes, type Case } from "../../../clients/conformance/case.ts";
import { runCases } from "../../../clients/conformance/run.ts";
import { startServer } from "../../../clients/conformance/server.ts";
import {
  asyncCommand,
  nodeCommand,
  pythonCommand,
  runtimes,
  withAsync,
} from "../../../clients/conformance/runtimes.ts";
import { SvcGate, SvcGateError, type Verdict } from "../../../clients/javascript/svc-gate.mjs";
import { mutants, withMutant } from "../../support/client-mutants.ts";
import { control } from "../../support/controls/control.ts";
import { sweptFile } from "../../support/mutation/mutate.ts";
import { node, parse, walk } from "../../support/mutation/tree.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const { found, absent } = runtimes();
/** `npm test` runs the table under fewer versions of each language: the oldest and the newest. */
const versions = Number(process.env["CLIENT_RUNTIMES"] ?? 9);
const tested = ["python", "node", "asyncio"].flatMap((kind) => {
  const all = withAsync(found).filter(({ name }) => name.startsWith(kind));
  return all.filter((_, at) => at === 0 || at > all.length - versions);
});
const open = { id: "apr_1_ab", status: "pending", next: "wait" };
const escalated = {
  json: { verdict: "ESCALATE", reason: "Svc: a person decides", mode: "enforce", approval: open },
};
const python = found.findLast(({ name }) => name.startsWith("python"))?.command[0];

suite(
  "the table of cases for the clients",
  { tags: ["client.same-behaviour", "client.names", "version.node-18"], concurrency: 3 },
  () => {
    for (const { name, command } of tested) {
      test(`the client passes every case under ${name}`, async () => {
        const runs = await runCases(command);
        const failed = runs.filter(({ problems }) => problems.length > 0);
        assert.deepEqual(
          failed.map(({ id, problems }) => `${id}: ${problems.join("; ")}`),
          [],
        );
        assert.equal(runs.length, cases().length + 1);
      });
    }
    for (const name of absent) {
      test(`the client passes every case under ${name}`, { skip: `${name} is not installed here` }, () => {});
    }
  },
);

suite("the table of cases run against broken clients", { concurrency: 3 }, () => {
  for (const mutant of mutants) {
    const skip = mutant.client !== "javascript" && python === undefined ? "no Python is installed here" : false;
    control(`positive control: a ${mutant.client} client that ${mutant.fault} is noticed`, { skip }, async () => {
      const failed = await failedWith(mutant);
      assert.deepEqual(
        mutant.noticed.filter((id) => !failed.includes(id)),
        [],
        "cases that did not notice",
      );
    });
  }
});

/**
 * Returns the cases that the broken client fails. On a busy machine its own time-out can hide the fault, so the cases
 * run again until all that must fail have failed.
 */
async function failedWith(mutant: (typeof mutants)[number]): Promise<readonly string[]> {
  const failed = new Set<string>();
  for (let tries = 0; tries < 6 && !mutant.noticed.every((id) => failed.has(id)); tries += 1) {
    const runs = await withMutant(mutant, python ?? "", (clientFolder) => {
      const command = {
        python: pythonCommand(python ?? "", clientFolder),
        asyncio: asyncCommand(pythonCommand(python ?? "", clientFolder)),
        javascript: nodeCommand(process.execPath, clientFolder),
      }[mutant.client];
      const only = ({ id, options }: Case): boolean => mutant.noticed.includes(id) || isSample(id, options.fail_open);
      return runCases(command, { only, again: false });
    });
    for (const { id, problems } of runs) if (problems.length > 0) failed.add(id);
  }
  return [...failed];
}

/** Returns whether to run the case with those that must fail: only several cases show a shared session or a proxy. */
function isSample(id: string, failOpen: unknown): boolean {
  return failOpen === false && /^(?:answer-|mode-|request$)/.test(id);
}

test("the table has unique ids, a case for each kind of outcome and only known requirements", () => {
  const all = cases();
  assert.equal(new Set(all.map(({ id }) => id)).size, all.length);
  const kinds = new Set(all.flatMap(({ expect }) => expect.map(({ kind }) => kind ?? "answer")));
  assert.deepEqual([...kinds].filter((kind) => kind !== "answer").toSorted(), [...outcomes().keys()].toSorted());
  const list: { requirements: { id: string }[] } = JSON.parse(
    readFileSync(fileOf("../../../spec/requirements.json"), "utf8"),
  );
  const known = new Set(list.requirements.map(({ id }) => id));
  assert.deepEqual(
    [...new Set(all.flatMap(({ cites }) => cites))].filter((id) => !known.has(id)),
    [],
  );
});

test(
  "a client without settings waits 10 seconds and retries once",
  { tags: ["limit.client-timeout", "limit.client-retries"] },
  (t) => {
    const declared =
      "const { apiKey, sessionId, timeoutMs = 10_000, retries = 1, failOpen = false, idempotent = false } = options;";
    const variants = sweptFile(fileOf("../../../clients/javascript/svc-gate.mjs"), { find: declared, put: "" });
    assert.equal(variants.length, 1, declared);
    if (python === undefined) return t.skip("no Python is installed here");
    const script = "import inspect, svc_gate; print(inspect.signature(svc_gate.SvcGate))";
    const { stdout } = spawnSync(python, ["-c", script], { cwd: fileOf("../../../clients/python"), encoding: "utf8" });
    assert.match(stdout, /timeout: 'float' = 10\.0, retries: 'int' = 1, fail_open: 'bool' = False/);
  },
);

test(
  "each client is one file without dependencies, and the asyncio client needs only the other Python file",
  { tags: ["client.one-file"] },
  () => {
    const javascript = parse(readFileSync(fileOf("../../../clients/javascript/svc-gate.mjs"), "utf8"), "js");
    const imported: unknown[] = [];
    walk(javascript, ({ source }) => source && imported.push(node(source)?.["value"]));
    assert.deepEqual(imported, ["node:crypto"]);
    if (python === undefined) return;
    const script = [
      "import ast, sys",
      "nodes = [x for name in ('svc_gate.py', 'svc_gate_async.py') for x in ast.walk(ast.parse(open(name).read()))]",
      "names = [n.name for x in nodes if isinstance(x, ast.Import) for n in x.names]",
      "names += [x.module for x in nodes if isinstance(x, ast.ImportFrom)]",
      "allowed = getattr(sys, 'stdlib_module_names', set(names))",
      "print(sorted({n for n in names if n.split('.')[0] not in allowed} - {'svc_gate'}))",
    ].join("\n");
    const { stdout } = spawnSync(python, ["-c", script], { cwd: fileOf("../../../clients/python"), encoding: "utf8" });
    assert.equal(stdout.trim(), "[]");
  },
);

test("printing, copying or pickling the Python client does not show its key", { tags: ["attack-14"] }, (t) => {
  if (python === undefined) return t.skip("no Python is installed here");
  const script = [
    "import copy, pickle, pprint, svc_gate",
    "gate = svc_gate.SvcGate('http://127.0.0.1:4', api_key='k-3c0ffee', retries=0)",
    "print(repr(gate), vars(gate), pprint.pformat(gate.__dict__))",
    "for take in (pickle.dumps, copy.copy, copy.deepcopy):",
    "    try: print('taken', take(gate))",
    "    except TypeError as refused: print(refused)",
    "print('seen', gate._secret.text)",
  ].join("\n");
  const { stdout } = spawnSync(python, ["-c", script], { cwd: fileOf("../../../clients/python"), encoding: "utf8" });
  const [shown = "", seen] = stdout.split(/^seen /m);
  assert.equal(seen, "k-3c0ffee\n", "positive control: the key is there");
  assert.match(shown, /<api_key>/);
  assert.doesNotMatch(shown, /c0ffee|taken/);
  for (const line of shown.trimEnd().split(/\r?\n/).slice(-3)) says("a SvcGate cannot be copied or pickled", line);
});

test(
  "the JavaScript client matches its types, hides its key and works with detached methods",
  { tags: ["auth.key-is-boundary"] },
  async () => {
    const gate = new SvcGate("http://127.0.0.1:4", { apiKey: "k-3c0ffee", retries: 0 });
    const { check } = gate;
    const verdict: Verdict = await check("shell.run", { command: "ls" });
    assert.equal(verdict.allowed, false);
    assert.throws(() => Object.assign(verdict, { allowed: true }), TypeError);
    await assert.rejects(gate.rules(), SvcGateError);
    const { inspect } = await import("node:util");
    assert.doesNotMatch(inspect(gate, { showHidden: true, depth: 5 }) + JSON.stringify(gate), /c0ffee/);
    // @ts-expect-error -- an option of the Python client's name
    assert.throws(() => new SvcGate("http://127.0.0.1:4", { api_key: "k" }), /unknown option "api_key"/);
  },
);

const paused = { send: "" };
/** Only detects a hang: without the abort, none of these waits would end. */
const hangMs = 300_000;

/** Each timer of this process that is set while a client pauses takes an hour, and does not keep the process alive. */
function stretchPauses(t: TestContext): void {
  const set = globalThis.setTimeout;
  const stretched = (run: () => void, ms = 0): NodeJS.Timeout =>
    ms < 200 ? set(run, ms) : set(run, 3_600_000).unref();
  t.mock.method(globalThis, "setTimeout", stretched as typeof set);
}

for (const { when, answers } of [
  { when: "the gate holds the wait", answers: [paused] },
  { when: "the client pauses", answers: [{ status: 503 }] },
  { when: "the gate holds the check", answers: [{ json: { ...open, status: "approved", next: "check" } }, paused] },
]) {
  test(
    `an aborted settle is a BLOCK at once, while ${when}`,
    { tags: ["error.fail-closed-default"], timeout: hangMs },
    async (t) => {
      const server = await startServer([escalated, ...answers], "");
      try {
        const gate = new SvcGate(server.url, { apiKey: "k", timeoutMs: 3_600_000 });
        const { settle } = gate;
        const stop = new AbortController();
        const verdict = await gate.check("payment.send", { amount: 10 });
        stretchPauses(t);
        const settling = settle(verdict, "payment.send", { amount: 10 }, null, { signal: stop.signal });
        while (server.attempts() < 1 + answers.length) await pause(10);
        await pause(50);
        stop.abort();
        const settled = await settling;
        assert.equal(settled.verdict, "BLOCK");
        says("settle-stopped", settled.reason);
      } finally {
        await server.stop();
      }
    },
  );
}

test("a settle asks nothing more when its time is over, though timers fire early", async (t) => {
  const pending = { json: open };
  const server = await startServer([escalated, pending], "");
  try {
    const gate = new SvcGate(server.url, { apiKey: "k" });
    const verdict = await gate.check("payment.send", { amount: 10 });
    const set = globalThis.setTimeout;
    const early = (run: () => void, ms = 0): NodeJS.Timeout => set(run, Math.max(0, ms - 20));
    t.mock.method(globalThis, "setTimeout", early as typeof set);
    // short wait: the case is about the time-out
    const settled = await gate.settle(verdict, "payment.send", { amount: 10 }, null, { timeoutMs: 300 });
    assert.equal(settled.verdict, "BLOCK");
    // Once at the start, and at most once after the pause of 200 ms.
    assert.ok(server.attempts() <= 3, `${server.attempts()} requests`);
  } finally {
    await server.stop();
  }
});

test("the clients' own mistakes in a settle are a BLOCK", { tags: ["client.never-raises"] }, async () => {
  const server = await startServer([escalated], "");
  try {
    const gate = new SvcGate(server.url, { apiKey: "k" });
    const verdict = await gate.check("payment.send", { amount: 10 });
    // @ts-expect-error -- a time-out that is a text
    const settled = await gate.settle(verdict, "payment.send", { amount: 10 }, null, { timeoutMs: "5" });
    assert.equal(settled.verdict, "BLOCK");
    assert.equal(server.attempts(), 1);
  } finally {
    await server.stop();
  }
});

function fileOf(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}
