/** Runs cases from standard input, a JSON line each, against the client whose source the argument names. */
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { SvcGate, SvcGateError } = await import(pathToFileURL(process.argv[2]).href);
const trap = () => { throw hostile; }; // oxfmt-ignore
const hostile = new Proxy({}, { ownKeys: trap, getPrototypeOf: trap, get: trap });
const cycle = [];
cycle.push(cycle);
const made = {
  nan: NaN,
  infinity: Infinity,
  bytes: new Uint8Array(1),
  set: new Set([1]),
  map: new Map(),
  function: trap,
  date: new Date(),
  exact: 1n,
  instance: new (class Payment {})(),
  big_float: 2 ** 53,
  hostile,
  cycle,
  absent: undefined,
  surrogate: "a\ud800",
  gap: [1, , 3],
  odd_name: { [Symbol("a")]: 1 },
  to_json: { toJSON: trap },
};
const nested = (depth) => (depth === 0 ? {} : { a: nested(depth - 1) });
const many = (inner, length) => Array.from({ length }, () => inner);
function built(value) {
  if (Array.isArray(value)) return value.map(built);
  if (typeof value !== "object" || value === null) return value;
  if ("$text" in value) return value.$text[0].repeat(value.$text[1]);
  if ("$nested" in value) return nested(value.$nested);
  if ("$many" in value) return many(many(many(many(many(0, 10), 10), 10), 10), value.$many);
  if ("$build" in value) return made[value.$build];
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, built(item)]));
}
async function call(gate, { method, pause_ms = 0, ...asked }) {
  await new Promise((resolve) => setTimeout(resolve, pause_ms));
  const [started, { tool_name: toolName, session_id: sessionId, ...others }] = [performance.now(), built(asked)];
  try {
    if (method !== "check") return { returns: await gate[method]({ ...others, toolName, sessionId }) };
    return {
      verdict: await gate.check(toolName, others.tool_input, others.platform_state),
      ms: performance.now() - started,
    };
  } catch (error) {
    if (!(error instanceof SvcGateError)) return { raised: "something" };
    return { fails: { status: error.status, code: error.code, detail: error.detail, message: error.message } };
  }
}
async function run({ id, calls, at_once, options: asked }) {
  const {
    url,
    api_key: apiKey,
    session_id: sessionId,
    timeout_ms: timeoutMs,
    fail_open: failOpen,
    retries,
  } = built(asked);
  let gate;
  try {
    gate = new SvcGate(url, { apiKey, sessionId, timeoutMs, failOpen, retries });
  } catch (error) {
    return { id, construction: error.message };
  }
  const results = at_once ? await Promise.all(calls.map((one) => call(gate, one))) : [];
  if (!at_once) for (const one of calls) results.push(await call(gate, one));
  return { id, session_id: gate.sessionId, results };
}
for await (const line of createInterface({ input: process.stdin })) {
  run(JSON.parse(line)).then((result) => process.stdout.write(`${JSON.stringify(result)}\n`));
}
