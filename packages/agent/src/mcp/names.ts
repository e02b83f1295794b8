/** The names under which the gate knows servers, tools and channels. */
import { basename } from "node:path";
import type { ServerSource } from "./pins.ts";

/**
 * Writes every character but ASCII letters, digits, `-` and a single `_` as `%` and two hexadecimal digits of its UTF-8
 * bytes. So a name has neither a dot nor two underscores in a row, and two names stay two.
 *
 * @throws URIError for a name with an unpaired surrogate
 */
export function escapedName(name: string): string {
  const percent = (text: string): string =>
    [...Buffer.from(text)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");
  encodeURIComponent(name);
  return name.replaceAll(/__+|[^A-Za-z0-9_-]/gu, percent);
}

/** The server's part of all its names; a project file's server cannot take another's name. */
export function serverPrefix(name: string, isFromProject: boolean): string {
  return `${isFromProject ? "project:" : ""}${escapedName(name)}`;
}

/** The gate's name of a tool. */
export function toolName(prefix: string, tool: string): string {
  return `${prefix}.${escapedName(tool)}`;
}

/** The gate's name of a channel that carries data. No tool has it, because a tool's name has no dot of its own. */
export function channelName(prefix: string, channel: string): string {
  return `${prefix}.mcp.${channel}`;
}

/** The gate's name of the answers that continue a call. */
export function responsesName(name: string): string {
  return `${name}.mcp.responses`;
}

/** A name for a server that nobody named: the host, or the last part of the first word that is not an option. */
export function defaultName({ command, address }: ServerSource): string {
  if (address !== undefined) return address.hostname;
  const [program = "server", ...words] = command;
  const word = words.find((each) => !each.startsWith("-")) ?? program;
  return (
    basename(word)
      .replace(/(?<=.)@[^@]*$/, "")
      .replace(/\.[a-z]+$/, "") || "server"
  );
}
