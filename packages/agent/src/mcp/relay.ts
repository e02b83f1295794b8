/**
 * Stands between one client and one server, whatever the transport.
 *
 * Promises: a call of a tool goes on only after an ALLOW for exactly that call; a method, a capability and a tool that
 * nobody allowed do not pass; a message that passes unchanged is the same text.
 */
import { randomBytes } from "node:crypto";
import type { Verdict } from "../../../../clients/javascript/svc-gate.mjs";
import { Catalogue, type ListTools } from "./catalogue.ts";
import {
  allowedMethod,
  clientParams,
  deniedMethod,
  notificationsOfClient,
  notificationsOfServer,
  requestsOfClient,
  requestsOfServer,
  serverResult,
} from "./channels.ts";
import { isObject, objectIn, textIn, without, type JsonObject } from "./json.ts";
import type { Judge, Waiting } from "./judge.ts";
import * as messages from "./message.ts";
import { channelName, responsesName, toolName } from "./names.ts";
import type { Pins } from "./pins.ts";
import { Rounds, type RoundCall } from "./rounds.ts";
import { Tasks } from "./tasks.ts";

/** Where messages go. */
export interface Ports {
  /** `isOwn`: the proxy asks for itself, so the answer is not for the client. */
  readonly toServer: (text: string, isOwn: boolean) => void;
  readonly toClient: (text: string) => void;
  /** The stream repeats messages that the server has sent before. */
  readonly isReplay?: boolean;
}

/** What all clients of one server share. */
export interface RelayContext {
  readonly prefix: string;
  readonly pins: Pins;
  readonly judge: Judge;
  readonly rounds: Rounds;
  readonly tasks: Tasks;
  readonly say: (sentence: string) => void;
  /** Answers stay known, because a stream can be resumed. */
  readonly keepsAnswered: boolean;
}

/** Without the request's text: a client may leave many requests open. */
interface Pending {
  readonly id: messages.MessageId;
  readonly method: string;
  readonly isTask: boolean;
  readonly taskId: string | undefined;
  readonly ports: Ports;
  readonly stop: AbortController;
  state: "held" | "sent" | "answered";
  call?: RoundCall;
  verdicts: readonly Verdict[];
}

interface PendingOfServer {
  readonly stop: AbortController;
  /** The client has it, so it can answer. */
  isSent: boolean;
}

/** An error of servers of 2025-11-25 that contains requests for the user. */
const urlElicitationCode = -32042;
const protocolVersionKey = "io.modelcontextprotocol/protocolVersion";
/** A server that does not list its tools in this time has none. */
const listTimeoutMs = 30_000;
/** Answered requests of one session that a resumed stream can answer again. */
const answeredMax = 100;
const pendingMax = 10_000;
/** Members of a call's params: the proxy judges or understands each. */
const callMembers = ["name", "arguments", "_meta", "task", "inputResponses", "requestState"];

export class Relay {
  readonly #context: RelayContext;
  readonly #catalogue: Catalogue;
  readonly #pending = new Map<string, Pending>();
  readonly #pendingOfServer = new Map<string, PendingOfServer>();
  readonly #own = new Map<string, (response: messages.Response | undefined) => void>();
  readonly #ownPrefix = `svc-gate-${randomBytes(8).toString("hex")}`;
  #ownCount = 0;
  /** The list is read for a notification, so another one says nothing new. */
  #isChangeRead = false;
  /** What a client of the newer protocol states with each request. */
  #meta: JsonObject | undefined;

  constructor(context: RelayContext, catalogue: Catalogue) {
    this.#context = context;
    this.#catalogue = catalogue;
  }

  /** Resolves when the message has left, or was refused. */
  async fromClient(message: messages.Message, ports: Ports): Promise<void> {
    if (message.kind === "request") return this.#clientRequest(message, ports);
    if (message.kind === "notification") return this.#clientNotification(message, ports);
    const key = message.id === null ? "" : messages.keyOf(message.id);
    if (this.#pendingOfServer.get(key)?.isSent !== true) return;
    this.#pendingOfServer.delete(key);
    ports.toServer(message.text, false);
  }

  async fromServer(message: messages.Message, ports: Ports): Promise<void> {
    if (message.kind === "request") return this.#serverRequest(message, ports);
    if (message.kind === "notification") return this.#serverNotification(message, ports);
    return this.#serverResponse(message, ports);
  }

  /** The client does not wait for the answer any more. Returns false if the request was not open. */
  abandon(id: messages.MessageId): boolean {
    const key = messages.keyOf(id);
    const pending = this.#pending.get(key);
    if (pending === undefined || pending.state === "answered") return false;
    this.#pending.delete(key);
    pending.stop.abort();
    if (pending.state === "sent") this.#context.judge.report(pending.verdicts, "unknown");
    return true;
  }

  /** Answers everything that is still open: the server has ended. */
  close(reason: string): void {
    for (const [key, pending] of this.#pending) {
      if (pending.state === "answered") continue;
      const { id } = pending;
      this.abandon(id);
      pending.ports.toClient(messages.errorText(id, messages.errors.internal, reason));
      this.#pending.delete(key);
    }
    for (const { stop } of this.#pendingOfServer.values()) stop.abort();
    for (const end of this.#own.values()) end(undefined);
  }

  async #clientRequest(request: messages.Request, ports: Ports): Promise<void> {
    const { id, method } = request;
    const { pins } = this.#context;
    const error = (code: number, sentence: string): void => ports.toClient(messages.errorText(id, code, sentence));
    const key = messages.keyOf(id);
    if ((this.#pending.get(key)?.state ?? "answered") !== "answered")
      return error(messages.errors.invalid, "Svc: another request with this id is still open.");
    if (this.#pending.size >= pendingMax) return error(messages.errors.refused, "Svc: too many requests are open.");
    const found = allowedMethod(requestsOfClient, method, pins.channels);
    if (found === undefined)
      return error(messages.errors.method, deniedMethod(requestsOfClient, method, this.#context.pins.remedy));
    if (method === "tools/list" && pins.refusal !== null) return error(messages.errors.refused, pins.refusal);
    const params = clientParams(request.params, method, pins.channels);
    const meta = objectIn(params, "_meta");
    if (meta !== undefined && protocolVersionKey in meta) this.#meta = meta;
    const isTask = "task" in params;
    const taskId = textIn(params, "taskId");
    const stop = new AbortController();
    const pending: Pending = { id, method, isTask, taskId, ports, stop, state: "held", verdicts: [] };
    this.#pending.delete(key);
    this.#pending.set(key, pending);
    if (method === "tools/call") return this.#call(pending, params);
    if (found.judged !== undefined) {
      const input = without(params, "_meta", "inputResponses", "requestState");
      const name = channelName(this.#context.prefix, found.judged);
      return this.#judged(pending, params, { method, name, input });
    }
    this.#send(pending, params === request.params ? request.text : messages.requestText({ id, method, params }));
  }

  #send(pending: Pending, text: string): void {
    pending.state = "sent";
    pending.ports.toServer(text, false);
  }

  async #call(pending: Pending, params: JsonObject): Promise<void> {
    const { name: tool, arguments: input = {}, requestState: state = "" } = params;
    const odd = Object.keys(params).find((member) => !callMembers.includes(member));
    if (typeof tool !== "string" || !isObject(input) || typeof state !== "string" || odd !== undefined) {
      const { id } = pending;
      const why =
        "Svc: a call must have a name, may have arguments, and must have no other member that a server could read.";
      this.#pending.delete(messages.keyOf(id));
      return pending.ports.toClient(messages.errorText(id, messages.errors.params, why));
    }
    if (pending.isTask && !this.#context.pins.channels.has("tasks"))
      return this.#refuse(pending, deniedMethod(requestsOfClient, "tasks/get", this.#context.pins.remedy));
    const refusalOfPins = (): Promise<string | undefined> => this.#catalogue.refusal(tool, this.#lister(pending.ports));
    const refusal = await refusalOfPins();
    if (refusal !== undefined) return this.#refuse(pending, refusal);
    let name: string;
    try {
      name = toolName(this.#context.prefix, tool);
    } catch {
      return this.#refuse(pending, "Svc: the tool's name is not Unicode text; the call is blocked.");
    }
    return this.#judged(pending, params, { method: "tools/call", name, input }, refusalOfPins);
  }

  /**
   * Sends the request on if the gate allows it, as exactly the data that the gate has judged.
   *
   * @param refusalLater asked after the verdict: while a person decides, a tool can change
   */
  async #judged(
    pending: Pending,
    params: JsonObject,
    call: RoundCall,
    refusalLater?: () => Promise<string | undefined>,
  ): Promise<void> {
    const { judge } = this.#context;
    if (pending.stop.signal.aborted) return undefined;
    const question = this.#question(params, call);
    if (typeof question === "string") return this.#refuse(pending, question);
    const { name, input, earlier } = question;
    const judgement = await judge.judge(name, input, this.#waiting(pending, params));
    const changed = judgement.isAllowed ? await refusalLater?.() : undefined;
    if (judgement.isAllowed && (pending.stop.signal.aborted || changed !== undefined))
      judge.report([judgement.verdict], "failed");
    if (!judgement.isAllowed) return this.#refuse(pending, judgement.reason);
    if (changed !== undefined) return this.#refuse(pending, changed);
    if (pending.stop.signal.aborted) return undefined;
    pending.call = call;
    pending.verdicts = [...earlier, judgement.verdict];
    const { id, method } = pending;
    return this.#send(pending, messages.requestText({ id, method, params }));
  }

  /** Returns what the gate is asked, or why it is not. A later round counts under a name of its own. */
  #question(
    params: JsonObject,
    call: RoundCall,
  ): { name: string; input: JsonObject; earlier: readonly Verdict[] } | string {
    if (!("inputResponses" in params || "requestState" in params)) return { ...call, earlier: [] };
    const earlier = this.#context.rounds.take(call, params["requestState"]);
    if (earlier === undefined)
      return "Svc: no open call has this tool, these arguments and this state, so the answers are refused; make a new call.";
    const responses = params["inputResponses"] ?? {};
    if (!isObject(responses) || "$responses" in call.input) return "Svc: the answers cannot be judged.";
    return { name: responsesName(call.name), input: { ...call.input, $responses: responses }, earlier };
  }

  #waiting({ ports, stop }: Pending, params: JsonObject): Waiting {
    const token = objectIn(params, "_meta")?.["progressToken"];
    if (typeof token !== "string" && typeof token !== "number") return { signal: stop.signal };
    let count = 0;
    // The numbers only grow, and stay below those of the tool.
    const tick = (): void => {
      count += 1;
      const progress = { progressToken: token, progress: count * 1e-6, message: "waiting for a person to decide" };
      ports.toClient(messages.notificationText("notifications/progress", progress));
    };
    return { signal: stop.signal, tick };
  }

  #refuse({ id, method, isTask, ports, stop }: Pending, reason: string): void {
    if (stop.signal.aborted) return;
    this.#pending.delete(messages.keyOf(id));
    // A client that expects a task cannot read a tool's result.
    const isResult = method === "tools/call" && !isTask;
    ports.toClient(
      isResult ? messages.refusalText(id, reason) : messages.errorText(id, messages.errors.refused, reason),
    );
  }

  #clientNotification(notification: messages.Notification, ports: Ports): void {
    const { method, params, text } = notification;
    if (allowedMethod(notificationsOfClient, method, this.#context.pins.channels) === undefined) return;
    if (method !== "notifications/cancelled") return ports.toServer(text, false);
    const id = params["requestId"];
    if (typeof id !== "string" && typeof id !== "number") return;
    const isSent = this.#pending.get(messages.keyOf(id))?.state === "sent";
    this.abandon(id);
    if (isSent) ports.toServer(text, false);
  }

  async #serverRequest(request: messages.Request, ports: Ports): Promise<void> {
    const { id, method, params } = request;
    const error = (code: number, why: string): void => ports.toServer(messages.errorText(id, code, why), false);
    const found = allowedMethod(requestsOfServer, method, this.#context.pins.channels);
    const key = messages.keyOf(id);
    if (found === undefined)
      return error(messages.errors.method, deniedMethod(requestsOfServer, method, this.#context.pins.remedy));
    if (this.#pendingOfServer.has(key) || this.#pendingOfServer.size >= pendingMax)
      return error(messages.errors.invalid, "Svc: another request with this id is still open.");
    const pending: PendingOfServer = { stop: new AbortController(), isSent: false };
    const { signal } = pending.stop;
    this.#pendingOfServer.set(key, pending);
    const refusal = found.judged === undefined ? undefined : await this.#refusalOf(found.judged, params, signal);
    if (signal.aborted) return undefined;
    if (refusal !== undefined) {
      this.#pendingOfServer.delete(key);
      return error(messages.errors.refused, refusal);
    }
    pending.isSent = true;
    return ports.toClient(found.judged === undefined ? request.text : messages.requestText({ id, method, params }));
  }

  /** Asks the gate about what a server wants of the client. */
  async #refusalOf(judged: string, params: JsonObject, signal: AbortSignal): Promise<string | undefined> {
    const { judge, prefix } = this.#context;
    const name = channelName(prefix, judged);
    const { isAllowed, reason } = await judge.judge(name, without(params, "_meta"), { signal });
    return isAllowed ? undefined : reason;
  }

  async #serverNotification(notification: messages.Notification, ports: Ports): Promise<void> {
    const { method, params, text } = notification;
    if (allowedMethod(notificationsOfServer, method, this.#context.pins.channels) === undefined) return undefined;
    if (method === "notifications/cancelled") return this.#serverCancelled(params, text, ports);
    if (method === "notifications/tools/list_changed") {
      this.#catalogue.forget();
      if (this.#isChangeRead) return undefined;
      this.#isChangeRead = true;
      await this.#catalogue.read(this.#lister(ports));
      this.#isChangeRead = false;
    }
    if (method === "notifications/tasks/status") this.#taskEnded(textIn(params, "taskId"), params);
    return ports.toClient(text);
  }

  /** A server takes back its own request, or ends a subscription of the client. */
  #serverCancelled(params: JsonObject, text: string, ports: Ports): void {
    const id = params["requestId"];
    if (typeof id !== "string" && typeof id !== "number") return;
    const key = messages.keyOf(id);
    const own = this.#pendingOfServer.get(key);
    own?.stop.abort();
    this.#pendingOfServer.delete(key);
    const isSubscription = this.#pending.get(key)?.method === "subscriptions/listen";
    if (isSubscription) this.#pending.delete(key);
    if (own !== undefined || isSubscription) ports.toClient(text);
  }

  async #serverResponse(response: messages.Response, ports: Ports): Promise<void> {
    const { id } = response;
    if (id === null) return ports.toClient(response.text);
    const key = messages.keyOf(id);
    const own = this.#own.get(key);
    if (own !== undefined) return own(response);
    const pending = this.#pending.get(key);
    const isFirst = pending?.state === "sent";
    if (pending === undefined || !(isFirst || (pending.state === "answered" && ports.isReplay === true)))
      return undefined;
    if (isFirst) this.#answered(key, pending);
    const refusal = await this.#refusalOfAnswer(pending, response, isFirst);
    if (isFirst) this.#reportEnd(pending, response, refusal !== undefined);
    if (refusal !== undefined) return this.#refuse(pending, refusal);
    const result = response.result && this.#filtered(pending.method, response.result);
    const isSame = result === response.result;
    return ports.toClient(isSame || result === undefined ? response.text : messages.resultText(id, result));
  }

  #answered(key: string, pending: Pending): void {
    pending.state = "answered";
    this.#pending.delete(key);
    if (!this.#context.keepsAnswered) return;
    this.#pending.set(key, pending);
    for (const [oldest, { state }] of this.#pending) {
      if (this.#pending.size <= answeredMax) return;
      if (state === "answered") this.#pending.delete(oldest);
    }
  }

  #filtered(method: string, result: JsonObject): JsonObject {
    const { pins } = this.#context;
    if (method === "tools/list") return this.#catalogue.filtered(result);
    if (method !== "initialize" && method !== "server/discover") return result;
    const kept = serverResult(result, pins.channels);
    const text = kept["instructions"];
    if (text === undefined || (typeof text === "string" && pins.hasInstructions(text))) return kept;
    this.#context.say(
      `the server's instructions are not the accepted ones: they are removed until you run ${pins.remedy}`,
    );
    return without(kept, "instructions");
  }

  /** A server can ask for something in its answer: each request in it needs its channel and the gate's ALLOW. */
  async #refusalOfAnswer(
    pending: Pending,
    { result, error }: messages.Response,
    isFirst: boolean,
  ): Promise<string | undefined> {
    const { signal } = pending.stop;
    const unclear = "Svc: the server asks for input in a way that cannot be judged.";
    if (error?.["code"] === urlElicitationCode) {
      const { elicitations: asked, ...others } = objectIn(error, "data") ?? {};
      if (!Array.isArray(asked) || Object.keys(others).length > 0) return unclear;
      return this.#refusalOfAll(
        asked.map((params) => ({ method: "elicitation/create", params })),
        signal,
      );
    }
    if (result?.["resultType"] !== "input_required") return undefined;
    const { call, verdicts } = pending;
    if (call === undefined) return "Svc: the server asks for input at a point where MCP does not allow it.";
    const asked = result["inputRequests"] ?? {};
    const state = result["requestState"];
    if (!isObject(asked) || !(state === undefined || typeof state === "string")) return unclear;
    const refusal = await this.#refusalOfAll(Object.values(asked), signal);
    // An answer that a stream repeats permits no second round.
    if (refusal === undefined && isFirst) this.#context.rounds.add(call, state, verdicts);
    return refusal;
  }

  async #refusalOfAll(requests: readonly unknown[], signal: AbortSignal): Promise<string | undefined> {
    for (const request of requests) {
      const method = textIn(request, "method") ?? "";
      if (!isObject(request) || Object.keys(request).some((name) => name !== "method" && name !== "params"))
        return "Svc: the server asks for input in a way that cannot be judged.";
      const found = allowedMethod(requestsOfServer, method, this.#context.pins.channels);
      if (found === undefined) return deniedMethod(requestsOfServer, method, this.#context.pins.remedy);
      if (found.judged === undefined) continue;
      const refusal = await this.#refusalOf(found.judged, objectIn(request, "params") ?? {}, signal);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  }

  /** A server's word that it did nothing is not enough: `failed` could undo the count of a call that ran. */
  #reportEnd({ method, taskId, verdicts }: Pending, { result }: messages.Response, isRefused: boolean): void {
    const { judge, tasks } = this.#context;
    if (method === "tasks/result" && result !== undefined)
      this.#taskEnded(taskId, { status: result["isError"] === true ? "failed" : "completed" });
    if (method === "tasks/get" || method === "tasks/cancel") this.#taskEnded(taskId, result);
    if (verdicts.length === 0 || tasks.begin(result, verdicts)) return;
    const isUnfinished = result?.["resultType"] === "input_required" && !isRefused;
    if (isUnfinished) return;
    const isDone = result !== undefined && result["isError"] !== true && !isRefused;
    judge.report(verdicts, isDone ? "done" : "unknown");
  }

  #taskEnded(id: string | undefined, state: JsonObject | undefined): void {
    const ended = this.#context.tasks.end(id, state);
    if (ended !== undefined) this.#context.judge.report(ended.verdicts, ended.status);
  }

  #lister(ports: Ports): ListTools {
    return async (cursor) => {
      const meta = this.#meta === undefined ? {} : { _meta: ownMeta(this.#meta) };
      const params = { ...meta, ...(cursor === undefined ? {} : { cursor }) };
      return (await this.#ask("tools/list", params, ports))?.result;
    };
  }

  #ask(method: string, params: JsonObject, ports: Ports): Promise<messages.Response | undefined> {
    this.#ownCount += 1;
    const id = `${this.#ownPrefix}-${this.#ownCount}`;
    const key = messages.keyOf(id);
    return new Promise((resolve) => {
      const end = (response: messages.Response | undefined): void => {
        clearTimeout(timer);
        this.#own.delete(key);
        resolve(response);
      };
      const timer = setTimeout(() => end(undefined), listTimeoutMs);
      this.#own.set(key, end);
      ports.toServer(messages.requestText({ id, method, params }), true);
    });
  }
}

/** The client's protocol version and capabilities, without what belongs to its own request. */
function ownMeta(meta: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(meta).filter(([name]) => name.startsWith("io.modelcontextprotocol/")));
}
