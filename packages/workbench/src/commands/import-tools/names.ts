/**
 * The gate's part of a name for an MCP server or its tool. Every program that names tools of MCP servers has this rule:
 * adapters/README.md. Two names of servers and tools never become one.
 *
 * @returns undefined for a text with half a character, which no program can send
 */
export function escapedName(name: string): string | undefined {
  if (!name.isWellFormed()) return undefined;
  const percent = (text: string): string => Buffer.from(text).toString("hex").toUpperCase().replaceAll(/../g, "%$&");
  return name.replaceAll(/__+|[^A-Za-z0-9_-]/gu, percent);
}

/** A server's part of all its names. A file of a project may have named it, so then it has no other server's name. */
export function serverPrefix(name: string, isFromProject: boolean): string | undefined {
  const escaped = escapedName(name);
  return escaped === undefined || escaped === "" ? undefined : `${isFromProject ? "project:" : ""}${escaped}`;
}

/** Is it a server's part of a name, as `svc-gate mcp` writes it? */
export function isPrefix(text: string): boolean {
  return /^(?:project:)?(?:[A-Za-z0-9_-]|%[0-9A-F]{2})+$/.test(text);
}
