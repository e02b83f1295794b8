/** Proxies that are broken on purpose, each in one function: the cases must notice every one. */
import type { Mutation } from "../mutation/mutate.ts";

export interface Mutant {
  readonly fault: string;
  readonly mutations: readonly Mutation[];
  /** How the titles of the cases start that must fail. */
  readonly noticed: readonly string[];
}

export const mutants: readonly Mutant[] = [
  {
    fault: "takes every verdict but BLOCK for a permission",
    mutations: [{ within: "Judge.judge", find: 'verdict.verdict === "ALLOW"', put: 'verdict.verdict !== "BLOCK"' }],
    noticed: ["A3", "A4"],
  },
  {
    fault: "sends refused calls on",
    mutations: [
      { within: "ClientRequests.#sendIfAllowed", find: "if (!judgement.isAllowed) return $refuse;", put: "" },
    ],
    noticed: ["A2", "A4", "B1", "B3", "B5", "B6"],
  },
  {
    fault: "asks about the name only",
    mutations: [
      {
        within: "Judge.judge",
        find: "this.#gate.check(tool, input, $$rest)",
        put: "this.#gate.check(tool, { amount: 1 }, $$rest)",
      },
    ],
    noticed: ["A2", "A4"],
  },
  {
    fault: "forwards the bytes that it did not judge",
    mutations: [
      {
        within: "ClientRequests.#sendIfAllowed",
        find: "messages.requestText({ id, method, params })",
        put: 'messages.requestText({ id, method, params }).replace(":5", ":5.0")',
      },
    ],
    noticed: ["A1"],
  },
  {
    fault: "asks only about the first call",
    mutations: [
      {
        within: "ClientRequests.#sendIfAllowed",
        find: "await judge.judge($$all)",
        put: "await (globalThis.asked ??= judge.judge($$all))",
      },
    ],
    noticed: ["A4"],
  },
  {
    fault: "ignores pins when a tool is called",
    mutations: [{ within: "Catalogue.refusal", first: "return undefined;" }],
    noticed: [
      "A6: an unknown tool",
      "pins: without",
      "pins: a server that",
      "pins: changed",
      "pins: a call that comes",
    ],
  },
  {
    fault: "lists tools that nobody accepted",
    mutations: [{ within: "Catalogue.filterTools", first: "return result;" }],
    noticed: ["pins: changed"],
  },
  {
    fault: "passes on that the tools changed, and does not read them",
    mutations: [
      { within: "Relay.#passServerNotification", find: "this.#catalogue.forget();", put: "" },
      { within: "Relay.#passServerNotification", find: "await this.#catalogue.read($$all);", put: "" },
      { within: "Catalogue.filterTools", find: "this.#see(tool, this.#status)", put: "this.#see(tool, new Map())" },
    ],
    noticed: ["pins: changed"],
  },
  {
    fault: "does not wait for a list that is being read",
    mutations: [{ within: "Catalogue.#isStale", find: "this.#reading !== undefined", put: "false" }],
    noticed: ["A4"],
  },
  {
    fault: "trusts a server's name alone",
    mutations: [{ within: "readPins", find: "lock.source !== sourceDigest(source)", put: "false" }],
    noticed: ["pins: a server that"],
  },
  {
    fault: "takes definitions without their digests",
    mutations: [{ within: "digestIn", find: "if ($condition) throw $error;", put: "" }],
    noticed: ["pins: a lock file"],
  },
  {
    fault: "accepts without a yes",
    mutations: [{ within: "saysYes", first: "return true;" }],
    noticed: ["pins: accept"],
  },
  {
    fault: "shows a terminal what it obeys",
    mutations: [{ within: "visible", module: "mcp/visible", first: "return text;" }],
    noticed: ["pins: accept"],
  },
  {
    fault: "passes on methods that it does not know",
    mutations: [{ within: "findAllowedMethod", first: "return {};" }],
    noticed: ["channels: a method", "channels: a request", "rounds: a server"],
  },
  {
    fault: "leaves capabilities as they are",
    mutations: [{ within: "withCapabilities", first: "return object;" }],
    noticed: ["channels: a capability"],
  },
  {
    fault: "does not judge requests of the server",
    mutations: [{ within: "ServerRequests.#refusalOf", first: "return undefined;" }],
    noticed: ["channels: the gate judges an allowed"],
  },
  {
    fault: "does not judge channels of the client",
    mutations: [{ within: "ClientRequests.start", find: "found.judged !== undefined", put: "false" }],
    noticed: ["channels: the gate judges which"],
  },
  {
    fault: "does not look at what a server asks for in its answer",
    mutations: [{ within: "ServerRequests.refusalOfAll", first: "return undefined;" }],
    noticed: ["rounds: a server"],
  },
  {
    fault: "shows instructions that nobody accepted",
    mutations: [{ within: "ClientRequests.#filterResult", find: "pins.hasInstructions(text)", put: "true" }],
    noticed: ["channels: instructions"],
  },
  {
    fault: "takes the last of two members",
    mutations: [{ within: "addName", first: "return;" }],
    noticed: ["A6: a repeated"],
  },
  {
    fault: "reads members in one spelling only",
    mutations: [
      { within: "faultOf", module: "mcp/message", find: "foldedMembers.has(foldCase(name))", put: "false" },
      { within: "callMembers", module: "mcp/client-requests", value: '["name", "arguments", "Arguments"]' },
    ],
    noticed: ["A6: a member in other letters", "X4"],
  },
  {
    fault: "continues a call with other arguments",
    mutations: [
      { within: "Rounds.add", find: "call.input", put: "null" },
      { within: "Rounds.take", find: "call.input", put: "null" },
      { within: "ClientRequests.#question", find: "responsesName(call.name)", put: '"bank.mcp.elicitation"' },
    ],
    noticed: ["rounds: other arguments"],
  },
  {
    fault: "continues a call twice",
    mutations: [
      { within: "Rounds.take", find: "rounds?.shift()", put: "rounds?.[0]" },
      { within: "Rounds.take", find: "if (rounds.length === 0) $delete;", put: "" },
    ],
    noticed: ["rounds: other arguments"],
  },
  {
    fault: "does not show the answers to the gate",
    mutations: [
      {
        within: "ClientRequests.#question",
        find: "{ ...call.input, $responses: responses }",
        put: '{ $responses: { sure: { action: "accept" } } }',
      },
    ],
    noticed: ["rounds: the gate judges"],
  },
  {
    fault: "counts each round",
    mutations: [{ within: "ClientRequests.#question", find: "responsesName(call.name)", put: "call.name" }],
    noticed: ["rounds: the answers continue"],
  },
  {
    fault: "lets a server of a project take another's name",
    mutations: [{ within: "serverPrefix", module: "mcp/names", find: 'isFromProject ? "project:" : ""', put: '""' }],
    noticed: ["D2"],
  },
  {
    fault: "gives the server the gate's key",
    mutations: [{ within: "serverEnv", first: "return env;" }],
    noticed: ["the server gets"],
  },
  {
    fault: "runs a call that was cancelled while it waited",
    mutations: [{ within: "ClientRequests.abandon", find: "open.stop.abort();", put: "" }],
    noticed: ["F1: a cancellation ends"],
  },
  {
    fault: "waits without a sign of life",
    mutations: [{ within: "Judge.#waitForDecision", find: "tick?.();", put: "" }],
    noticed: ["F1: a call waits"],
  },
  {
    fault: "forgets the approval of a call",
    mutations: [{ within: "Judge.judge", find: "this.#parked.set(call, id)", put: "id" }],
    noticed: ["A3"],
  },
  {
    fault: "passes a second answer on",
    mutations: [{ within: "ClientRequests.#markAnswered", first: "return;" }],
    noticed: ["F1: a second"],
  },
  {
    fault: "takes an id that is in use",
    mutations: [
      {
        within: "ClientRequests.start",
        find: 'return error(messages.errors.invalid, "Svc: another request with this id is still open.");',
        put: "{}",
      },
    ],
    noticed: ["F1: an id"],
  },
  {
    fault: "calls every call done",
    mutations: [{ within: "Judge.report", first: 'status = "done";' }],
    noticed: ["outcomes", "F1: a cancelled", "X10"],
  },
  {
    fault: "answers a task's caller with a tool's result",
    mutations: [{ within: "ClientRequests.#refuse", find: "!isTask", put: "true" }],
    noticed: ["F1: a refused task"],
  },
  {
    fault: "leaves a message in more than one line",
    mutations: [
      { within: "toRpcMessage", module: "mcp/message", find: 'original.replaceAll(/[\\r\\n]/g, " ")', put: "original" },
    ],
    noticed: ["X1:"],
  },
  {
    fault: "keeps the last list of a server that shows none",
    mutations: [
      { within: "Catalogue.#readAll", find: "this.#status = status;", put: "" },
      { within: "Catalogue.#readAll", find: "this.#status = new Map();", put: "" },
      { within: "Catalogue.refusal", find: "if (count === readingsMax || $unread) return unlisted;", put: "break;" },
    ],
    noticed: ["X2"],
  },
  {
    fault: "looks at the pins only before a person decides",
    mutations: [{ within: "ClientRequests.#sendIfAllowed", find: "await refusalLater?.()", put: "undefined" }],
    noticed: ["X3"],
  },
  {
    fault: "lets tasks pass that nobody allowed",
    mutations: [{ within: "ClientRequests.#call", find: "open.isTask", put: "false" }],
    noticed: ["X5"],
  },
  {
    fault: "judges no arguments where the server gets null",
    mutations: [
      { within: "ClientRequests.#call", find: "!isObject(input)", put: "false" },
      {
        within: "Judge.judge",
        find: "this.#gate.check(tool, input, $$rest)",
        put: "this.#gate.check(tool, { amount: 1 }, $$rest)",
      },
    ],
    noticed: ["X6"],
  },
  {
    fault: "does not slow down who takes no answers",
    mutations: [{ within: "proxyStdio", find: "portsOf(child.stdout)", put: "portsOf(process.stdin)" }],
    noticed: ["X7"],
  },
  {
    fault: "waits for what a server leaves behind",
    mutations: [{ within: "proxyStdio", find: "Promise.race([lines, atMost(lastLinesMs)])", put: "lines" }],
    noticed: ["X8"],
  },
  {
    fault: "passes an answer to a question that nobody got",
    mutations: [
      {
        within: "ServerRequests.answer",
        find: "this.#open.get(key)?.isSent !== true",
        put: "!this.#open.has(key)",
      },
    ],
    noticed: ["X9"],
  },
  {
    fault: "takes a batch apart",
    mutations: [
      {
        within: "readMessage",
        find: "if (Array.isArray(value)) throw $error;",
        put: "if (Array.isArray(value)) value = value[0];",
      },
    ],
    noticed: ["A6: a batch"],
  },
  {
    fault: "names no server in a refusal",
    mutations: [
      {
        within: "acceptCommand",
        find: '["svc-gate", "mcp", "accept", "--name", name]',
        put: '["svc-gate", "mcp", "accept"]',
      },
    ],
    noticed: ["A6: an unknown tool", "pins: without", "pins: changed", "pins: the command", "channels: a method that"],
  },
  {
    fault: "tells the model how the server is started",
    mutations: [
      {
        within: "run",
        module: "mcp/command",
        find: "acceptCommand(server)",
        put: "wholeAcceptCommand(server, source)",
      },
    ],
    noticed: ["pins: the command"],
  },
];
