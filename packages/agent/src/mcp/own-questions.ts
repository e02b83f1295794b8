import { randomBytes } from "node:crypto";
import type { ListTools } from "./catalogue.ts";
import type { Ports } from "./context.ts";
import type { JsonRecord } from "./json.ts";
import { keyOf, requestText, type RpcResponse } from "./message.ts";

/** A server that does not list its tools in this time has none. */
const listTimeoutMs = 30_000;
const protocolVersionKey = "io.modelcontextprotocol/protocolVersion";

/** Questions that the proxy asks a server for itself. */
export class OwnQuestions {
  readonly #open = new Map<string, (response: RpcResponse | undefined) => void>();
  readonly #prefix = `svc-gate-${randomBytes(8).toString("hex")}`;
  #count = 0;
  /** What a client of the newer protocol states with each request. */
  #stated: { readonly _meta?: JsonRecord } = {};

  /** Takes over the protocol version and the capabilities from `_meta` of a client's request. */
  speakAs(meta: JsonRecord | undefined): void {
    if (meta === undefined || !(protocolVersionKey in meta)) return;
    const own = Object.entries(meta).filter(([name]) => name.startsWith("io.modelcontextprotocol/"));
    this.#stated = { _meta: Object.fromEntries(own) };
  }

  lister(ports: Ports): ListTools {
    return async (cursor) => {
      const params = { ...this.#stated, ...(cursor === undefined ? {} : { cursor }) };
      return (await this.#ask("tools/list", params, ports))?.result;
    };
  }

  #ask(method: string, params: JsonRecord, ports: Ports): Promise<RpcResponse | undefined> {
    this.#count += 1;
    const id = `${this.#prefix}-${this.#count}`;
    const key = keyOf(id);
    return new Promise((resolve) => {
      const end = (response: RpcResponse | undefined): void => {
        clearTimeout(timer);
        this.#open.delete(key);
        resolve(response);
      };
      const timer = setTimeout(() => end(undefined), listTimeoutMs);
      this.#open.set(key, end);
      ports.toServer(requestText({ id, method, params }), true);
    });
  }

  /** Takes an answer; returns false if it belongs to none of the questions. */
  answer(key: string, response: RpcResponse): boolean {
    const end = this.#open.get(key);
    end?.(response);
    return end !== undefined;
  }

  /** The server has ended. */
  close(): void {
    for (const end of this.#open.values()) end(undefined);
  }
}
