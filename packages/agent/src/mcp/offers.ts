/** Reads what the server of a command line offers. */
import type { Channel } from "./channels.ts";
import type { McpOptions } from "./command.ts";
import type { JsonRecord } from "./json.ts";
import { ProbeError } from "./links.ts";
import { UsageError } from "./pins.ts";
import { probe, type Offer } from "./probe.ts";
import { describeError, secretOf } from "./settings.ts";
import { Upstream } from "./upstream.ts";

/**
 * Starts or asks the server as a client that allows these channels.
 *
 * @throws UsageError if it does not say what it offers
 */
export async function offersOf(
  { source, prefix, answerMs }: Pick<McpOptions, "source" | "prefix" | "answerMs">,
  allowed: readonly Channel[],
): Promise<readonly Offer[]> {
  const { address } = source;
  const key = secretOf(process.env, "SVC_MCP_UPSTREAM_KEY");
  const upstream = address === undefined ? undefined : new Upstream(address, key);
  try {
    return await probe(source, { capabilities: capabilitiesOf(allowed), upstream, waitMs: answerMs });
  } catch (error) {
    const why = error instanceof ProbeError ? error.message : `does not answer: ${describeError(error)}`;
    throw new UsageError(`svc-gate mcp: the server ${prefix} ${why}`);
  } finally {
    upstream?.close();
  }
}

const capabilities: Readonly<Partial<Record<Channel, JsonRecord>>> = {
  elicitation: { form: {}, url: {} },
  roots: { listChanged: true },
  sampling: { tools: {}, context: {} },
  tasks: { list: {}, cancel: {}, requests: { sampling: { createMessage: {} }, elicitation: { create: {} } } },
};

function capabilitiesOf(allowed: readonly Channel[]): JsonRecord {
  return Object.fromEntries(
    allowed.flatMap((channel) => (capabilities[channel] ? [[channel, capabilities[channel]]] : [])),
  );
}
