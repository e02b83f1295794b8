/** Asks a server, in both generations of the protocol, what it offers. `accept` and `tools` show the answers. */
import { isObject, textIn, type JsonRecord } from "./json.ts";
import { childLink, httpLink, ProbeError, type ServerLink } from "./links.ts";
import type { ServerSource } from "./pins.ts";
import { answerMs, UpstreamError, type Upstream } from "./upstream.ts";

export interface Offer {
  readonly instructions: string | undefined;
  readonly tools: readonly JsonRecord[];
}

export interface ProbeOptions {
  /** A server often offers a tool only to clients with a capability, so the question states all that are allowed. */
  readonly capabilities: JsonRecord;
  readonly upstream?: Upstream | undefined;
  /** How long the server may take for one answer. */
  readonly waitMs?: number;
}

const newer = "2026-07-28";
const older = "2025-11-25";
const clientInfo = { name: "svc-gate", version: "1.0.0" };
/** Servers of the older generation may ignore the first question of the newer one. */
const discoverMs = 5000;

/** Bounds of one list. A list that goes past one is not cut short, because a part of it looks like the whole. */
const pagesMax = 100;
const toolsMax = 5000;
const charactersMax = 4_000_000;

/**
 * Returns at least one offer, that of the newer generation first.
 *
 * @throws ProbeError or UpstreamError if the server does not answer in either generation, or its list has no end
 */
export async function probe(source: ServerSource, probing: ProbeOptions): Promise<readonly Offer[]> {
  const { upstream, capabilities, waitMs = answerMs } = probing;
  const offers: Offer[] = [];
  let problem: Error | undefined;
  // The older one first: a command such as npx needs time for its first start, and this question waits longer.
  for (const era of [older, newer]) {
    const link = upstream === undefined ? childLink(source.command) : httpLink(upstream, era, era === newer);
    try {
      const greeting = await greet(link, { era, capabilities, waitMs }).catch((error: unknown) => {
        if (!(error instanceof ProbeError || error instanceof UpstreamError)) throw error;
        problem ??= error;
        return undefined;
      });
      if (greeting === undefined) continue;
      const tools = await fetchServerTools(link, greeting.params, waitMs);
      offers.unshift({ instructions: greeting.instructions, tools });
    } finally {
      await link.close();
    }
  }
  if (offers.length === 0) throw problem ?? new ProbeError("does not answer as an MCP server does");
  return offers;
}

interface Greeting {
  readonly instructions: string | undefined;
  /** What each request of this generation carries. */
  readonly params: JsonRecord;
}

/** Undefined: the server does not speak this generation. */
async function greet(
  link: ServerLink,
  { era, capabilities, waitMs }: { readonly era: string; readonly capabilities: JsonRecord; readonly waitMs: number },
): Promise<Greeting | undefined> {
  if (era === older) {
    const found = await link.ask("initialize", { protocolVersion: older, capabilities, clientInfo }, waitMs);
    if (found === undefined) return undefined;
    await link.notify("notifications/initialized", {});
    return { instructions: textIn(found, "instructions"), params: {} };
  }
  const meta = {
    "io.modelcontextprotocol/protocolVersion": newer,
    "io.modelcontextprotocol/clientInfo": clientInfo,
    "io.modelcontextprotocol/clientCapabilities": capabilities,
  };
  const found = await link.ask("server/discover", { _meta: meta }, Math.min(waitMs, discoverMs));
  if (!Array.isArray(found?.["supportedVersions"]) || !found["supportedVersions"].includes(newer)) return undefined;
  return { instructions: textIn(found, "instructions"), params: { _meta: meta } };
}

async function fetchServerTools(link: ServerLink, params: JsonRecord, waitMs: number): Promise<readonly JsonRecord[]> {
  const tools: JsonRecord[] = [];
  const cursors = new Set<string>();
  const endMs = performance.now() + 2 * waitMs;
  let characters = 0;
  let cursor: string | undefined;
  do {
    const result = await link.ask("tools/list", cursor === undefined ? params : { ...params, cursor }, waitMs);
    if (result === undefined && cursor === undefined) return []; // a server without tools
    if (!Array.isArray(result?.["tools"])) throw new ProbeError("answered tools/list without a list of tools");
    tools.push(...result["tools"].filter(isObject));
    characters += JSON.stringify(result).length;
    cursor = textIn(result, "nextCursor");
    if (tools.length > toolsMax) throw new ProbeError(`lists over ${toolsMax} tools`);
    if (characters > charactersMax) throw new ProbeError(`lists tools with over ${charactersMax} characters`);
    if (cursor === undefined) break;
    if (cursors.has(cursor)) throw new ProbeError("repeats pages of its list of tools");
    cursors.add(cursor);
    if (cursors.size >= pagesMax) throw new ProbeError(`lists its tools on over ${pagesMax} pages`);
    if (performance.now() > endMs) throw new ProbeError(`did not list its tools within ${(2 * waitMs) / 1000} s`);
  } while (cursor !== undefined);
  return tools;
}
