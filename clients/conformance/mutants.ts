/**
 * Clients that are broken on purpose, each in one place: the table of cases must notice every one of them. A mutant is
 * a change of the real source's text; it is an error when that text is no longer there.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export type Mutant = {
  readonly fault: string;
  readonly client: "python" | "javascript";
  readonly from: string;
  readonly to: string;
  /** A second line of defence, which hides the fault unless it falls too. */
  readonly also?: { readonly from: string; readonly to: string };
  /** Cases that must fail. */
  readonly noticed: readonly string[];
};

const sources = { python: "../python/svc_gate.py", javascript: "../javascript/svc-gate.mjs" };

export const mutants: readonly Mutant[] = [
  {
    fault: "follows redirects",
    client: "javascript",
    from: 'redirect: "manual"',
    to: 'redirect: "follow"',
    noticed: ["status-302", "status-307", "status-308", "redirect-same-origin", "all-cases-together"],
  },
  {
    fault: "reads verdicts in any case",
    client: "javascript",
    from: '.includes(verdict)) {\n    throw unreadable("its verdict',
    to: '.includes(String(verdict).toUpperCase())) {\n    throw unreadable("its verdict',
    noticed: ["verdict-allow", "verdict-Allow", "verdict-block"],
  },
  {
    fault: "tries again after a 5xx",
    client: "javascript",
    from: "if (response.status !== 200 && !whole)",
    to: 'if (response.status >= 500) throw transport("");\n      if (response.status !== 200 && !whole)',
    noticed: ["status-500", "status-503", "retry-after"],
  },
  {
    fault: "stops the clock at the head of the answer",
    client: "javascript",
    from: "if (response.status !== 200 && !whole)",
    to: "clearTimeout(timer);\n      if (response.status !== 200 && !whole)",
    noticed: ["trickled-body"],
  },
  {
    fault: "obeys proxy variables",
    client: "javascript",
    from: "dispatcher: direct()",
    to: "dispatcher: undefined",
    noticed: ["all-cases-together", "request"],
  },
  {
    fault: "fails open for what the agent chooses",
    client: "javascript",
    from: "(${status})`, { failsOpen: false });",
    to: "(${status})`);",
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
    from: 'text.member(",", "tool_input", toolInput, []);',
    to: 'text.put(`,"tool_input":${JSON.stringify(toolInput)}`);',
    noticed: ["input-nan", "input-map", "input-date", "input-gap", "input-to-json"],
  },
  {
    fault: "sends the key to /health",
    client: "javascript",
    from: ' && path !== "/health"',
    to: "",
    noticed: ["health"],
  },
  {
    fault: "keeps a connection in the middle of an answer",
    client: "python",
    from: "if reusable and self._open",
    to: "if self._open",
    also: { from: "if connection.is_fresh():", to: "if True:" },
    noticed: ["late-answer", "late-rest", "unread-refusal"],
  },
  {
    fault: "believes that an idle connection is alive",
    client: "python",
    from: "self._socket.recv(1)\n",
    to: "return True\n",
    noticed: ["closed-after-answer-no-retry"],
  },
  {
    fault: "starts the clock anew with every byte",
    client: "python",
    from: "self._socket.settimeout(deadline.left())\n        received",
    to: "self._socket.settimeout(deadline._seconds)\n        received",
    noticed: ["trickled-body", "trickled-chunks"],
  },
  {
    fault: "reads verdicts in any case",
    client: "python",
    from: 'verdict not in ("ALLOW"',
    to: 'verdict.upper() not in ("ALLOW"',
    noticed: ["verdict-allow", "verdict-block"],
  },
  {
    fault: "takes any success for an answer",
    client: "python",
    from: "    if answer.status != 200:\n        raise _refusal",
    to: "    if not 200 <= answer.status < 300:\n        raise _refusal",
    noticed: ["status-201", "status-204", "status-206"],
  },
  {
    fault: "believes an answer to another request",
    client: "python",
    from: 'receipt["request"] != request_digest',
    to: "False",
    noticed: ["receipt-request-other", "answer-of-another"],
  },
  {
    fault: "gives every client the same session",
    client: "python",
    from: "str(uuid.uuid4()) if",
    to: '"00000000-0000-4000-8000-000000000000" if',
    noticed: ["all-cases-together"],
  },
  {
    fault: "never tries again",
    client: "python",
    from: "if attempt == self._retries:",
    to: "if attempt <= self._retries:",
    noticed: ["reset-head", "retries-1-hung", "recovers-mid-body", "closed-under-request"],
  },
];

/** Calls `use` with the place of the mutant's source, as an adapter's command wants it, and removes it afterwards. */
export async function withMutant<T>(mutant: Mutant, use: (place: string) => Promise<T>): Promise<T> {
  const path = sources[mutant.client];
  const text = readFileSync(fileURLToPath(new URL(path, import.meta.url)), "utf8");
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-mutant-"));
  try {
    const file = join(folder, path.split("/").at(-1) ?? "");
    writeFileSync(file, [mutant, ...(mutant.also ? [mutant.also] : [])].reduce(changed, text));
    return await use(mutant.client === "python" ? folder : file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function changed(text: string, { from, to }: { readonly from: string; readonly to: string }): string {
  if (text.split(from).length !== 2) throw new Error(`the source has not exactly one ${JSON.stringify(from)}`);
  return text.replace(from, () => to);
}
