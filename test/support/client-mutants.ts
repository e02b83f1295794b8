/** Clients that are broken on purpose, each in one function: the table of cases must notice every one. */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { mutatedFile, type Mutation } from "./mutation/mutate.ts";
import { mutatedPython } from "./mutation/python.ts";

export type Mutant = {
  readonly fault: string;
  readonly client: "python" | "asyncio" | "javascript";
  /** Several changes if a second check would hide the fault. */
  readonly mutations: readonly Mutation[];
  /** Cases that must fail. */
  readonly noticed: readonly string[];
};

const sources = {
  python: "../../clients/python/svc_gate.py",
  asyncio: "../../clients/python/svc_gate_async.py",
  javascript: "../../clients/javascript/svc-gate.mjs",
};

export const mutants: readonly Mutant[] = [
  {
    fault: "calls an outcome recorded without the gate's 200",
    client: "javascript",
    mutations: [{ within: "SvcGate.outcome", find: "if (answer.status === 200) return null;", put: "return null;" }],
    noticed: ["outcome-refused", "outcome-ill", "outcome-redirect", "outcome-fail-open"],
  },
  {
    fault: "leaves out an amount of zero",
    client: "javascript",
    mutations: [{ within: "SvcGate.outcome", find: "amount ?? undefined", put: "amount || undefined" }],
    noticed: ["outcome-nothing"],
  },
  {
    fault: "follows redirects",
    client: "javascript",
    mutations: [{ within: "SvcGate.#ask", find: '"manual"', put: '"follow"' }],
    noticed: ["status-302", "status-307", "status-308", "redirect-same-origin", "all-cases-together"],
  },
  {
    fault: "reads verdicts in any case",
    client: "javascript",
    mutations: [
      { within: "verdictIn", find: "$known.includes(verdict)", put: "$known.includes(String(verdict).toUpperCase())" },
    ],
    noticed: ["verdict-allow", "verdict-Allow", "verdict-block"],
  },
  {
    fault: "tries again after a 5xx",
    client: "javascript",
    mutations: [
      {
        within: "SvcGate.#attempt",
        find: "if (response.status !== 200 && !whole) $answer;",
        put: 'if (response.status >= 500) throw transport(""); $found',
      },
    ],
    noticed: ["status-500", "status-503", "retry-after"],
  },
  {
    fault: "stops the clock at the head of the answer",
    client: "javascript",
    mutations: [
      {
        within: "SvcGate.#attempt",
        find: "if (response.status !== 200 && !whole) $answer;",
        put: "clearTimeout(timer); $found",
      },
    ],
    noticed: ["trickled-body"],
  },
  {
    fault: "obeys proxy variables",
    client: "javascript",
    mutations: [{ within: "SvcGate.#ask", find: "direct()", put: "undefined" }],
    noticed: ["all-cases-together", "request"],
  },
  {
    fault: "fails open for what the agent chooses",
    client: "javascript",
    mutations: [{ within: "refusal", find: "new Trouble($why, { failsOpen: false })", put: "new Trouble($why)" }],
    noticed: [
      "status-400+fail-open",
      "status-413+fail-open",
      "status-415+fail-open",
      "status-422+fail-open",
      "status-429+fail-open",
    ],
  },
  {
    fault: "writes JSON as the language does",
    client: "javascript",
    mutations: [
      {
        within: "jsonBody",
        find: "text.member(separator, name, value, []);",
        put: 'if (name === "tool_input") text.put(`${separator}"tool_input":${JSON.stringify(value)}`); else $found',
      },
    ],
    noticed: ["input-nan", "input-map", "input-date", "input-gap", "input-to-json"],
  },
  {
    fault: "sends the key to /health",
    client: "javascript",
    mutations: [{ within: "SvcGate.#ask", find: 'path !== "/health"', put: "true" }],
    noticed: ["health"],
  },
  {
    fault: "takes an approval for a verdict",
    client: "javascript",
    mutations: [
      {
        within: "SvcGate.#decided",
        find: "return latest;",
        put: 'return verdictOf("ALLOW", latest.reason, latest.mode, latest);',
      },
    ],
    noticed: ["settle-approved", "settle-refused-again", "settle-second-denied", "settle-check-lost"],
  },
  {
    fault: "checks an approved call without fresh facts",
    client: "javascript",
    mutations: [{ within: "SvcGate.settle", find: "await facts()", put: "undefined" }],
    noticed: ["settle-approved", "settle-second", "settle-facts-fail"],
  },
  {
    fault: "asks without a pause while a call waits for a person",
    client: "javascript",
    mutations: [{ within: "SvcGate.#decided", find: "pauseMs = 200", put: "pauseMs = 0" }],
    noticed: ["settle-late"],
  },
  {
    fault: "believes the status of another approval",
    client: "javascript",
    mutations: [{ within: "approvalIn", find: "found.id !== id", put: "false" }],
    noticed: ["settle-other-id", "settle-no-id"],
  },
  {
    fault: "gives up a wait if the gate restarts",
    client: "javascript",
    mutations: [{ within: "approvalIn", find: "answer.status >= 500", put: "false" }],
    noticed: ["settle-restart"],
  },
  {
    fault: "fails open while a call waits for a person",
    client: "javascript",
    mutations: [
      {
        within: "SvcGate.#decided",
        find: "this.#unreached(late.what, false)",
        put: "this.#unreached(late.what, this.#failOpen)",
      },
    ],
    noticed: ["settle-503+fail-open", "settle-broken+fail-open", "settle-hung+fail-open"],
  },
  {
    fault: "says that a refused outcome was recorded",
    client: "python",
    mutations: [{ within: "SvcGate.outcome", find: "answer.status == 200", put: "answer.status < 500" }],
    noticed: ["outcome-refused", "outcome-redirect"],
  },
  {
    fault: "keeps a connection in the middle of an answer",
    client: "python",
    mutations: [
      { within: "SvcGate._attempt", find: "reusable and self._open and $room", put: "self._open and $room" },
      { within: "SvcGate._kept", find: "connection.is_fresh()", put: "True" },
    ],
    noticed: ["late-answer", "late-rest", "unread-refusal"],
  },
  {
    fault: "believes that an idle connection is alive",
    client: "python",
    mutations: [{ within: "_Connection.is_fresh", find: "self._socket.recv(1)", put: "return True" }],
    noticed: ["closed-after-answer-no-retry"],
  },
  {
    fault: "restarts the clock with every byte",
    client: "python",
    mutations: [{ within: "_Connection._more", find: "deadline.turn()", put: "deadline._seconds" }],
    noticed: ["trickled-body", "trickled-chunks"],
  },
  {
    fault: "reads verdicts in any case",
    client: "python",
    mutations: [{ within: "_verdict_in", find: "verdict not in $known", put: "verdict.upper() not in $known" }],
    noticed: ["verdict-allow", "verdict-block"],
  },
  {
    fault: "takes any success for an answer",
    client: "python",
    mutations: [{ within: "_verdict_in", find: "answer.status != 200", put: "not 200 <= answer.status < 300" }],
    noticed: ["status-201", "status-204", "status-206"],
  },
  {
    fault: "believes an answer to another request",
    client: "python",
    mutations: [{ within: "_verdict_in", find: 'receipt["request"] != request_digest', put: "False" }],
    noticed: ["receipt-request-other", "answer-of-another"],
  },
  {
    fault: "gives every client the same session",
    client: "python",
    mutations: [
      { within: "SvcGate.__init__", find: "str(uuid.uuid4())", put: '"00000000-0000-4000-8000-000000000000"' },
    ],
    noticed: ["all-cases-together"],
  },
  {
    fault: "never tries again",
    client: "python",
    mutations: [{ within: "SvcGate._ask", find: "attempt == self._retries", put: "attempt <= self._retries" }],
    noticed: ["reset-head", "retries-1-hung", "recovers-mid-body", "closed-under-request"],
  },
  {
    fault: "does not name the approval of a call",
    client: "python",
    mutations: [{ within: "_request_body", find: "approval is not None", put: "False" }],
    noticed: ["approval-sent", "settle-approved", "settle-second"],
  },
  {
    fault: "puts any id into an address",
    client: "python",
    mutations: [
      { within: "SvcGate._decided", find: 're.fullmatch("[0-9A-Za-z_-]{1,100}", name)', put: "len(name) > 0" },
    ],
    noticed: ["settle-id-1", "settle-id-2", "settle-id-3", "settle-id-4", "settle-id-5", "settle-id-8"],
  },
  {
    fault: "sends a failed wait again without a pause",
    client: "python",
    mutations: [{ within: "SvcGate._ask", find: "wait > 0", put: "False" }],
    noticed: ["settle-broken"],
  },
  {
    fault: "ends a wait at the time-out of a check",
    client: "python",
    mutations: [{ within: "SvcGate._ask", find: "self._timeout + wait", put: "self._timeout" }],
    noticed: ["settle-held", "settle-hung"],
  },
  {
    fault: "checks an approved call again without a pause",
    client: "python",
    mutations: [{ within: "SvcGate.settle", find: "min(pause, end - time.monotonic())", put: "0.0" }],
    noticed: ["settle-same-again"],
  },
  {
    fault: "fails open while a call waits for a person",
    client: "python",
    mutations: [
      {
        within: "SvcGate._decided",
        find: "self._unreached(late.what, False)",
        put: "self._unreached(late.what, self._fail_open)",
      },
    ],
    noticed: ["settle-503+fail-open", "settle-broken+fail-open", "settle-hung+fail-open"],
  },
  {
    fault: "draws a new call_id for a retry",
    client: "python",
    mutations: [
      {
        within: "SvcGate._ask",
        find: "self._attempt(request, limit, whole, $deadline)",
        put: "self._attempt(request[:-3] + b'%x\"}' % attempt if b'call_id' in request else request, limit, whole, $deadline)",
      },
    ],
    noticed: ["repeat-lost", "repeat-settle"],
  },
  {
    fault: "accepts a repeated answer that it did not ask for",
    client: "python",
    mutations: [{ within: "_verdict_in", find: 'answer.is_first and found.get("repeated") is True', put: "False" }],
    noticed: ["repeat-not-asked", "repeat-not-asked-default"],
  },
  {
    fault: "refuses every repeated answer",
    client: "python",
    mutations: [
      {
        within: "_verdict_in",
        find: 'answer.is_first and found.get("repeated") is True',
        put: 'found.get("repeated") is True',
      },
    ],
    noticed: ["repeat-lost", "repeat-settle"],
  },
  {
    fault: "sends no call_id with an approval",
    client: "python",
    mutations: [
      {
        within: "SvcGate.settle",
        find: "self._checked(tool_name, tool_input, state, decided, True, stop)",
        put: "self._checked(tool_name, tool_input, state, decided, False, stop)",
      },
    ],
    noticed: ["repeat-settle", "repeat-settle-second"],
  },
  {
    fault: "draws one call_id for the whole client",
    client: "javascript",
    mutations: [{ within: "SvcGate.#checked", find: 'randomBytes(16).toString("hex")', put: '"0".repeat(32)' }],
    noticed: ["repeat-own", "repeat-settle-second"],
  },
  {
    fault: "accepts a repeated answer that it did not ask for",
    client: "javascript",
    mutations: [{ within: "verdictIn", find: "answer.isFirst && repeated === true", put: "false" }],
    noticed: ["repeat-not-asked", "repeat-not-asked-default"],
  },
  {
    fault: "sends no call_id with an approval",
    client: "javascript",
    mutations: [
      {
        within: "SvcGate.settle",
        find: "{ ...call, idempotent: true, signal }",
        put: "{ ...call, idempotent: false, signal }",
      },
    ],
    noticed: ["repeat-settle", "repeat-settle-second"],
  },
  {
    fault: "does not name the approval of a call",
    client: "asyncio",
    mutations: [{ within: "AsyncGate.check", find: "approval", put: "None" }],
    noticed: ["approval-sent"],
  },
  {
    fault: "forgets that checks are idempotent",
    client: "asyncio",
    mutations: [{ within: "AsyncGate.check", find: "gate._idempotent", put: "False" }],
    noticed: ["repeat-lost", "repeat-own"],
  },
  {
    fault: "fails open though the option is off",
    client: "asyncio",
    mutations: [{ within: "AsyncGate.__init__", find: "fail_open", put: "True" }],
    noticed: ["status-500", "reset-head"],
  },
  {
    fault: "checks an approved call without fresh facts",
    client: "asyncio",
    mutations: [
      {
        within: "AsyncGate.settle",
        find: "functools.partial(_awaited, facts, loop, stop) if callable(facts) else facts",
        put: "None",
      },
    ],
    noticed: ["settle-approved", "settle-second", "settle-facts-fail"],
  },
  {
    fault: "does not await the facts",
    client: "asyncio",
    mutations: [{ within: "_awaited", find: "inspect.isawaitable(found)", put: "False" }],
    noticed: ["settle-approved", "settle-second"],
  },
  {
    fault: "leaves out the amount of an outcome",
    client: "asyncio",
    mutations: [{ within: "AsyncGate.outcome", find: "amount", put: "None" }],
    noticed: ["outcome-all", "outcome-nothing"],
  },
];

/** Writes the mutant's source to a file, calls `use` with its path for an adapter's command, and removes the file. */
export async function withMutant<T>(
  { client, mutations }: Mutant,
  python: string,
  use: (place: string) => Promise<T>,
): Promise<T> {
  const source = fileURLToPath(new URL(sources[client], import.meta.url));
  const isPython = client !== "javascript";
  const text = isPython ? mutatedPython(python, source, mutations) : mutatedFile(source, mutations);
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-mutant-"));
  try {
    const file = join(folder, basename(source));
    if (isPython) cpSync(dirname(source), folder, { recursive: true });
    writeFileSync(file, text);
    return await use(isPython ? folder : file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
