/** Which methods pass, in which direction. A method that is not in these tables is denied. */
import { isObject, objectIn, without, type JsonRecord } from "./json.ts";

/** The groups of methods that a person can allow, in the lock file. */
export const channels = [
  "completion",
  "elicitation",
  "logging",
  "prompts",
  "resources",
  "roots",
  "sampling",
  "tasks",
] as const;
export type Channel = (typeof channels)[number];

interface MethodEntry {
  /** Absent: the method always passes. */
  readonly channel?: Channel;
  /** The gate judges the request's params under this name. */
  readonly judged?: string;
}

type Methods = Readonly<Record<string, MethodEntry>>;

const tasks: Methods = {
  "tasks/get": { channel: "tasks" },
  "tasks/result": { channel: "tasks" },
  "tasks/list": { channel: "tasks" },
  "tasks/cancel": { channel: "tasks" },
};

export const requestsOfClient: Methods = {
  initialize: {},
  ping: {},
  "server/discover": {},
  "tools/list": {},
  "tools/call": {},
  "subscriptions/listen": {},
  "completion/complete": { channel: "completion", judged: "completion" },
  "logging/setLevel": { channel: "logging" },
  "prompts/list": { channel: "prompts" },
  "prompts/get": { channel: "prompts", judged: "prompts.get" },
  "resources/list": { channel: "resources" },
  "resources/templates/list": { channel: "resources" },
  "resources/read": { channel: "resources", judged: "resources.read" },
  "resources/subscribe": { channel: "resources" },
  "resources/unsubscribe": { channel: "resources" },
  ...tasks,
};

export const requestsOfServer: Methods = {
  ping: {},
  "roots/list": { channel: "roots" },
  "sampling/createMessage": { channel: "sampling", judged: "sampling" },
  "elicitation/create": { channel: "elicitation", judged: "elicitation" },
  ...tasks,
};

const both: Methods = {
  "notifications/cancelled": {},
  "notifications/progress": {},
  "notifications/tasks/status": { channel: "tasks" },
};

export const notificationsOfClient: Methods = {
  ...both,
  "notifications/initialized": {},
  "notifications/roots/list_changed": { channel: "roots" },
};

export const notificationsOfServer: Methods = {
  ...both,
  "notifications/tools/list_changed": {},
  "notifications/subscriptions/acknowledged": {},
  "notifications/message": { channel: "logging" },
  "notifications/prompts/list_changed": { channel: "prompts" },
  "notifications/resources/list_changed": { channel: "resources" },
  "notifications/resources/updated": { channel: "resources" },
  "notifications/elicitation/complete": { channel: "elicitation" },
};

/**
 * Returns the method's entry if it may pass; else the sentence that says why not.
 *
 * @param pins `remedy`: the command with which a person accepts what the server offers
 */
export function findAllowedMethod(
  table: Methods,
  method: string,
  pins: { readonly channels: ReadonlySet<Channel>; readonly remedy: string },
): MethodEntry | string {
  const found = Object.hasOwn(table, method) ? table[method] : undefined;
  const name = JSON.stringify(method.slice(0, 64));
  if (found === undefined) return `Svc: svc-gate does not pass on the method ${name}.`;
  const { channel } = found;
  return channel === undefined || pins.channels.has(channel)
    ? found
    : `Svc: the method ${name} is not allowed; a person can allow it: ${pins.remedy} --allow ${channel}`;
}

const clientCapabilities: Readonly<Record<string, Channel>> = {
  roots: "roots",
  sampling: "sampling",
  elicitation: "elicitation",
  tasks: "tasks",
};

const serverCapabilities: Readonly<Record<string, Channel | null>> = {
  tools: null,
  resources: "resources",
  prompts: "prompts",
  completions: "completion",
  logging: "logging",
  tasks: "tasks",
};

/** The member of `_meta` in which a client of the newer protocol sends its capabilities. */
const capabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
const logLevelKey = "io.modelcontextprotocol/logLevel";

type ChannelSet = ReadonlySet<Channel>;

/** Removes capabilities of channels that are not allowed; returns the same object if there are none. */
export function clientParams(params: JsonRecord, method: string, allowed: ChannelSet): JsonRecord {
  let kept = params;
  if (method === "initialize") kept = withCapabilities(kept, "capabilities", clientCapabilities, allowed);
  const meta = objectIn(kept, "_meta");
  if (meta !== undefined) {
    let filtered = withCapabilities(meta, capabilitiesKey, clientCapabilities, allowed);
    if (!allowed.has("logging") && Object.hasOwn(filtered, logLevelKey)) filtered = without(filtered, logLevelKey);
    if (filtered !== meta) kept = { ...kept, _meta: filtered };
  }
  return method === "subscriptions/listen" ? filterSubscriptions(kept, allowed) : kept;
}

/** Removes capabilities that are not allowed from the answer to `initialize` or `server/discover`. */
export function serverResult(result: JsonRecord, allowed: ChannelSet): JsonRecord {
  return withCapabilities(result, "capabilities", serverCapabilities, allowed);
}

function withCapabilities(
  object: JsonRecord,
  name: string,
  table: Readonly<Record<string, Channel | null>>,
  allowed: ChannelSet,
): JsonRecord {
  const stated = objectIn(object, name);
  if (stated === undefined) return object;
  const kept = Object.entries(stated).filter(([capability]) => {
    const channel = Object.hasOwn(table, capability) ? table[capability] : undefined;
    return channel === null || (channel !== undefined && allowed.has(channel));
  });
  return kept.length === Object.keys(stated).length ? object : { ...object, [name]: Object.fromEntries(kept) };
}

const subscriptions: Readonly<Record<string, Channel | null>> = {
  toolsListChanged: null,
  promptsListChanged: "prompts",
  resourcesListChanged: "resources",
  resourceSubscriptions: "resources",
};

function filterSubscriptions(params: JsonRecord, allowed: ChannelSet): JsonRecord {
  return isObject(params["notifications"]) ? withCapabilities(params, "notifications", subscriptions, allowed) : params;
}
