/**
 * svc-gate for opencode (opencode-ai): the gate decides each tool call, as a plugin. In ~/.config/opencode/opencode.json:
 *
 *     "permission": { "*": "deny" },
 *     "plugin": [["file:///path/to/adapters/opencode.mjs", { "url": "https://gate.example", "keyFile": "/path/to/key" }]]
 *
 * Grant mode: the file denies every tool, and the plugin opens them when it has loaded. From then on each call asks the gate.
 * So if the plugin is missing, or fails to load, the host denies every call. In the host only an error refuses a call, so the
 * hook throws unless the call is allowed.
 *
 * Types and promises of each function: opencode.d.mts. Names of tools and rules for every adapter: README.md.
 */
import { gateName, guardOf, SvcGateRefusal } from "./guard.mjs";

const keptMax = 1000; // calls that have not ended, and sessions: more than a host has at once
const parentsMax = 32;
const optionNames = ["url", "keyFile", "servers", "grant", "onEscalate", "waitMs", "timeoutMs"];

/** What the host loads: the options are those of its settings. */
export default { id: "svc-gate", server: started };

/** The host goes on without a plugin that fails to start. So after a failure every call is refused, also without grant mode. */
async function started(host, options = {}) {
  try {
    return await hooksWith(host, options);
  } catch (error) {
    logTo(host, error);
    const refuse = async () => {
      throw refusal("Svc: the plugin's options or its key cannot be used; the action is blocked.");
    };
    return { "tool.execute.before": refuse };
  }
}

async function hooksWith(host, options) {
  const unknown = Object.keys(options).find((name) => !optionNames.includes(name));
  if (unknown !== undefined)
    throw new TypeError(`unknown option ${unknown}: the options are ${optionNames.join(", ")}`);
  const { url, keyFile, timeoutMs, ...settings } = options;
  const { SvcGate } = await import(new URL("../clients/javascript/svc-gate.mjs", import.meta.url).href);
  const apiKey = await keyIn(keyFile);
  const gate = (sessionId) =>
    new SvcGate(url, { apiKey, sessionId, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
  return guarded({ gate, ...settings })(host);
}

/** The agent can read the key too, but other users of the machine must not. */
async function keyIn(file) {
  const { open } = await import("node:fs/promises");
  const handle = await open(file, "r");
  try {
    const isOpenToOthers = process.platform !== "win32" && ((await handle.stat()).mode & 0o077) !== 0;
    if (isOpenToOthers) throw new Error(`other users can read ${file}: run chmod 600 on it`);
    return (await handle.readFile("utf8")).trim();
  } finally {
    await handle.close();
  }
}

export function guarded({ gate, servers = {}, grant = true, facts = async () => undefined, log, ...settings }) {
  if (typeof gate !== "function") throw new TypeError("gate must be a function from a session to its SvcGate");
  const client = remembered(gate);
  return async (host) => {
    const note = log ?? ((problem) => logTo(host, problem));
    const guard = guardOf(
      {
        ...settings,
        log: note,
        gate: ({ context }) => client(context.session),
        facts: async (call) => ({ cwd: host.directory, ...(await facts(call)) }),
      },
      { grant },
    );
    const root = remembered((session) => rootOf(host, session));
    return hooksOf({ guard, root, servers, grant, note });
  };
}

function hooksOf({ guard, root, servers, grant, note }) {
  const [running, reports] = [new Map(), new Set()];
  let names; // of all MCP servers; without them no call has a name
  let isGranting = false;
  const ends = (callID, status) => {
    const judgement = running.get(callID);
    running.delete(callID);
    if (!judgement) return;
    const report = guard.report(judgement, status).finally(() => reports.delete(report));
    reports.add(report);
  };
  return {
    config: async (config) => {
      config.mcp = { ...config.mcp, ...servers };
      names = Object.keys(config.mcp);
      isGranting = grant && opened(config);
      if (grant && !isGranting)
        note('svc-gate: set "permission": { "*": "deny" }, so that no tool runs without the plugin');
    },
    "tool.execute.before": async ({ tool, sessionID, callID }, output) => {
      const name = nameOf(tool, names, servers);
      if (name === undefined)
        throw refusal("Svc: it is not clear which MCP server has the tool; the action is blocked.");
      fix(output);
      const context = { session: await root(sessionID), sessionID, callID };
      const judgement = await guard.judge({ name, input: output.args, context });
      if (!judgement.runs) throw new SvcGateRefusal(judgement);
      if (isGranting && !judgement.grants)
        throw refusal("Svc: the gate observes, so it grants nothing; the action is blocked.");
      running.set(callID, judgement);
      if (running.size > keptMax) running.delete(running.keys().next().value);
    },
    "tool.execute.after": async ({ callID }) => ends(callID, "done"),
    event: async ({ event: { type, properties } }) => {
      const { part } = properties ?? {};
      // After an error, the tool may have started.
      if (type === "message.part.updated" && part?.state?.status === "error") ends(part.callID, "unknown");
    },
    dispose: async () => void (await Promise.all(reports)), // the host ends right after its last answer
  };
}

/** Opens the tools that the settings deny, because each call asks the gate from now on. Other rules of the user stay. */
function opened(config) {
  if (config.permission === "deny") config.permission = { "*": "allow" };
  else if (config.permission?.["*"] === "deny") config.permission["*"] = "allow";
  else return false;
  return true;
}

/** Plugins that the host calls later cannot change what was judged. */
function fix(output) {
  freeze(output.args);
  Object.defineProperty(output, "args", { value: output.args, writable: false, configurable: false });
}

function freeze(value) {
  if (typeof value !== "object" || value === null) return;
  Object.freeze(value);
  for (const member of Object.values(value)) freeze(member);
}

/**
 * The host joins server and tool with `_`. A name that two servers could have is refused. A project's file can name servers,
 * so all but those of the adapter's own settings are marked.
 */
function nameOf(tool, names, servers) {
  const found = names?.filter((server) => tool.startsWith(prefixOf(server)) && tool.length > prefixOf(server).length);
  if (found === undefined || found.length > 1) return undefined;
  const [server] = found;
  if (server === undefined) return gateName(tool);
  const full = gateName(tool.slice(prefixOf(server).length), server);
  return Object.hasOwn(servers, server) ? full : `project:${full}`;
}

function prefixOf(server) {
  return `${server.replaceAll(/[^a-zA-Z0-9_-]/g, "_")}_`;
}

/** A sub-agent has a session of its own: its calls count in the session that a person started. */
async function rootOf({ client }, session) {
  let id = session;
  for (let left = parentsMax; left > 0; left--) {
    const { data } = await client.session.get({ path: { id } });
    if (data?.id !== id) throw refusal("Svc: the host does not know the session of the call; the action is blocked.");
    if (!data.parentID) return id;
    id = data.parentID;
  }
  throw refusal("Svc: the call's session has too many parents; the action is blocked.");
}

/** Returns the function with a cache of its last results. A failure is not cached. */
function remembered(work) {
  const results = new Map();
  return (key) => {
    if (!results.has(key)) {
      const result = work(key);
      results.set(key, result);
      if (typeof result?.catch === "function") result.catch(() => results.delete(key));
      if (results.size > keptMax) results.delete(results.keys().next().value);
    }
    return results.get(key);
  };
}

function refusal(reason) {
  return new SvcGateRefusal({ reason, approval: null });
}

function logTo({ client }, problem) {
  client.app.log({ body: { service: "svc-gate", level: "error", message: String(problem) } }).catch(() => {});
}
