/** Clients that are broken on purpose, each in one place: the table of cases must notice every one. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { mutatedFile, type Mutation } from "./mutation/mutate.ts";
import { mutatedPython } from "./mutation/python.ts";

type Mutant = {
  readonly fault: string;
  readonly client: "python" | "javascript";
  /** Several changes if a second check would hide the fault. */
  readonly mutations: readonly Mutation[];
  /** Cases that must fail. */
  readonly noticed: readonly string[];
};

const sources = { python: "../../clients/python/svc_gate.py", javascript: "../../clients/javascript/svc-gate.mjs" };

export const mutants: readonly Mutant[] = [
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
        within: "requestBody",
        find: 'text.member(",", "tool_input", toolInput, []);',
        put: 'text.put(`,"tool_input":${JSON.stringify(toolInput)}`);',
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
    mutations: [{ within: "_Connection._more", find: "deadline.left()", put: "deadline._seconds" }],
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
];

/** Writes the mutant's source to a file, calls `use` with its path for an adapter's command, and removes the file. */
export async function withMutant<T>(
  { client, mutations }: Mutant,
  python: string,
  use: (place: string) => Promise<T>,
): Promise<T> {
  const source = fileURLToPath(new URL(sources[client], import.meta.url));
  const text = client === "python" ? mutatedPython(python, source, mutations) : mutatedFile(source, mutations);
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-mutant-"));
  try {
    const file = join(folder, basename(source));
    writeFileSync(file, text);
    return await use(client === "python" ? folder : file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
