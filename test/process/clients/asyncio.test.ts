/**
 * Goal: cancellation of the asyncio client fails closed and leaves no thread, and waits do not delay checks. Method: a
 * program uses the client against a scripted server, and this test tells it when the server delays its requests. Each
 * test runs the same program with broken clients, and must notice them.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { suite, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Exchange } from "../../../clients/conformance/case.ts";
import { runtimes } from "../../../clients/conformance/runtimes.ts";
import { startServer } from "../../../clients/conformance/server.ts";
import { withMutant, type Mutant } from "../../support/client-mutants.ts";
import { control } from "../../support/controls/control.ts";

type Broken = Omit<Mutant, "noticed">;
type Situation = {
  readonly title: string;
  readonly script: string;
  readonly server: readonly Exchange[];
  /** The program goes on when the server has started this number of exchanges. */
  readonly goOnAt?: number;
  readonly prints: string;
  /** The number of exchanges at the end, if it is certain. */
  readonly attempts?: number;
  readonly broken: readonly Broken[];
};

const pythons = runtimes().found.filter(({ name }) => name.startsWith("python"));
const tested = [...new Set([pythons.at(0), pythons.at(-1)])].filter((found) => found !== undefined);
const newest = tested.at(-1)?.command[0];
const folder = fileURLToPath(new URL("../../../clients/python", import.meta.url));

/** A correct client needs only a moment; a broken one never comes to an end. */
const patience = { correct: 60, broken: 3 };

const open = { id: "apr_1_ab", status: "pending", next: "wait" };
const paused = { send: "" };
const approved = { json: { ...open, status: "approved", next: "check" } };
const allowed = { json: { verdict: "ALLOW", reason: "Svc: fine", mode: "enforce" } };

const preamble = `
import asyncio, os, sys, threading, time
sys.path.insert(0, sys.argv[1])
import svc_gate_async
from svc_gate import SvcGate, Verdict
from svc_gate_async import AsyncGate

PATIENCE = float(sys.argv[3])
CALL = ("payment.send", {"amount": 10})
FIRST = Verdict("ESCALATE", "Svc: a person decides", "enforce", approval={"id": "apr_1_ab", "status": "pending", "next": "wait"})
OPTIONS = dict(url=sys.argv[2], api_key="k", timeout=3600.0, retries=0, fail_open=True)


def go_on():
    return asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)


def threads(name="svc-gate"):
    return sum(each.name.startswith(name) for each in threading.enumerate())


async def cancelled(gate, task, then=lambda: None):
    task.cancel()
    try:
        result = (await task).verdict
    except asyncio.CancelledError:
        result = "cancelled"
    then()
    await gate.close()
    end = time.monotonic() + PATIENCE
    while threads() > 0 and time.monotonic() < end:
        await asyncio.sleep(0.02)
    return result, threads()


async def soon(awaitable):
    try:
        return await asyncio.wait_for(awaitable, PATIENCE)
    except asyncio.TimeoutError:
        return "late"


def run(main):
    print(*asyncio.get_event_loop_policy().new_event_loop().run_until_complete(main()), flush=True)
    os._exit(0)  # a broken client has threads that never end
`;

const settleAndCancel = `
async def main():
    gate = AsyncGate(**OPTIONS)
    task = asyncio.ensure_future(gate.settle(FIRST, *CALL))
    await go_on()
    return await cancelled(gate, task)
run(main)`;
const checkAndCancel = settleAndCancel.replace("gate.settle(FIRST, *CALL)", "gate.check(*CALL)");

const client = "asyncio" as const;
const noStop = (method: string): Broken => ({
  fault: `does not stop the thread of a cancelled ${method}`,
  client,
  mutations: [{ within: `AsyncGate.${method}`, find: "stop.set()", put: "None" }],
});
const deafRead: Broken = {
  fault: "reads an answer without looking at the stop",
  client: "python",
  mutations: [{ within: "_Connection._more", find: "deadline.turn()", put: "deadline.left()" }],
};
const deafDeadline: Broken = {
  fault: "sends a request after the stop",
  client: "python",
  mutations: [{ within: "_Deadline.left", find: "self._stop and self._stop.is_set()", put: "False" }],
};
const ownVerdict = (method: string, args: string): Broken => ({
  fault: `answers a cancelled ${method} with a verdict`,
  client,
  mutations: [
    { within: `AsyncGate.${method}`, find: "Exception", put: "BaseException" },
    { within: `AsyncGate.${method}`, find: "self._failed()", put: args },
  ],
});
const allow = 'Verdict("ALLOW", "Svc: fine", "enforce")';

const situations: readonly Situation[] = [
  {
    title: "a settle that is cancelled while the gate holds the wait gives no verdict and ends its thread",
    script: settleAndCancel,
    server: [paused],
    goOnAt: 1,
    prints: "cancelled 0",
    attempts: 1,
    broken: [noStop("settle"), deafRead, deafDeadline, ownVerdict("settle", allow)],
  },
  {
    title: "a settle that is cancelled while the client pauses gives no verdict and ends its thread",
    script: settleAndCancel,
    server: [{ status: 503 }],
    goOnAt: 1,
    prints: "cancelled 0",
    broken: [noStop("settle"), ownVerdict("settle", allow)],
  },
  {
    title: "a settle that is cancelled while the gate holds its check gives no verdict and ends its thread",
    script: settleAndCancel,
    server: [approved, paused],
    goOnAt: 2,
    prints: "cancelled 0",
    attempts: 2,
    broken: [noStop("settle"), deafRead, ownVerdict("settle", allow)],
  },
  {
    title: "a check that is cancelled gives no verdict and ends its thread, also with fail_open",
    script: checkAndCancel,
    server: [paused],
    goOnAt: 1,
    prints: "cancelled 0",
    attempts: 1,
    broken: [noStop("check"), deafRead, ownVerdict("check", allow)],
  },
  {
    title: "a settle that is cancelled while async facts are read cancels them and uses no approval",
    script: `
async def main():
    gate, begun, ended = AsyncGate(**OPTIONS), asyncio.Event(), []
    async def facts():
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(1)
    task = asyncio.ensure_future(gate.settle(FIRST, *CALL, facts))
    await begun.wait()
    return (*await cancelled(gate, task), len(ended))
run(main)`,
    server: [approved, paused],
    prints: "cancelled 0 1",
    attempts: 1,
    broken: [
      {
        fault: "waits for the facts of a cancelled settle",
        client,
        mutations: [{ within: "_awaited", find: "stop.is_set()", put: "False" }],
      },
    ],
  },
  {
    title: "a settle that is cancelled while a plain function reads the facts uses no approval afterwards",
    script: `
async def main():
    gate, begun, go, loop = AsyncGate(**OPTIONS), asyncio.Event(), threading.Event(), asyncio.get_running_loop()
    def facts():
        loop.call_soon_threadsafe(begun.set)
        go.wait()
        return {}
    task = asyncio.ensure_future(gate.settle(FIRST, *CALL, facts))
    await begun.wait()
    return await cancelled(gate, task, go.set)
run(main)`,
    server: [approved, paused],
    prints: "cancelled 0",
    attempts: 1,
    broken: [noStop("settle"), deafDeadline],
  },
  {
    title: "a settle whose stop is set by another thread is a BLOCK, also with fail_open",
    script: `
gate, stop, results = SvcGate(**OPTIONS), threading.Event(), ["late"]
thread = threading.Thread(target=lambda: results.append(gate.settle(FIRST, *CALL, stop=stop)), daemon=True)
thread.start()
sys.stdin.readline()
stop.set()
thread.join(PATIENCE)
print(getattr(results[-1], "reason", "late"), flush=True)
os._exit(0)`,
    server: [approved, paused],
    goOnAt: 2,
    prints: "Svc: the wait for a person was stopped; the action is blocked.",
    attempts: 2,
    broken: [
      deafRead,
      {
        fault: "fails open for a stopped check",
        client: "python",
        mutations: [
          { within: "SvcGate.settle", find: "stop and stop.is_set()", put: "False" },
          { within: "_Deadline.left", find: "_Transport(_STOPPED, fails_open=False)", put: "_Transport(_STOPPED)" },
        ],
      },
    ],
  },
  {
    title: "waits for a person take a bounded number of threads, and do not delay a check or a verdict that is decided",
    script: `
async def main():
    svc_gate_async._THREADS_MAX = 1
    gate = AsyncGate(**OPTIONS)
    waits = [asyncio.ensure_future(gate.settle(FIRST, *CALL)) for _ in range(3)]
    await go_on()
    verdict = await soon(gate.check(*CALL))
    settled = verdict if verdict == "late" else await soon(gate.settle(verdict, *CALL))
    return getattr(verdict, "verdict", verdict), getattr(settled, "verdict", settled), threads("svc-gate-wait")
run(main)`,
    server: [paused, allowed],
    goOnAt: 1,
    prints: "ALLOW ALLOW 1",
    attempts: 2,
    broken: [
      {
        fault: "waits in the threads of the checks",
        client,
        mutations: [{ within: "AsyncGate.settle", find: "self._run(True, settled)", put: "self._run(False, settled)" }],
      },
      {
        fault: "lets a decided verdict wait for a thread",
        client,
        mutations: [
          { within: "AsyncGate.settle", find: "isinstance(verdict, Verdict) and not verdict.escalated", put: "False" },
        ],
      },
    ],
  },
  {
    title: "without a new thread, check and settle are a BLOCK and an outcome is not recorded",
    script: `
def refuse(*_):
    raise RuntimeError("can't start new thread")
async def main():
    gate, threading.Thread.start = AsyncGate(**OPTIONS), refuse
    results = []
    for call in (gate.check(*CALL), gate.settle(FIRST, *CALL), gate.outcome(FIRST, "done")):
        try:
            result = await call
            results.append(getattr(result, "verdict", result is not None))
        except Exception:
            results.append("raised")
    return results
run(main)`,
    server: [allowed],
    prints: "BLOCK BLOCK True",
    attempts: 0,
    broken: ["check", "settle", "outcome"].map((method) => ({
      fault: `raises from ${method}`,
      client,
      mutations: [{ within: `AsyncGate.${method}`, find: "Exception", put: "KeyError" }],
    })),
  },
  {
    title: "a forked process has threads of its own",
    script: `
gate = AsyncGate(**OPTIONS)
async def main():
    return (getattr(await soon(gate.check(*CALL)), "verdict", "late"),)
print(*asyncio.run(main()), flush=True)
time.sleep(0.5)  # the thread is idle again, so that a pool of the parent would give it the next call
if os.fork() == 0:
    run(main)
os.wait()
os._exit(0)`,
    server: [allowed],
    prints: "ALLOW\nALLOW",
    attempts: 2,
    broken: [
      {
        fault: "keeps the threads of the parent process",
        client,
        mutations: [{ within: "AsyncGate._run", find: "self._process != os.getpid()", put: "False" }],
      },
    ],
  },
];

suite("the asyncio client", { tags: ["error.fail-closed-default", "client.never-raises"], concurrency: 3 }, () => {
  for (const situation of situations) {
    for (const { name, command } of tested) {
      test(`${situation.title} (${name})`, async () => {
        const found = await observed(situation, command[0] ?? "", folder, patience.correct);
        assert.deepEqual(found, expected(situation, found));
      });
    }
    for (const broken of situation.broken) {
      const skip = newest === undefined ? "no Python is installed here" : false;
      control(`positive control: ${situation.title}: a client that ${broken.fault} is noticed`, { skip }, async () => {
        const found = await withMutant({ ...broken, noticed: [] }, newest ?? "", (clientFolder) =>
          observed(situation, newest ?? "", clientFolder, patience.broken),
        );
        assert.doesNotMatch(found.printed, /Traceback/);
        assert.notDeepEqual(found, expected(situation, found));
      });
    }
  }
});

test("the methods of AsyncGate have the parameters of SvcGate, except for the stop", (t) => {
  if (newest === undefined) return t.skip("no Python is installed here");
  const script = `
import inspect
def public(of):
    return {name: list(inspect.signature(method).parameters.values()) for name, method in vars(of).items()
            if inspect.isfunction(method) and (name == "__init__" or name[0] != "_")}
def shown(of):
    return {name: [(each.name, each.default) for each in given if each.name != "stop"] for name, given in public(of).items()}
print(shown(SvcGate) == shown(AsyncGate), len(shown(AsyncGate)))`;
  return run(newest, folder, { script, url: "http://127.0.0.1:4", seconds: 1 }).printed.then((printed) =>
    assert.equal(printed, "True 9"),
  );
});

type Found = { readonly printed: string; readonly attempts: number };

function expected({ prints, attempts }: Situation, found: Found): Found {
  return { printed: prints, attempts: attempts ?? found.attempts };
}

/** Runs the situation's program. Returns its output and the number of exchanges. */
async function observed(situation: Situation, python: string, clientFolder: string, seconds: number): Promise<Found> {
  const server = await startServer(situation.server, "");
  try {
    const program = run(python, clientFolder, { script: situation.script, url: server.url, seconds });
    const isOver = program.printed.then(() => true);
    while (server.attempts() < (situation.goOnAt ?? 0) && !(await Promise.race([isOver, pause(10, false)])));
    // The request has arrived, and a moment later the client waits for the answer. A stop before that is another case.
    await pause(300);
    program.goOn();
    return { printed: await program.printed, attempts: server.attempts() };
  } finally {
    await server.stop();
  }
}

function run(
  python: string,
  clientFolder: string,
  { script, url, seconds }: { readonly script: string; readonly url: string; readonly seconds: number },
): { readonly printed: Promise<string>; readonly goOn: () => void } {
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1" };
  const child = spawn(python, ["-W", "ignore", "-c", preamble + script, clientFolder, url, String(seconds)], { env });
  child.stdin.on("error", () => {}); // the program may have ended
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (text += chunk));
  return {
    printed: once(child, "close").then(() => text.trim()),
    goOn: () => void child.stdin.write("\n"),
  };
}
