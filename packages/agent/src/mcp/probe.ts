/** Asks a server, in both generations of the protocol, what it offers. `accept` shows the answers to a person. */
import { spawn } from "node:child_process";
import { isObject, textIn, type JsonObject } from "./json.ts";
import { readLines } from "./lines.ts";
import * as messages from "./message.ts";
import type { Source } from "./pins.ts";
import { serverEnv } from "./settings.ts";
import { answerMs, eventsOf, textOf, typeOf, type Upstream } from "./upstream.ts";

export interface Offer {
  readonly instructions: string | undefined;
  readonly tools: readonly JsonObject[];
}

/** Undefined: the server did not answer with a result. */
type Ask = (method: string, params: JsonObject) => Promise<JsonObject | undefined>;

interface Link {
  readonly ask: Ask;
  readonly notify: (method: string, params: JsonObject) => Promise<void>;
  readonly close: () => Promise<void>;
}

const newer = "2026-07-28";
const older = "2025-11-25";
const clientInfo = { name: "svc-gate", version: "1.0.0" };
const pagesMax = 100;

/** A server often offers a tool only to clients with a capability, so the question states all that are allowed. */
export async function probe(source: Source, capabilities: JsonObject, upstream?: Upstream): Promise<readonly Offer[]> {
  const offers: Offer[] = [];
  for (const era of [newer, older]) {
    const link = upstream === undefined ? childLink(source.command) : httpLink(upstream, era);
    try {
      const offer = await (era === newer ? newerOffer(link, capabilities) : olderOffer(link, capabilities));
      if (offer !== undefined) offers.push(offer);
    } finally {
      await link.close();
    }
  }
  return offers;
}

async function newerOffer(link: Link, capabilities: JsonObject): Promise<Offer | undefined> {
  const meta = {
    "io.modelcontextprotocol/protocolVersion": newer,
    "io.modelcontextprotocol/clientInfo": clientInfo,
    "io.modelcontextprotocol/clientCapabilities": capabilities,
  };
  const found = await link.ask("server/discover", { _meta: meta });
  if (!Array.isArray(found?.["supportedVersions"]) || !found["supportedVersions"].includes(newer)) return undefined;
  return { instructions: textIn(found, "instructions"), tools: await toolsOf(link.ask, { _meta: meta }) };
}

async function olderOffer(link: Link, capabilities: JsonObject): Promise<Offer | undefined> {
  const found = await link.ask("initialize", { protocolVersion: older, capabilities, clientInfo });
  if (found === undefined) return undefined;
  await link.notify("notifications/initialized", {});
  return { instructions: textIn(found, "instructions"), tools: await toolsOf(link.ask, {}) };
}

async function toolsOf(ask: Ask, params: JsonObject): Promise<readonly JsonObject[]> {
  const tools: JsonObject[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < pagesMax; page += 1) {
    const result = await ask("tools/list", cursor === undefined ? params : { ...params, cursor });
    tools.push(...(Array.isArray(result?.["tools"]) ? result["tools"].filter(isObject) : []));
    cursor = textIn(result, "nextCursor");
    if (cursor === undefined) break;
  }
  return tools;
}

function childLink([program = "", ...words]: readonly string[]): Link {
  const child = spawn(program, words, { stdio: ["pipe", "pipe", "ignore"], env: serverEnv(process.env) });
  const waiting = new Map<messages.MessageId, (result: JsonObject | undefined) => void>();
  const ended = new Promise<void>((resolve) => {
    const end = (): void => {
      for (const each of waiting.values()) each(undefined);
      waiting.clear();
      resolve();
    };
    child.on("error", end);
    child.on("close", end);
  });
  child.stdin.on("error", () => undefined);
  readLines(child.stdout, {
    line: (text) => {
      const message = readable(text);
      if (message?.kind === "response" && message.id !== null) waiting.get(message.id)?.(message.result);
      if (message?.kind === "request")
        child.stdin.write(`${messages.errorText(message.id, messages.errors.method, "not now")}\n`);
    },
    fault: () => undefined,
    end: () => undefined,
  });
  let count = 0;
  const ask: Ask = (method, params) =>
    new Promise((resolve) => {
      count += 1;
      const id = count;
      const timer = setTimeout(() => resolve(undefined), method === "server/discover" ? answerMs / 6 : answerMs);
      waiting.set(id, (result) => {
        clearTimeout(timer);
        waiting.delete(id);
        resolve(result);
      });
      child.stdin.write(`${messages.requestText({ id, method, params })}\n`);
    });
  const notify = async (method: string, params: JsonObject): Promise<void> => {
    child.stdin.write(`${messages.notificationText(method, params)}\n`);
  };
  const close = async (): Promise<void> => {
    child.stdin.end();
    const timer = setTimeout(() => child.kill("SIGKILL"), 2000);
    await ended;
    clearTimeout(timer);
  };
  return { ask, notify, close };
}

function httpLink(upstream: Upstream, era: string): Link {
  let session: string | undefined;
  let count = 0;
  const headers = (method: string): Record<string, string> => ({
    accept: "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-protocol-version": era,
    ...(era === newer ? { "mcp-method": method } : {}),
    ...(session === undefined ? {} : { "mcp-session-id": session }),
  });
  const ask: Ask = async (method, params) => {
    count += 1;
    const body = messages.requestText({ id: count, method, params });
    const signal = AbortSignal.timeout(answerMs);
    const answer = await upstream.send({ method: "POST", headers: headers(method), body, signal });
    const id = answer.headers["mcp-session-id"];
    if (typeof id === "string") session = id;
    if (typeOf(answer) === "json") return resultIn(await textOf(answer), count);
    if (typeOf(answer) === "other") return void answer.destroy();
    for await (const { data } of eventsOf(answer)) {
      const message = readable(data);
      if (message?.kind === "response" && message.id === count) return message.result;
    }
    return undefined;
  };
  const notify = async (method: string, params: JsonObject): Promise<void> => {
    const body = messages.notificationText(method, params);
    (await upstream.send({ method: "POST", headers: headers(method), body })).destroy();
  };
  const close = async (): Promise<void> => {
    if (session === undefined) return;
    const answer = await upstream.send({ method: "DELETE", headers: headers("") }).catch(() => undefined);
    answer?.destroy();
  };
  return { ask, notify, close };
}

function resultIn(text: string, id: number): JsonObject | undefined {
  const message = readable(text);
  return message?.kind === "response" && message.id === id ? message.result : undefined;
}

function readable(text: string): messages.Message | undefined {
  try {
    return messages.readMessage(text);
  } catch {
    return undefined;
  }
}
