/** What became of calls that a server runs as tasks (MCP 2025-11-25). */
import type { Verdict } from "../../../../clients/javascript/svc-gate.mjs";
import { isObject, textIn, type JsonRecord } from "./json.ts";
import { RecentMap } from "./recent.ts";

/** Tasks whose end nobody has seen: the oldest is forgotten, and has no outcome. */
const tasksMax = 10_000;

export class Tasks {
  readonly #verdicts = new RecentMap<string, readonly Verdict[]>(tasksMax);

  /** Remembers the task that answers a call. Returns false if the result is not a task. */
  start(result: JsonRecord | undefined, verdicts: readonly Verdict[]): boolean {
    const id = textIn(result?.["task"], "taskId");
    if (id === undefined) return false;
    this.#verdicts.set(id, verdicts);
    return true;
  }

  /** Returns the verdicts of a task that has ended, once. */
  end(
    id: string | undefined,
    state: unknown,
  ): { verdicts: readonly Verdict[]; status: "done" | "unknown" } | undefined {
    const verdicts = id === undefined ? undefined : this.#verdicts.get(id);
    if (id === undefined || verdicts === undefined) return undefined;
    const status = taskStatusOf(state);
    if (status === undefined) return undefined;
    this.#verdicts.delete(id);
    return { verdicts, status };
  }
}

/** A task that failed or was cancelled may have done something. */
function taskStatusOf(state: unknown): "done" | "unknown" | undefined {
  if (!isObject(state)) return undefined;
  if (state["status"] === "completed") return "done";
  return state["status"] === "failed" || state["status"] === "cancelled" ? "unknown" : undefined;
}
