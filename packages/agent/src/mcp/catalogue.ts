/** The tools of one server as it lists them now, beside what a person accepted. */
import { isObject, textIn, type JsonRecord } from "./json.ts";
import type { Pins } from "./pins.ts";

/** Asks the server for one page of its tools. Undefined: the server did not answer with a list. */
export type ListTools = (cursor: string | undefined) => Promise<JsonRecord | undefined>;

/** A server may change its tools without telling: the list is read again after this time. */
const freshMs = 300_000;
/** Pages of one list, and the time after which no page of it is requested. */
const pagesMax = 100;
const listMs = 60_000;
/** A list that changes during each of so many readings is none. */
const readingsMax = 3;
/** Hidden tools that the proxy names to people. */
const saidMax = 1000;

type ToolStatus = "accepted" | "changed" | "new";

export class Catalogue {
  readonly #pins: Pins;
  readonly #say: (sentence: string) => void;
  #status = new Map<string, ToolStatus>();
  #reading: Promise<boolean> | undefined;
  #readMs = -Infinity;
  readonly #said = new Set<string>();

  constructor(pins: Pins, say: (sentence: string) => void) {
    this.#pins = pins;
    this.#say = say;
  }

  /** Removes what nobody accepted from a page of tools. */
  filterTools(result: JsonRecord): JsonRecord {
    const tools = Array.isArray(result["tools"]) ? result["tools"] : [];
    const kept = tools.filter((tool) => this.#see(tool, this.#status));
    return kept.length === tools.length && Array.isArray(result["tools"]) ? result : { ...result, tools: kept };
  }

  /** Two definitions of one name are judged by the worse. */
  #see(tool: unknown, into: Map<string, ToolStatus>): boolean {
    const name = textIn(tool, "name");
    if (!isObject(tool) || name === undefined) return false;
    const status = this.#pins.statusOf(name, tool);
    if ((into.get(name) ?? "accepted") !== "accepted") return false;
    if (this.#pins.hasTool(name)) into.set(name, status);
    const isUnsaid = !this.#said.has(name) && this.#said.size < saidMax;
    if (status !== "accepted" && this.#pins.refusal === null && isUnsaid) {
      this.#said.add(name);
      this.#say(
        `the tool ${JSON.stringify(name)} is ${status}: it is hidden and blocked until you run ${this.#pins.remedy}`,
      );
    }
    return status === "accepted";
  }

  /** Why a call of the tool is blocked, whatever the gate says; undefined if a person accepted the tool. */
  async refusal(name: string, list: ListTools): Promise<string | undefined> {
    const { refusal } = this.#pins;
    if (refusal !== null) return refusal;
    const quoted = JSON.stringify(name.slice(0, 128));
    const again = `a person must run: ${this.#pins.remedy}`;
    if (!this.#pins.hasTool(name)) return `Svc: nobody has accepted the tool ${quoted} of this MCP server; ${again}`;
    const unlisted = `Svc: the MCP server does not list the tool ${quoted} now; the call is blocked.`;
    for (let count = 0; this.#isStale(); count += 1) {
      if (count === readingsMax || !(await this.read(list))) return unlisted;
    }
    const status = this.#status.get(name);
    if (status === "accepted") return undefined;
    return status === undefined
      ? unlisted
      : `Svc: the tool ${quoted} of this MCP server has changed since it was accepted; ${again}`;
  }

  /** A list that changes while it is read is stale when it has been read. */
  #isStale(): boolean {
    return this.#reading !== undefined || performance.now() - this.#readMs > freshMs;
  }

  /** Reads the whole list again; false if the server does not show it. Later callers share a reading under way. */
  read(list: ListTools): Promise<boolean> {
    this.#reading ??= this.#readAll(list).finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /** The next call reads the list again. */
  forget(): void {
    this.#readMs = -Infinity;
  }

  async #readAll(list: ListTools): Promise<boolean> {
    const status = new Map<string, ToolStatus>();
    this.#status = status;
    this.#readMs = performance.now();
    const endMs = this.#readMs + listMs;
    let cursor: string | undefined;
    for (let page = 0; page < pagesMax; page += 1) {
      const result = await list(cursor);
      if (!Array.isArray(result?.["tools"]) || performance.now() > endMs) {
        this.#status = new Map();
        this.forget();
        return false;
      }
      for (const tool of result["tools"]) this.#see(tool, status);
      cursor = textIn(result, "nextCursor");
      if (cursor === undefined) break;
    }
    return true;
  }
}
