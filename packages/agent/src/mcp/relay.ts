/**
 * Stands between one client and one server, whatever the transport.
 *
 * Promises: a call of a tool goes on only after an ALLOW for exactly that call; a method, a capability and a tool that
 * nobody allowed do not pass; a message that passes unchanged is the same text.
 */
import type { Catalogue } from "./catalogue.ts";
import { notificationsOfClient, notificationsOfServer, findAllowedMethod } from "./channels.ts";
import { ClientRequests } from "./client-requests.ts";
import type { Ports, RelayContext } from "./context.ts";
import { textIn, type JsonRecord } from "./json.ts";
import { keyOf, type RpcMessage, type MessageId, type RpcNotification } from "./message.ts";
import { OwnQuestions } from "./own-questions.ts";
import { ServerRequests } from "./server-requests.ts";

export class Relay {
  readonly #context: RelayContext;
  readonly #catalogue: Catalogue;
  readonly #own = new OwnQuestions();
  readonly #server: ServerRequests;
  readonly #client: ClientRequests;
  /** The list is read for a notification, so another one says nothing new. */
  #isChangeRead = false;

  constructor(context: RelayContext, catalogue: Catalogue) {
    this.#context = context;
    this.#catalogue = catalogue;
    this.#server = new ServerRequests(context);
    this.#client = new ClientRequests(context, catalogue, this.#server, this.#own);
  }

  /** Resolves when the message has left, or was refused. */
  async fromClient(message: RpcMessage, ports: Ports): Promise<void> {
    if (message.kind === "request") return this.#client.start(message, ports);
    return message.kind === "notification"
      ? this.#passClientNotification(message, ports)
      : this.#server.answer(message, ports);
  }

  #passClientNotification({ method, params, text }: RpcNotification, ports: Ports): void {
    if (typeof findAllowedMethod(notificationsOfClient, method, this.#context.pins) === "string") return;
    if (method !== "notifications/cancelled") return ports.toServer(text, false);
    const id = cancelledIn(params);
    if (id !== undefined && this.#client.abandon(id) === "sent") ports.toServer(text, false);
  }

  async fromServer(message: RpcMessage, ports: Ports): Promise<void> {
    if (message.kind === "request") return this.#server.start(message, ports);
    if (message.kind === "notification") return this.#passServerNotification(message, ports);
    if (message.id === null) return ports.toClient(message.text);
    const key = keyOf(message.id);
    return this.#own.answer(key, message) ? undefined : this.#client.answer(key, message, ports);
  }

  async #passServerNotification({ method, params, text }: RpcNotification, ports: Ports): Promise<void> {
    if (typeof findAllowedMethod(notificationsOfServer, method, this.#context.pins) === "string") return undefined;
    if (method === "notifications/cancelled" && !this.#isCancelled(params)) return undefined;
    if (method === "notifications/tools/list_changed") {
      this.#catalogue.forget();
      if (this.#isChangeRead) return undefined;
      this.#isChangeRead = true;
      await this.#catalogue.read(this.#own.lister(ports));
      this.#isChangeRead = false;
    }
    if (method === "notifications/tasks/status") this.#client.taskEnded(textIn(params, "taskId"), params);
    return ports.toClient(text);
  }

  /** A server takes back its own request, or ends a subscription of the client. */
  #isCancelled(params: JsonRecord): boolean {
    const id = cancelledIn(params);
    if (id === undefined) return false;
    const [isOwn, isSubscription] = [this.#server.cancel(keyOf(id)), this.#client.unsubscribe(keyOf(id))];
    return isOwn || isSubscription;
  }

  /** The client does not wait for the answer any more. Returns false if the request was not open. */
  abandon(id: MessageId): boolean {
    return this.#client.abandon(id) !== undefined;
  }

  /** Answers everything that is still open: the server has ended. */
  close(reason: string): void {
    this.#client.close(reason);
    this.#server.close();
    this.#own.close();
  }
}

function cancelledIn(params: JsonRecord): MessageId | undefined {
  const id = params["requestId"];
  return typeof id === "string" || typeof id === "number" ? id : undefined;
}
