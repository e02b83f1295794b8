/** Runs cases from standard input, a JSON line each, against the client whose source the argument names. */
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { built } from "./inputs.mjs";

const { SvcGate, SvcGateError } = await import(pathToFileURL(process.argv[2]).href);

async function call(gate, { method, pause_ms = 0, ...asked }) {
  await pause(pause_ms);
  const started = performance.now();
  const { tool_name: toolName, session_id: sessionId, ...others } = built(asked);
  try {
    if (method === "outcome") {
      const { receipt, status, ...details } = others;
      return { returns: await gate.outcome({ receipt }, status, details) };
    }
    if (!["check", "settle"].includes(method)) {
      return { returns: await gate[method]({ ...others, toolName, sessionId }) };
    }
    const verdict = await gate.check(toolName, others.tool_input, others.platform_state, others.approval);
    const last = method === "check" ? verdict : await settle(gate, verdict, { toolName, ...others });
    return { verdict: last, ms: performance.now() - started };
  } catch (error) {
    if (!(error instanceof SvcGateError)) return { raised: "not an SvcGateError" };
    return { fails: { status: error.status, code: error.code, detail: error.detail, message: error.message } };
  }
}

/** Settles with the facts of the case: a list has the facts of each call of the function. */
function settle(gate, verdict, { toolName, tool_input: toolInput, facts, timeout_ms: timeoutMs }) {
  const next = () => {
    if (facts.length === 0) throw new Error("no more facts");
    return facts.shift();
  };
  return gate.settle(verdict, toolName, toolInput, Array.isArray(facts) ? next : facts, { timeoutMs });
}

async function run({ id, calls, at_once, options }) {
  const { url, api_key: apiKey, session_id: sessionId, timeout_ms: timeoutMs, fail_open, ...others } = built(options);
  try {
    const gate = new SvcGate(url, { apiKey, sessionId, timeoutMs, failOpen: fail_open, ...others });
    const results = at_once ? await Promise.all(calls.map((one) => call(gate, one))) : [];
    if (!at_once) for (const one of calls) results.push(await call(gate, one));
    return { id, session_id: gate.sessionId, results };
  } catch (error) {
    return { id, construction: error.message };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  void run(JSON.parse(line)).then((result) => process.stdout.write(`${JSON.stringify(result)}\n`));
}
