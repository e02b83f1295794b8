import { randomBytes } from "node:crypto";
import type { Logger } from "pino";
import type { Ledger } from "../../ledger/mod.ts";
import type { EventFeed } from "../events/feed.ts";
import type { GateObserver } from "../telemetry/observer.ts";
import type { Endpoint } from "./endpoints.ts";
import { Sender, type SenderState } from "./sender.ts";

export interface NotifierOptions {
  readonly endpoints: readonly Endpoint[];
  /** The address under which people reach this gate, for links. */
  readonly publicUrl: string | undefined;
  readonly log: Logger;
  readonly observer: GateObserver;
}

/** A ledger whose events are sent. */
interface WebhookSource {
  /** Null is the root. */
  readonly tenant: string | null;
  readonly ledger: Pick<Ledger, "deliveries" | "name">;
  readonly events: EventFeed;
}

/** Sends the events of all ledgers of a process to the endpoints of a file. */
export class Notifier {
  readonly #options: NotifierOptions;
  /** Names this process to other gates that share a ledger. */
  readonly #owner = randomBytes(16).toString("hex");

  constructor(options: NotifierOptions) {
    this.#options = options;
  }

  get names(): readonly string[] {
    return this.#options.endpoints.map(({ name }) => name);
  }

  /** Returns true if an endpoint gets the events of a tenant. */
  wants(tenant: string | null): boolean {
    return this.#options.endpoints.some((endpoint) => isFor(endpoint, tenant));
  }

  sendersOf({ tenant, ledger, events: feed }: WebhookSource): Senders {
    const { endpoints, publicUrl, log, observer } = this.#options;
    const origin = { log: ledger.name, tenant, publicUrl };
    const common = { origin, feed, deliveries: ledger.deliveries, owner: this.#owner, log, observer };
    const chosen = endpoints.filter((endpoint) => isFor(endpoint, tenant));
    return new Senders(
      feed,
      chosen.map((endpoint) => new Sender({ ...common, endpoint })),
    );
  }
}

function isFor({ tenants }: Endpoint, tenant: string | null): boolean {
  if (tenants === "all") return true;
  return tenant === null ? tenants === undefined : tenants?.includes(tenant) === true;
}

export class Senders {
  readonly #feed: EventFeed;
  readonly #all: readonly Sender[];

  constructor(feed: EventFeed, all: readonly Sender[]) {
    this.#feed = feed;
    this.#all = all;
  }

  start(): void {
    for (const sender of this.#all) sender.start();
  }

  /** Reads how far each endpoint has got, without sending anything. */
  async look(): Promise<void> {
    await Promise.all(this.#all.map((sender) => sender.look()));
  }

  /** True while something is open or undelivered, so that the ledger must stay open. */
  get isBusy(): boolean {
    return this.#all.length > 0 && (this.#feed.hasOpen || this.#all.some(({ isBusy }) => isBusy));
  }

  get states(): readonly SenderState[] {
    return this.#all.map(({ state }) => state);
  }

  /**
   * Sends all events from a row on again.
   *
   * @param endpoint undefined means every endpoint
   * @returns the names of the endpoints
   */
  async replay(row: number, endpoint: string | undefined): Promise<readonly string[]> {
    const chosen = this.#all.filter(({ state }) => endpoint === undefined || state.endpoint === endpoint);
    for (const sender of chosen) await sender.replay(row);
    return chosen.map(({ state }) => state.endpoint);
  }

  async end(): Promise<void> {
    await Promise.all(this.#all.map((sender) => sender.end()));
  }
}
