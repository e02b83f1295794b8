/**
 * The lock file: what a person accepted of one server. It has the definitions themselves, so that a person can review
 * it and `accept` can show a difference.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { channels, type Channel } from "./channels.ts";
import { digestOf, isObject, JsonError, readJson, type JsonRecord } from "./json.ts";

/** How the server is reached: a command of this machine, or an address. */
export interface ServerSource {
  readonly command: readonly string[];
  readonly address?: URL;
}

export interface PinnedTool {
  readonly digest: string;
  readonly definition: JsonRecord;
}

export interface PinnedText {
  readonly digest: string;
  readonly text: string;
}

export interface LockFile {
  readonly version: 1;
  readonly server: string;
  /** The digest of the command's words, or of the address. */
  readonly source: string;
  /** The command or the address, for people. */
  readonly started: readonly string[];
  readonly channels: readonly Channel[];
  /** More than one if the server says something else to clients of another protocol version. */
  readonly instructions: readonly PinnedText[];
  readonly tools: Readonly<Record<string, readonly PinnedTool[]>>;
}

/** What the proxy needs of a lock file. */
export interface Pins {
  readonly channels: ReadonlySet<Channel>;
  /** Why nothing of the server is accepted; null if something is. */
  readonly refusal: string | null;
  /** The command with which a person accepts what the server offers. */
  readonly remedy: string;
  readonly hasInstructions: (text: string) => boolean;
  /** `accepted`, or why the definition is hidden. */
  readonly statusOf: (name: string, definition: JsonRecord) => "accepted" | "changed" | "new";
  readonly hasTool: (name: string) => boolean;
}

/** A mistake of the person who starts the command: exit code 2. */
export class UsageError extends Error {}

/**
 * Reads the pins of a server that is started in this way.
 *
 * @param remedy the command with which a person accepts the server; if nothing is accepted, the server's command follows
 */
export function readPins(
  file: string,
  { prefix, source, remedy }: { readonly prefix: string; readonly source: ServerSource; readonly remedy: string },
): Pins {
  const lock = readLock(file);
  const how = `${remedy} ${source.address === undefined ? "-- COMMAND" : "--upstream URL"}`;
  const nothing = (why: string): Pins => ({
    channels: new Set(),
    refusal: `Svc: ${why}; a person must run: ${how}`,
    remedy,
    hasInstructions: () => false,
    statusOf: () => "new",
    hasTool: () => false,
  });
  if (lock === undefined) return nothing(`nobody has accepted the tools of the MCP server "${prefix}" yet`);
  if (lock.server !== prefix || lock.source !== sourceDigest(source))
    return nothing(`the MCP server "${prefix}" is started in another way than the accepted one`);
  const tools = new Map(
    Object.entries(lock.tools).map(([name, pinned]) => [name, new Set(pinned.map(({ digest }) => digest))]),
  );
  const texts = new Set(lock.instructions.map(({ digest }) => digest));
  return {
    channels: new Set(lock.channels),
    refusal: null,
    remedy,
    hasInstructions: (text) => texts.has(digestOf(text)),
    statusOf: (name, definition) => {
      const pinned = tools.get(name);
      if (pinned === undefined) return "new";
      return pinned.has(digestOf(definition)) ? "accepted" : "changed";
    },
    hasTool: (name) => tools.has(name),
  };
}

/**
 * Returns undefined if the file does not exist.
 *
 * @throws UsageError for a file that is not a lock file, or whose digests are not those of its definitions
 */
export function readLock(file: string): LockFile | undefined {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if (!existsSync(file)) return undefined;
    throw new UsageError(`svc-gate mcp: ${file} cannot be read: ${error instanceof Error ? error.message : "unknown"}`);
  }
  try {
    return lockIn(readJson(text));
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new UsageError(`svc-gate mcp: ${file} is not a lock file: ${error.message}; remove it and accept again`);
  }
}

function lockIn(value: unknown): LockFile {
  if (!isObject(value) || value["version"] !== 1) throw new JsonError("its version is not 1");
  const tools: Record<string, readonly PinnedTool[]> = Object.create(null);
  for (const [name, pinned] of Object.entries(isObject(value["tools"]) ? value["tools"] : {})) {
    tools[name] = listIn(pinned).map((each) => {
      const definition = isObject(each) && isObject(each["definition"]) ? each["definition"] : {};
      return { digest: digestIn(each, definition, `the tool ${JSON.stringify(name)}`), definition };
    });
  }
  const instructions = listIn(value["instructions"]).map((each) => {
    const text = isObject(each) ? expectText(each["text"]) : "";
    return { digest: digestIn(each, text, "the instructions"), text };
  });
  return {
    version: 1,
    server: expectText(value["server"]),
    source: expectText(value["source"]),
    started: listIn(value["started"]).map(expectText),
    channels: channels.filter((channel) => listIn(value["channels"]).includes(channel)),
    instructions,
    tools,
  };
}

/** A definition that somebody edited by hand was not accepted. */
function digestIn(pinned: unknown, value: unknown, what: string): string {
  const digest = digestOf(value);
  if (!isObject(pinned) || pinned["digest"] !== digest) throw new JsonError(`the digest of ${what} does not match`);
  return digest;
}

function listIn(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new JsonError("it lacks a list");
  return value;
}

function expectText(value: unknown): string {
  if (typeof value !== "string") throw new JsonError("it lacks a text");
  return value;
}

/** Writes the whole file or nothing, for its owner alone. */
export function writeLock(file: string, lock: LockFile): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const partial = `${file}.${process.pid}.partial`;
  writeFileSync(partial, `${JSON.stringify(lock, null, 2)}\n`, { mode: 0o600 });
  renameSync(partial, file);
}

/** The file of a server in the user's configuration folder. `server` is the gate's name of it. */
export function defaultLockFile(server: string): string {
  const { XDG_CONFIG_HOME: xdg, APPDATA: roaming } = process.env;
  const folder = process.platform === "win32" ? roaming : xdg;
  return join(folder || join(homedir(), ".config"), "svc-gate", "mcp", `${server.replace(":", "%3A")}.json`);
}

/** A word that names a file is digested with its folder: the same word starts another program elsewhere. */
export function sourceDigest(source: ServerSource): string {
  return digestOf(startedBy(source));
}

export function startedBy({ command, address }: ServerSource): readonly string[] {
  if (address !== undefined) return [address.href];
  return command.map((word) => (!word.startsWith("-") && existsSync(word) ? resolve(word) : word));
}
