import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { bad, type Result } from "../../../../svc-gate/src/wire/mod.ts";
import { jsonOf, sourceOf, type Source } from "./source.ts";

const bytesMax = 4_000_000;
const pagesMax = 200;
const toolsMax = 5000;

/**
 * Asks a running MCP server for its tools. The server is started without a shell, with the few environment variables
 * that the protocol's library passes on, and is always terminated.
 *
 * @param command the program and its arguments
 * @param timeoutMs the time limit for the whole exchange
 */
export async function askServer(command: readonly string[], timeoutMs: number): Promise<Result<Source, string>> {
  const [program = "", ...args] = command;
  const transport = new StdioClientTransport({ command: program, args, stderr: "ignore", maxBufferSize: bytesMax });
  const client = new Client({ name: "svc-gate", version: "1" });
  const deadline = AbortSignal.timeout(timeoutMs);
  try {
    const found = await Promise.race([listed(client, transport, timeoutMs), refusedAt(deadline, timeoutMs)]);
    return sourceOf(jsonOf(found), client.getServerVersion()?.name ?? "server");
  } catch (error) {
    return bad(
      `the server \`${program}\` did not list its tools: ${error instanceof Error ? error.message : String(error)}`,
    );
  } finally {
    await end(transport);
  }
}

async function listed(client: Client, transport: StdioClientTransport, timeoutMs: number): Promise<readonly unknown[]> {
  const closed = new Promise<never>((_, reject) => {
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the library has this property alone
    client.onclose = () => reject(new Error("it ended, or sent too much"));
  });
  return Promise.race([pages(client, transport, timeoutMs), closed]);
}

async function pages(client: Client, transport: StdioClientTransport, timeout: number): Promise<readonly unknown[]> {
  await client.connect(transport, { timeout });
  const tools: unknown[] = [];
  const cursors = new Set<string>();
  let cursor = "";
  do {
    // Requests pages one by one: without a cursor the library would read all of them. An empty one requests the first
    // page.
    const page = await client.request({ method: "tools/list", params: cursor === "" ? {} : { cursor } }, { timeout });
    tools.push(...page.tools);
    if (tools.length > toolsMax) throw new Error(`over ${toolsMax} tools`);
    cursor = page.nextCursor ?? "";
    if (cursors.has(cursor)) throw new Error("its pages repeat in a loop");
    cursors.add(cursor);
    if (cursors.size > pagesMax) throw new Error(`over ${pagesMax} pages`);
  } while (cursor !== "");
  return tools;
}

function refusedAt(signal: AbortSignal, timeoutMs: number): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(new Error(`it did not answer within ${timeoutMs / 1000} s`)));
  });
}

/** The library asks a server to end and waits for it; a server that does not end is killed immediately. */
async function end(transport: StdioClientTransport): Promise<void> {
  const { pid } = transport;
  const closing = transport.close().catch(() => undefined);
  const patience = new Promise((resolve) => setTimeout(resolve, 500));
  await Promise.race([closing, patience]);
  if (pid === null) return;
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended.
  }
  await closing;
}
