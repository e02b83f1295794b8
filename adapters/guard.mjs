/**
 * The part that all adapters share: it asks the gate about a call, and says whether the tool may run.
 *
 * An adapter translates between this guard and its framework. So a reviewer reads the code of the decision only once. The
 * module imports nothing. Types and promises of each function: guard.d.mts. The rules: README.md.
 */

const factsFailed = "Svc: the facts about this call could not be read; the action is blocked.";
const notReached = "Svc: the gate gave no verdict; the action is blocked.";
const changed = "Svc: the arguments changed while the gate was asked; the action is blocked.";
const givenUp = "Svc: the run was stopped while the gate was asked; the action is blocked.";
const usedUp = "Svc: the verdict of this call was already used; the action is blocked.";
const optionNames = ["gate", "facts", "onEscalate", "waitMs", "log"];

/** Judgements with which a tool has started. */
const used = new WeakSet();

export function guardOf(settings, { ways = ["refuse", "wait"], grant = false } = {}) {
  const { gate, facts = () => undefined, onEscalate = "refuse", waitMs = 900_000, log = console.error } = settings;
  const unknown = Object.keys(settings).find((name) => !optionNames.includes(name));
  if (unknown !== undefined)
    throw new TypeError(`unknown setting ${unknown}: the settings are ${optionNames.join(", ")}`);
  if (typeof gate !== "function" && typeof gate?.check !== "function")
    throw new TypeError("gate must be a SvcGate, or a function that returns the SvcGate of a call");
  if (typeof facts !== "function") throw new TypeError("facts must be a function");
  if (!ways.includes(onEscalate)) throw new TypeError(`onEscalate must be one of ${ways.join(", ")}`);
  if (typeof waitMs !== "number" || !(waitMs >= 0)) throw new TypeError("waitMs must be a number of milliseconds");
  if (typeof log !== "function") throw new TypeError("log must be a function");
  if (typeof grant !== "boolean") throw new TypeError("grant must be true or false");
  const all = { gate, facts, onEscalate, waitMs, log: safely(log), grant };
  return {
    judge: (call, options) => judge(all, call, options),
    report: (judgement, status) => report(all, judgement, status),
    run: async (call, work, refuse, options) => runJudged(all, await judge(all, call, options), { work, refuse }),
    runJudged: (judgement, work, refuse) => runJudged(all, judgement, { work, refuse }),
  };
}

/** A log that fails must not change the result of a call. */
function safely(log) {
  return (problem) => {
    try {
      log(problem);
    } catch {
      // The log has failed, so nobody can read this error.
    }
  };
}

async function judge(all, call, options) {
  try {
    const text = JSON.stringify(call.input);
    const judgement = await judged(all, call, options);
    if (options?.signal?.aborted) return refusal(givenUp);
    // `facts` and other code can keep the input too. The host may have a copy of the first input.
    return text === JSON.stringify(call.input) ? judgement : refusal(changed);
  } catch (error) {
    all.log(error);
    return refusal("Svc: the adapter itself failed; the action is blocked.");
  }
}

async function judged({ gate: given, facts, onEscalate, waitMs, log, grant }, call, { approval, signal } = {}) {
  const { name, input } = call;
  const gate = typeof given === "function" ? await given(call) : given;
  let snapshot;
  try {
    snapshot = await facts(call);
  } catch (error) {
    log(error);
    return refusal(factsFailed);
  }
  let verdict = await gate.check(name, input, snapshot, approval);
  if (verdict.escalated && onEscalate === "wait") {
    verdict = await gate.settle(verdict, name, input, () => facts(call), { timeoutMs: waitMs, signal });
  } else if (verdict.escalated && approval === undefined && verdict.approval?.next === "check") {
    // A person has approved the call since it was refused or parked: it is checked again, with the approval.
    verdict = await gate.check(name, input, snapshot, verdict.approval.id);
  }
  if (typeof verdict?.allowed !== "boolean") throw new TypeError("the client gave no verdict");
  if (verdict.unreached) log(verdict.reason);
  return judgementOf(verdict, { gate, onEscalate, grant });
}

function judgementOf(verdict, { gate, onEscalate, grant }) {
  const { allowed, escalated, unreached, mode, reason } = verdict;
  const runs = allowed && !(grant && unreached); // fail-open is not a permission
  const asks = escalated ? `${reason}; a person decides: ask again after the decision` : reason;
  return Object.freeze({
    runs,
    grants: runs && !unreached && (mode === "enforce" || mode === "assist"),
    parks: escalated && onEscalate === "park",
    reason: unreached && !runs ? notReached : asks,
    approval: verdict.approval?.id ?? null,
    verdict,
    gate,
  });
}

function refusal(reason) {
  return Object.freeze({ runs: false, grants: false, parks: false, reason, approval: null, verdict: null, gate: null });
}

async function runJudged(all, judgement, { work, refuse }) {
  if (!judgement.runs) return refuse(judgement);
  if (used.has(judgement)) return refuse(refusal(usedUp));
  used.add(judgement);
  let status = "unknown"; // after an error, the tool may have started
  try {
    const result = await work();
    status = "done";
    return result;
  } finally {
    void report(all, judgement, status);
  }
}

async function report({ log }, { runs, verdict, gate }, status) {
  if (!runs || verdict.receipt === null || verdict.mode === "observe") return; // an observing gate lets nothing through
  try {
    const problem = await gate.outcome(verdict, status);
    if (problem) log(problem);
  } catch (error) {
    log(error);
  }
}

/** A tool throws it, in a framework that shows the model the error as the result. */
export class SvcGateRefusal extends Error {
  name = "SvcGateRefusal";

  constructor({ reason, approval }) {
    super(reason);
    this.approval = approval;
  }
}

export function gateName(tool, server) {
  if (typeof tool !== "string" || tool === "") return undefined;
  if (server === undefined) return tool.includes(".") ? undefined : tool;
  if (typeof server !== "string" || server === "") return undefined;
  return `${escaped(server)}.${escaped(tool)}`;
}

export function nameProblem(tool, server) {
  if (typeof tool !== "string" || tool === "") return "a tool has no name";
  if (server !== undefined) return `the server of ${tool} has no name`;
  const alias = tool.replaceAll(".", "_");
  const advice = `name it ${alias}, and write \`aliases: [${alias}]\` below ${tool} in the contract`;
  return `${tool} has a dot, as only tools of MCP servers do: ${advice}`;
}

function escaped(part) {
  const percent = (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  return part.replaceAll(/__+|[^A-Za-z0-9_-]/gu, (text) =>
    Array.from(new TextEncoder().encode(text), percent).join(""),
  );
}
