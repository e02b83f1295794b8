/**
 * Stands between one client and one server, whatever the transport.
 *
 * Promises: a call of a tool goes on only after an ALLOW for exactly that call; a method, a capability and a tool that
 * nobody allowed do not pass; a message that passes unchanged is the same text.
 */
import type { Catalogue } from "./catalogue.ts";
import { notificationsOfClient, notificationsOfServer, permitted } from "./channels.ts";
import { ClientRequests } from "./client-requests.ts";
import type { Ports, RelayContext } from "./context.ts";
import { textIn, type JsonObject } from "./json.ts";
import { keyOf, type Message, type MessageId, type Notification } from "./message.ts";
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
  async fromClient(message: Message, ports: Ports): Promise<void> {
    if (message.kind === "request") return this.#client.start(message, ports);
    return message.kind === "notification" ? this.#told(message, ports) : this.#server.answer(message, ports);
  }

  #told({ method, params, text }: Notification, ports: Ports): void {
    if (typeof permitted(notificationsOfClient, method, this.#context.pins) === "string") return;
    if (method !== "notifications/cancelled") return ports.toServer(text, false);
    const id = cancelledIn(params);
    if (id !== undefined && this.#client.abandon(id) === "sent") ports.toServer(text, false);
  }

  async fromServer(message: Message, ports: Ports): Promise<void> {
    if (message.kind === "request") return this.#server.start(message, ports);
    if (message.kind === "notification") return this.#toldByServer(message, ports);
    if (message.id === null) return ports.toClient(message.text);
    const key = keyOf(message.id);
    return this.#own.answer(key, message) ? undefined : this.#client.answer(key, message, ports);
  }

  async #toldByServer({ method, params, text }: Notification, ports: Ports): Promise<void> {
    if (typeof permitted(notificationsOfServer, method, this.#context.pins) === "string") return undefined;
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
  #isCancelled(params: JsonObject): boolean {
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

function cancelledIn(params: JsonObject): MessageId | undefined {
  const id = params["requestId"];
  return typeof id === "string" || typeof id === "number" ? id : undefined;
}
