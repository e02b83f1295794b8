import type { Verdict } from "../../../../clients/javascript/svc-gate.mjs";
import type { Catalogue } from "./catalogue.ts";
import { clientParams, findAllowedMethod, requestsOfClient, serverResult } from "./channels.ts";
import { openMax, type Ports, type RelayContext } from "./context.ts";
import { isObject, objectIn, textIn, without, type JsonRecord } from "./json.ts";
import type { WaitOptions } from "./judge.ts";
import * as messages from "./message.ts";
import { channelName, responsesName, toolName } from "./names.ts";
import type { OwnQuestions } from "./own-questions.ts";
import type { RoundCall } from "./rounds.ts";
import type { ServerRequests } from "./server-requests.ts";

/** Without the request's text: a client may leave many requests open. */
interface ClientRequest {
  readonly id: messages.MessageId;
  readonly method: string;
  readonly isTask: boolean;
  readonly taskId: string | undefined;
  readonly ports: Ports;
  readonly stop: AbortController;
  state: "waiting" | "sent" | "answered";
  call?: RoundCall;
  verdicts: readonly Verdict[];
}

/** What the gate is asked about a request, and the verdicts of its earlier rounds. */
interface RoundQuestion {
  readonly name: string;
  readonly input: JsonRecord;
  readonly earlier: readonly Verdict[];
}

/** An error of servers of 2025-11-25 that contains requests for the user. */
const urlElicitationCode = -32042;
/** Answered requests of one session that a resumed stream can answer again. */
const answeredMax = 100;
/** Members of a call's params: the proxy judges or understands each. */
const callMembers = ["name", "arguments", "_meta", "task", "inputResponses", "requestState"];

/** The requests of a client: each waits here for the gate's verdict, and then for the server's answer. */
export class ClientRequests {
  readonly #context: RelayContext;
  readonly #catalogue: Catalogue;
  readonly #server: ServerRequests;
  readonly #own: OwnQuestions;
  readonly #open = new Map<string, ClientRequest>();

  constructor(context: RelayContext, catalogue: Catalogue, server: ServerRequests, own: OwnQuestions) {
    this.#context = context;
    this.#catalogue = catalogue;
    this.#server = server;
    this.#own = own;
  }

  /** Resolves when the request has left, or was refused. */
  async start(request: messages.RpcRequest, ports: Ports): Promise<void> {
    const { id, method } = request;
    const { pins, prefix } = this.#context;
    const error = (code: number, sentence: string): void => ports.toClient(messages.errorText(id, code, sentence));
    const key = messages.keyOf(id);
    if ((this.#open.get(key)?.state ?? "answered") !== "answered")
      return error(messages.errors.invalid, "Svc: another request with this id is still open.");
    if (this.#open.size >= openMax) return error(messages.errors.refused, "Svc: too many requests are open.");
    const found = findAllowedMethod(requestsOfClient, method, pins);
    if (typeof found === "string") return error(messages.errors.method, found);
    if (method === "tools/list" && pins.refusal !== null) return error(messages.errors.refused, pins.refusal);
    const params = clientParams(request.params, method, pins.channels);
    this.#own.speakAs(objectIn(params, "_meta"));
    const [isTask, taskId] = ["task" in params, textIn(params, "taskId")];
    const open: ClientRequest = {
      id,
      method,
      isTask,
      taskId,
      ports,
      stop: new AbortController(),
      state: "waiting",
      verdicts: [],
    };
    this.#open.delete(key);
    this.#open.set(key, open);
    if (method === "tools/call") return this.#call(open, params);
    if (found.judged !== undefined) {
      const input = without(params, "_meta", "inputResponses", "requestState");
      return this.#sendIfAllowed(open, params, { method, name: channelName(prefix, found.judged), input });
    }
    return send(open, params === request.params ? request.text : messages.requestText({ id, method, params }));
  }

  async #call(open: ClientRequest, params: JsonRecord): Promise<void> {
    const { name: tool, arguments: input = {}, requestState: state = "" } = params;
    const odd = Object.keys(params).find((member) => !callMembers.includes(member));
    if (typeof tool !== "string" || !isObject(input) || typeof state !== "string" || odd !== undefined) {
      const why =
        "Svc: a call must have a name, may have arguments, and must have no other member that a server could read.";
      this.#open.delete(messages.keyOf(open.id));
      return open.ports.toClient(messages.errorText(open.id, messages.errors.params, why));
    }
    const task = open.isTask ? findAllowedMethod(requestsOfClient, "tasks/get", this.#context.pins) : undefined;
    if (typeof task === "string") return this.#refuse(open, task);
    const refusalOfPins = (): Promise<string | undefined> =>
      this.#catalogue.refusal(tool, this.#own.lister(open.ports));
    const refusal = await refusalOfPins();
    if (refusal !== undefined) return this.#refuse(open, refusal);
    let name: string;
    try {
      name = toolName(this.#context.prefix, tool);
    } catch {
      return this.#refuse(open, "Svc: the tool's name is not Unicode text; the call is blocked.");
    }
    return this.#sendIfAllowed(open, params, { method: "tools/call", name, input }, refusalOfPins);
  }

  /**
   * Sends the request on if the gate allows it, as exactly the data that the gate has judged.
   *
   * @param refusalLater called after the verdict: while a person decides, a tool can change
   */
  async #sendIfAllowed(
    open: ClientRequest,
    params: JsonRecord,
    call: RoundCall,
    refusalLater?: () => Promise<string | undefined>,
  ): Promise<void> {
    const { judge } = this.#context;
    const { id, method, stop } = open;
    if (stop.signal.aborted) return undefined;
    const question = this.#question(params, call);
    if (typeof question === "string") return this.#refuse(open, question);
    const { name, input, earlier } = question;
    const judgement = await judge.judge(name, input, makeWaitOptions(open, params));
    const changed = judgement.isAllowed ? await refusalLater?.() : undefined;
    if (judgement.isAllowed && (stop.signal.aborted || changed !== undefined))
      judge.report([judgement.verdict], "failed");
    if (!judgement.isAllowed) return this.#refuse(open, judgement.reason);
    if (changed !== undefined) return this.#refuse(open, changed);
    if (stop.signal.aborted) return undefined;
    open.call = call;
    open.verdicts = [...earlier, judgement.verdict];
    return send(open, messages.requestText({ id, method, params }));
  }

  /** Returns what the gate is asked, or why it is not. A later round counts under a name of its own. */
  #question(params: JsonRecord, call: RoundCall): RoundQuestion | string {
    if (!("inputResponses" in params || "requestState" in params)) return { ...call, earlier: [] };
    const earlier = this.#context.rounds.take(call, params["requestState"]);
    if (earlier === undefined)
      return "Svc: no open call has this tool, these arguments and this state, so the answers are refused; make a new call.";
    const responses = params["inputResponses"] ?? {};
    if (!isObject(responses) || "$responses" in call.input) return "Svc: the answers cannot be judged.";
    return { name: responsesName(call.name), input: { ...call.input, $responses: responses }, earlier };
  }

  #refuse({ id, method, isTask, ports, stop }: ClientRequest, reason: string): void {
    if (stop.signal.aborted) return;
    this.#open.delete(messages.keyOf(id));
    // A client that expects a task cannot read a tool's result.
    const isResult = method === "tools/call" && !isTask;
    ports.toClient(
      isResult ? messages.refusalText(id, reason) : messages.errorText(id, messages.errors.refused, reason),
    );
  }

  /** The client does not wait for the answer any more. Returns the state that the request had; undefined if it was not open. */
  abandon(id: messages.MessageId): "waiting" | "sent" | undefined {
    const key = messages.keyOf(id);
    const open = this.#open.get(key);
    if (open === undefined || open.state === "answered") return undefined;
    this.#open.delete(key);
    open.stop.abort();
    if (open.state === "sent") this.#context.judge.report(open.verdicts, "unknown");
    return open.state;
  }

  /** The server ends a subscription; returns false if the request is not one. */
  unsubscribe(key: string): boolean {
    return this.#open.get(key)?.method === "subscriptions/listen" && this.#open.delete(key);
  }

  /** Answers everything that is still open: the server has ended. */
  close(reason: string): void {
    for (const { id, ports } of this.#open.values())
      if (this.abandon(id) !== undefined) ports.toClient(messages.errorText(id, messages.errors.internal, reason));
  }

  /** Passes an answer of the server on, unless its request has one already. */
  async answer(key: string, response: messages.RpcResponse, { toClient, isReplay = false }: Ports): Promise<void> {
    const open = this.#open.get(key);
    const isFirst = open?.state === "sent";
    if (open === undefined || !(isFirst || (open.state === "answered" && isReplay))) return undefined;
    if (isFirst) this.#markAnswered(key, open);
    const refusal = await this.#refusalOfAnswer(open, response, isFirst);
    if (isFirst) this.#reportEnd(open, response, refusal !== undefined);
    if (refusal !== undefined) return this.#refuse(open, refusal);
    const result = response.result && this.#filterResult(open.method, response.result);
    const isSame = result === response.result;
    return toClient(isSame || result === undefined ? response.text : messages.resultText(open.id, result));
  }

  #markAnswered(key: string, open: ClientRequest): void {
    open.state = "answered";
    this.#open.delete(key);
    if (!this.#context.keepsAnswered) return;
    this.#open.set(key, open);
    for (const [oldest, { state }] of this.#open) {
      if (this.#open.size <= answeredMax) return;
      if (state === "answered") this.#open.delete(oldest);
    }
  }

  #filterResult(method: string, result: JsonRecord): JsonRecord {
    const { pins } = this.#context;
    if (method === "tools/list") return this.#catalogue.filterTools(result);
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
    { call, stop: { signal }, verdicts }: ClientRequest,
    { result, error }: messages.RpcResponse,
    isFirst: boolean,
  ): Promise<string | undefined> {
    const unclear = "Svc: the server asks for input in a way that cannot be judged.";
    if (error?.["code"] === urlElicitationCode) {
      const { elicitations, ...others } = objectIn(error, "data") ?? {};
      if (!Array.isArray(elicitations) || Object.keys(others).length > 0) return unclear;
      const requests = elicitations.map((params) => ({ method: "elicitation/create", params }));
      return this.#server.refusalOfAll(requests, signal);
    }
    if (result?.["resultType"] !== "input_required") return undefined;
    if (call === undefined) return "Svc: the server asks for input at a point where MCP does not allow it.";
    const requests = result["inputRequests"] ?? {};
    const state = result["requestState"];
    if (!isObject(requests) || !(state === undefined || typeof state === "string")) return unclear;
    const refusal = await this.#server.refusalOfAll(Object.values(requests), signal);
    // An answer that a stream repeats permits no second round.
    if (refusal === undefined && isFirst) this.#context.rounds.add(call, state, verdicts);
    return refusal;
  }

  /** A server's word that it did nothing is not enough: `failed` could undo the count of a call that ran. */
  #reportEnd({ method, taskId, verdicts }: ClientRequest, { result }: messages.RpcResponse, isRefused: boolean): void {
    const { judge, tasks } = this.#context;
    if (method === "tasks/result" && result !== undefined)
      this.taskEnded(taskId, { status: result["isError"] === true ? "failed" : "completed" });
    if (method === "tasks/get" || method === "tasks/cancel") this.taskEnded(taskId, result);
    if (verdicts.length === 0 || tasks.start(result, verdicts)) return;
    const isUnfinished = result?.["resultType"] === "input_required" && !isRefused;
    if (isUnfinished) return;
    const isDone = result !== undefined && result["isError"] !== true && !isRefused;
    judge.report(verdicts, isDone ? "done" : "unknown");
  }

  /** Reports the call of a task that has ended. */
  taskEnded(id: string | undefined, state: JsonRecord | undefined): void {
    const ended = this.#context.tasks.end(id, state);
    if (ended !== undefined) this.#context.judge.report(ended.verdicts, ended.status);
  }
}

function send(open: ClientRequest, text: string): void {
  open.state = "sent";
  open.ports.toServer(text, false);
}

function makeWaitOptions({ ports, stop }: ClientRequest, params: JsonRecord): WaitOptions {
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
