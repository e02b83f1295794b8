/** `svc-gate mcp`: asks the gate before each call of an MCP server's tools. */
import { parseArgs } from "node:util";
import { acceptCommand, wholeAcceptCommand, type NamedServer } from "./accept-command.ts";
import { channels, type Channel } from "./channels.ts";
import { Judge } from "./judge.ts";
import { defaultName, serverPrefix } from "./names.ts";
import { defaultLockFile, readLock, readPins, UsageError, type ServerSource } from "./pins.ts";
import type { RelayContext } from "./context.ts";
import { Rounds } from "./rounds.ts";
import { gateOf } from "./settings.ts";
import { Tasks } from "./tasks.ts";

const usage = `usage: svc-gate mcp [options] -- COMMAND [ARGUMENT ...]      start a server and stand before it
       svc-gate mcp [options] --upstream URL --port PORT    stand before a server's address
       svc-gate mcp accept [options] -- COMMAND ...         show what is new or changed, and accept it
       svc-gate mcp accept [options] --upstream URL         the same for a server's address
       svc-gate mcp accept --name NAME                      ask the accepted server again
       svc-gate mcp tools [options] -- COMMAND ...          print the server's tools, for svc-gate import-tools
       svc-gate mcp tools [options] --upstream URL          the same for a server's address

  --name NAME        the server's name at the gate: its tools are NAME.TOOL
  --project          the server comes from a project's file: its name becomes project:NAME
  --pins FILE        the lock file (default: one for each server, in your configuration folder)
  --wait SECONDS     how long a call waits for a person (default: 0, the call is refused)
  --upstream URL     the address of a server with the Streamable HTTP transport
  --port PORT        listen on 127.0.0.1:PORT; clients send the key SVC_MCP_KEY as a bearer token
  --timeout SECONDS  accept and tools: how long the server may take for one answer (default: 30)
  accept only:
  --allow CHANNEL    also let this channel pass: ${channels.join(", ")}
  --deny CHANNEL     no longer let this channel pass
  --yes              do not ask

environment (a name with _FILE is a file that contains the key):
  SVC_URL                            the gate's address; it must be set
  SVC_KEY, SVC_KEY_FILE              the API key for the gate
  SVC_SESSION                        the session's id at the gate (default: a new one)
  SVC_TIMEOUT                        seconds for one attempt to reach the gate (default: 10)
  SVC_MCP_KEY, SVC_MCP_KEY_FILE      with --port: the key that clients must send
  SVC_MCP_UPSTREAM_KEY, SVC_MCP_UPSTREAM_KEY_FILE
                                     with --upstream: the bearer token for the server
`;

export interface McpOptions {
  readonly action: "accept" | "proxy" | "tools";
  readonly source: ServerSource;
  readonly server: NamedServer;
  /** The server's part of all names at the gate. */
  readonly prefix: string;
  readonly lockFile: string;
  readonly answerMs: number;
  readonly waitMs: number;
  readonly port: number | undefined;
  readonly allow: readonly Channel[];
  readonly deny: readonly Channel[];
  readonly isYes: boolean;
}

export async function mcp(words: readonly string[]): Promise<number> {
  const own = words.slice(0, words.includes("--") ? words.indexOf("--") : undefined);
  if (own.includes("--help") || own.includes("-h")) {
    process.stdout.write(usage);
    return 0;
  }
  try {
    return await run(optionsOf(words));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 2;
  }
}

async function run(options: McpOptions): Promise<number> {
  if (options.action === "accept") return (await import("./accept.ts")).accept(options);
  if (options.action === "tools") return (await import("./tools.ts")).printTools(options);
  const { server, prefix, source, lockFile, port } = options;
  const say = (sentence: string): void => void process.stderr.write(`svc-gate mcp (${prefix}): ${sentence}\n`);
  const pins = readPins(lockFile, { prefix, source, remedy: acceptCommand(server) });
  if (pins.refusal !== null) say(`${pins.refusal}\n  ${wholeAcceptCommand(server, source)}`);
  const makeGate = gateOf(process.env);
  const contextOf = (sessionId?: string): RelayContext => ({
    prefix,
    pins,
    judge: new Judge(makeGate(sessionId), options.waitMs),
    rounds: new Rounds(),
    tasks: new Tasks(),
    say,
    keepsAnswered: source.address !== undefined,
  });
  if (source.address === undefined) {
    const { proxyStdio } = await import("./stdio.ts");
    return proxyStdio(contextOf(), source.command);
  }
  const { proxyHttp } = await import("./http.ts");
  return proxyHttp(contextOf, source.address, port ?? 0);
}

function optionsOf(words: readonly string[]): McpOptions {
  const action = words[0] === "accept" || words[0] === "tools" ? words[0] : "proxy";
  const dashes = words.indexOf("--");
  const command = dashes === -1 ? [] : words.slice(dashes + 1);
  const values = valuesOf(words.slice(action === "proxy" ? 0 : 1, dashes === -1 ? undefined : dashes));
  const { upstream, project: isProject = false, pins, wait = "0", timeout = "30", port, yes = false } = values;
  const given = command.length > 0 || upstream !== undefined;
  const source = given || action !== "accept" ? sourceOf(command, upstream) : acceptedSource(values);
  if (action === "proxy" && (upstream === undefined) !== (port === undefined))
    throw new UsageError("svc-gate mcp: --upstream and --port belong together");
  const name = values.name ?? defaultName(source);
  const prefix = prefixOf(name, isProject);
  const answerSeconds = parseWholeNumber("--timeout", timeout, 600);
  if (answerSeconds === 0) throw new UsageError("svc-gate mcp: --timeout needs at least one second");
  return {
    action,
    source,
    server: { name, isProject, pins },
    prefix,
    lockFile: pins ?? defaultLockFile(prefix),
    answerMs: answerSeconds * 1000,
    waitMs: parseWholeNumber("--wait", wait, 86_400) * 1000,
    port: port === undefined ? undefined : parseWholeNumber("--port", port, 65_535),
    allow: channelsOf("--allow", values.allow),
    deny: channelsOf("--deny", values.deny),
    isYes: yes,
  };
}

function sourceOf(command: readonly string[], upstream: string | undefined): ServerSource {
  if ((command.length === 0) === (upstream === undefined))
    throw new UsageError(`svc-gate mcp: give a command after --, or an address with --upstream\n${usage}`);
  return upstream === undefined ? { command } : { command, address: addressOf(upstream) };
}

/** The server as a person accepted it before, so that the command in a refusal can be copied as it is. */
function acceptedSource({ name, project = false, pins }: McpFlags): ServerSource {
  if (name === undefined) return sourceOf([], undefined);
  const prefix = prefixOf(name, project);
  const started = readLock(pins ?? defaultLockFile(prefix))?.started ?? [];
  const [first = ""] = started;
  if (started.length === 0)
    throw new UsageError(
      `svc-gate mcp: nobody has accepted the server ${prefix} yet: give its command after --, or its address with --upstream`,
    );
  return /^https?:/i.test(first) ? { command: [], address: addressOf(first) } : { command: started };
}

function prefixOf(name: string, isProject: boolean): string {
  try {
    return serverPrefix(name, isProject);
  } catch {
    throw new UsageError("svc-gate mcp: the server's name is not text of Unicode");
  }
}

function valuesOf(args: readonly string[]): McpFlags {
  try {
    return parseArgs({ args: [...args], options: flags }).values;
  } catch (error) {
    throw new UsageError(`svc-gate mcp: ${error instanceof Error ? error.message : "wrong options"}\n${usage}`);
  }
}

const flags = {
  name: { type: "string" },
  project: { type: "boolean" },
  pins: { type: "string" },
  wait: { type: "string" },
  timeout: { type: "string" },
  upstream: { type: "string" },
  port: { type: "string" },
  allow: { type: "string", multiple: true },
  deny: { type: "string", multiple: true },
  yes: { type: "boolean" },
} as const;

type McpFlags = ReturnType<typeof parseArgs<{ options: typeof flags }>>["values"];

/** A credential must not travel in the clear, except on this machine. */
function addressOf(text: string): URL {
  const address = URL.canParse(text) ? new URL(text) : undefined;
  const isLocal = ["127.0.0.1", "[::1]", "localhost"].includes(address?.hostname ?? "");
  const isSafe = address?.protocol === "https:" || (address?.protocol === "http:" && isLocal);
  if (address === undefined || !isSafe || address.username !== "" || address.password !== "" || address.hash !== "")
    throw new UsageError("svc-gate mcp: the server's address must be https, or http on this machine, without a user");
  return address;
}

function parseWholeNumber(name: string, text: string, most: number): number {
  const number = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  if (!(number <= most)) throw new UsageError(`svc-gate mcp: ${name} needs a whole number from 0 to ${most}`);
  return number;
}

function channelsOf(name: string, given: readonly string[] = []): readonly Channel[] {
  return given.map((text) => {
    const channel = channels.find((each) => each === text);
    if (channel === undefined) throw new UsageError(`svc-gate mcp: ${name} needs one of ${channels.join(", ")}`);
    return channel;
  });
}
