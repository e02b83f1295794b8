import { findAllowedMethod, requestsOfServer } from "./channels.ts";
import { openMax, type Ports, type RelayContext } from "./context.ts";
import { isObject, objectIn, textIn, without, type JsonRecord } from "./json.ts";
import * as messages from "./message.ts";
import { channelName } from "./names.ts";

interface ServerRequest {
  readonly stop: AbortController;
  /** The client has it, so it can answer. */
  isSent: boolean;
}

/** What a server asks of a client: each request needs its channel, and some need the gate's ALLOW. */
export class ServerRequests {
  readonly #context: RelayContext;
  readonly #open = new Map<string, ServerRequest>();

  constructor(context: RelayContext) {
    this.#context = context;
  }

  async start({ id, method, params, text }: messages.RpcRequest, ports: Ports): Promise<void> {
    const error = (code: number, why: string): void => ports.toServer(messages.errorText(id, code, why), false);
    const found = findAllowedMethod(requestsOfServer, method, this.#context.pins);
    if (typeof found === "string") return error(messages.errors.method, found);
    const key = messages.keyOf(id);
    if (this.#open.has(key) || this.#open.size >= openMax)
      return error(messages.errors.invalid, "Svc: another request with this id is still open.");
    const open: ServerRequest = { stop: new AbortController(), isSent: false };
    const { signal } = open.stop;
    this.#open.set(key, open);
    // A request that nobody judges passes at once, before the messages that come after it.
    const refusal = found.judged === undefined ? undefined : await this.#refusalOf(found.judged, params, signal);
    if (signal.aborted) return undefined;
    if (refusal !== undefined) {
      this.#open.delete(key);
      return error(messages.errors.refused, refusal);
    }
    open.isSent = true;
    return ports.toClient(found.judged === undefined ? text : messages.requestText({ id, method, params }));
  }

  /** The client answers. Its answer to a question that it did not get goes nowhere. */
  answer({ id, text }: messages.RpcResponse, ports: Ports): void {
    const key = id === null ? "" : messages.keyOf(id);
    if (this.#open.get(key)?.isSent !== true) return;
    this.#open.delete(key);
    ports.toServer(text, false);
  }

  /** The server takes its request back; returns false if it was not open. */
  cancel(key: string): boolean {
    this.#open.get(key)?.stop.abort();
    return this.#open.delete(key);
  }

  /** The server has ended. */
  close(): void {
    for (const { stop } of this.#open.values()) stop.abort();
  }

  /** Why requests in the server's answer to a call are refused; undefined if all may pass. */
  async refusalOfAll(requests: readonly unknown[], signal: AbortSignal): Promise<string | undefined> {
    for (const request of requests) {
      if (!isObject(request) || Object.keys(request).some((name) => name !== "method" && name !== "params"))
        return "Svc: the server asks for input in a way that cannot be judged.";
      const found = findAllowedMethod(requestsOfServer, textIn(request, "method") ?? "", this.#context.pins);
      if (typeof found === "string") return found;
      if (found.judged === undefined) continue;
      const refusal = await this.#refusalOf(found.judged, objectIn(request, "params") ?? {}, signal);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  }

  /** Asks the gate. */
  async #refusalOf(judged: string, params: JsonRecord, signal: AbortSignal): Promise<string | undefined> {
    const { judge, prefix } = this.#context;
    const name = channelName(prefix, judged);
    const { isAllowed, reason } = await judge.judge(name, without(params, "_meta"), { signal });
    return isAllowed ? undefined : reason;
  }
}
