/** Points the hooks in a copy of settings to the doctor's own gate. */
import { InputError } from "../bad-input.ts";
import { objectIn, type SettingsMembers } from "../install/host.ts";
import { shellWord } from "../shell-word.ts";
import type { StandIn } from "./stand-in.ts";

/** The gate and the key of the hook in the copy. */
export interface Redirection {
  readonly gate: StandIn;
  readonly keyFile: string;
  /** False removes the hook, as if it had never been installed. */
  readonly keepsHook: boolean;
}

/** Returns the settings in a text that was checked. */
export function settingsIn(text: string): SettingsMembers {
  return JSON.parse(text) as SettingsMembers;
}

/** The members of settings that a copy keeps. */
export function keptIn(settings: SettingsMembers, names: readonly string[]): SettingsMembers {
  return Object.fromEntries(Object.entries(settings).filter(([name]) => names.includes(name)));
}

/** The other members, each as a line for a person. */
export function leftLines(settings: SettingsMembers, names: readonly string[]): readonly string[] {
  const left = Object.keys(settings).filter((name) => !names.includes(name));
  return left.map((name) => `${name}, replaced by nothing`);
}

/** Throws if a file has no JSON object. */
export function checkJson({ path, text }: { readonly path: string; readonly text: string }): void {
  objectIn(text, `${path} is not JSON: repair it, because the host cannot read it`);
}

export function mergedJson(own: readonly string[], added: unknown): string {
  return JSON.stringify(Object.assign({}, ...own.map(settingsIn), added));
}

/** A hook in settings of JSON, and the event that starts it. */
export interface FoundHook {
  readonly event: string;
  readonly hook: SettingsMembers;
}

/** Returns the hooks of `{ EVENT: [{ hooks: [HOOK] }] }`, or of `{ EVENT: [HOOK] }`. */
export function hooksOf(hooks: unknown): readonly FoundHook[] {
  if (typeof hooks !== "object" || hooks === null) return [];
  return Object.entries(hooks).flatMap(([event, groups]) =>
    (Array.isArray(groups) ? groups : []).flatMap((group: unknown) =>
      innerHooks(group).map((hook) => ({ event, hook })),
    ),
  );
}

function innerHooks(group: unknown): readonly SettingsMembers[] {
  if (typeof group !== "object" || group === null) return [];
  const { hooks } = group as { readonly hooks?: unknown };
  const found: readonly unknown[] = Array.isArray(hooks)
    ? hooks
    : "matcher" in group || "hooks" in group
      ? []
      : [group];
  return found.filter((hook): hook is SettingsMembers => typeof hook === "object" && hook !== null);
}

/** Replaces each hook by those that `change` returns, and removes a group without a hook. */
export function changedHooks(
  hooks: SettingsMembers,
  change: (hook: SettingsMembers) => readonly SettingsMembers[],
): SettingsMembers {
  const entries = Object.entries(hooks).map(([event, groups]) => {
    const list: readonly unknown[] = Array.isArray(groups) ? groups : [];
    const next = list.flatMap((group): readonly unknown[] => {
      const changed = innerHooks(group).flatMap(change);
      if (changed.length === 0) return [];
      return Array.isArray((group as SettingsMembers)["hooks"])
        ? [{ ...(group as SettingsMembers), hooks: changed }]
        : changed;
    });
    return [event, next] as const;
  });
  return Object.fromEntries(entries);
}

/** The hooks of settings, if they have some: the commands of the gate's hooks are replaced, or these hooks removed. */
export function redirectedHooks({ hooks }: SettingsMembers, redirection: Redirection, member = "command"): object {
  if (hooks === undefined) return {};
  const change = (hook: SettingsMembers): readonly SettingsMembers[] => {
    const command = hook[member];
    if (!isGateCommand(command)) return [hook];
    return redirection.keepsHook ? [{ ...hook, [member]: redirectedCommand(command, redirection) }] : [];
  };
  return { hooks: changedHooks(hooks as SettingsMembers, change) };
}

/** Each hook as a line for a person. */
export function hookLines(hooks: unknown): readonly string[] {
  return hooksOf(hooks).map(({ event, hook }) => {
    const { type, command, bash, args, url } = hook;
    const more = Array.isArray(args) ? args.map((each) => ` ${JSON.stringify(each)}`).join("") : "";
    if (type === "http") return `hook ${event}: POST ${String(url)}`;
    const started = command ?? bash;
    return `hook ${event}: ${typeof started === "string" ? `${started}${more}` : `a ${String(type)} hook`}`;
  });
}

export function isGateCommand(command: unknown, args?: unknown): command is string {
  const words = [command, ...(Array.isArray(args) ? args : [])].map(String).join(" ");
  return typeof command === "string" && /svc-gate(?:\.mjs)?['"]?\s+['"]?hook\b/.test(words);
}

/** The command with the doctor's gate and key instead of its own. Throws if the command cannot be changed safely. */
export function redirectedCommand(text: string, { gate, keyFile }: Redirection, args?: unknown): string {
  const without = text.replace(new RegExp(String.raw`\s--(?:url|key-file)(?:=|\s+)${word}`, "g"), "");
  const start = /svc-gate(?:\.mjs)?['"]?\s+hook\b/;
  if (args !== undefined || !start.test(without) || /--url|--key-file|SVC_/.test(without))
    throw new InputError(`the doctor cannot point this hook to its own gate: ${text}`);
  return without.replace(start, (found) => `${found} --url ${gate.url} --key-file ${shellWord(keyFile)}`);
}

/** One word of a shell's command line, which may be within a substitution. */
const word = String.raw`(?:'[^']*'|"(?:\\[^]|[^"\\])*"|\\[^]|[^\s'"\\();])+`;
