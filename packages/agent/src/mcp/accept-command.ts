import { shellWord } from "../shell-word.ts";
import { startedBy, type ServerSource } from "./pins.ts";
import { visible } from "./visible.ts";

/** The server as a command line names it. */
export interface NamedServer {
  /** As the person wrote it, because an escaped name would be escaped again. */
  readonly name: string;
  readonly isProject: boolean;
  /** The lock file if it is not the server's usual one. */
  readonly pins: string | undefined;
}

/**
 * The command with which a person accepts the server, to be copied. It is for models too, so it has neither the words
 * that start the server nor its address: they may have a secret.
 */
export function acceptCommand(server: NamedServer, more: readonly string[] = []): string {
  const { name, isProject, pins } = server;
  const words = ["svc-gate", "mcp", "accept", "--name", name];
  if (isProject) words.push("--project");
  if (pins !== undefined) words.push("--pins", pins);
  return visible([...words, ...more].map(shellWord).join(" "));
}

/** The same with the words or the address, for the person who starts the proxy. */
export function wholeAcceptCommand(server: NamedServer, source: ServerSource): string {
  const started = startedBy(source);
  return acceptCommand(server, source.address === undefined ? ["--", ...started] : ["--upstream", ...started]);
}
