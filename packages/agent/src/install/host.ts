/** How the gate is set up in a host, and the code that all hosts share. */
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { InputError } from "../bad-input.ts";

/** The requirements for the settings. */
export interface InstallOptions {
  /** The gate's address, without a slash at its end. */
  readonly url: string;
  /** The key's file as a word of a shell. */
  readonly keyFile: string;
  /** The path of this program, because a host starts hooks with another PATH. */
  readonly program: string;
  readonly form: "command" | "http";
  readonly onEscalate: "defer" | "deny" | "wait";
  /** True if only calls that the gate allows may run. */
  readonly isGrant: boolean;
  readonly keepsAllow: boolean;
  /** True for the settings of the machine. */
  readonly isManaged: boolean;
}

/** The text of a file of settings, and what a person should know about it. */
export interface HostSettings {
  readonly text: string;
  readonly warnings: readonly string[];
}

/** How the gate is set up in one host. */
export interface Host {
  /** The file of the user's own settings. */
  readonly userFile: () => string;
  /** The file of the machine's settings, which only an administrator can write. */
  readonly managedFile: () => string;
  /**
   * Adds the gate to settings. Everything else in them stays.
   *
   * @param before the text of the file; undefined if there is none
   * @throws {InputError} if the file cannot be changed safely
   */
  readonly settings: (before: string | undefined, wanted: InstallOptions) => HostSettings;
  /** Whether the gate's ALLOW can be the only permission. A hook of the other hosts can only deny. */
  readonly canGrant: boolean;
  /** Whether the host can ask the gate itself, park a run, and keep permissions in this file. */
  readonly hasMoreOptions: boolean;
}

/** The host's own folder: the one in this variable, or one of the home folder. */
export function hostFolder(variable: string, name: string): string {
  const folder = process.env[variable] ?? join(homedir(), name);
  if (!isAbsolute(folder)) throw new InputError(`${variable} must be an absolute path, or not be set`);
  return folder;
}

export type SettingsMembers = Readonly<Record<string, unknown>>;

/** Reads a file of settings as a JSON object. */
export function parsedSettings(before: string | undefined, product: string): SettingsMembers {
  const problem = `the settings of ${product} are not a JSON object: repair the file first`;
  return objectIn(before?.trim() || "{}", problem);
}

/** @throws BadInput with this problem for a text that is not a JSON object */
export function objectIn(text: string, problem: string): SettingsMembers {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as SettingsMembers;
  } catch {
    // Reported below.
  }
  throw new InputError(problem);
}

/** Returns an object in settings; an empty one if it is absent. */
export function membersOf(settings: SettingsMembers, name: string, product: string): SettingsMembers {
  const value = settings[name] ?? {};
  if (typeof value === "object" && !Array.isArray(value)) return value as SettingsMembers;
  throw new InputError(`\`${name}\` in the settings of ${product} must be an object`);
}

/** Returns the groups of hooks of one event that are not the gate's. Earlier hooks of the gate are replaced. */
export function otherHooks(hooks: SettingsMembers, event: string): readonly unknown[] {
  const groups = hooks[event];
  return Array.isArray(groups) ? groups.filter((group) => !isOurs(group)) : [];
}

function isOurs(group: unknown): boolean {
  const text = JSON.stringify(group).replaceAll('\\"', '"').replaceAll("'\\\\''", "'");
  return /svc-gate(?:\.mjs)?["']? hook |\/hooks\/claude-code/.test(text);
}
