import { isLoopback, isPrivateUrl } from "../../../../core/src/wire/mod.ts";

/** The settings that decide if the gate serves the console; undefined where a setting is unset. */
interface ConsoleSettings {
  readonly console: "off" | "on" | undefined;
  readonly consoleSecret: string | undefined;
  readonly databaseUrl: string | undefined;
  readonly host: string;
  readonly publicUrl: string | undefined;
}

/** A console that others can reach needs TLS. Replicas need one secret, because each reads the sessions of the others. */
export function consoleProblem(settings: ConsoleSettings): string | undefined {
  const { console: wanted, consoleSecret, databaseUrl, host, publicUrl } = settings;
  if (wanted !== "on") return undefined;
  if (databaseUrl !== undefined && consoleSecret === undefined)
    return "SVC_CONSOLE is on, and gates on one database need one secret for their sessions: set SVC_CONSOLE_SECRET";
  if (publicUrl !== undefined && !isPrivateUrl(new URL(publicUrl)))
    return `SVC_CONSOLE is on, and SVC_PUBLIC_URL is ${publicUrl}: keys must not cross a network without https`;
  if (isLoopback(host) || publicUrl?.startsWith("https:") === true) return undefined;
  return `SVC_CONSOLE is on, and the gate listens on ${host}: set SVC_PUBLIC_URL to the https address that people use`;
}

/** Returns why the gate does not serve the console, with what to set; undefined if it does. */
export function noConsole(settings: ConsoleSettings): string | undefined {
  const { console: wanted, consoleSecret, databaseUrl, host, publicUrl } = settings;
  if (wanted !== undefined) return wanted === "on" ? undefined : "by SVC_CONSOLE";
  const needs = [
    ...(isLoopback(host) ? [] : ["SVC_CONSOLE to on"]),
    ...(isLoopback(host) || publicUrl !== undefined ? [] : ["SVC_PUBLIC_URL"]),
    ...(databaseUrl === undefined || consoleSecret !== undefined ? [] : ["SVC_CONSOLE_SECRET, the same for each gate"]),
  ];
  return needs.length === 0 ? undefined : `set ${needs.join(", and ")}`;
}
