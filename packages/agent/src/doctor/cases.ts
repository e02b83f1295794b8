import type { Behaviour } from "./stand-in.ts";

/** One start of the host: the gate's answer, what is changed, and whether the scripted call must run. */
export interface Case {
  readonly name: string;
  readonly gate: Behaviour;
  readonly mustRun: boolean;
  /** False: the gate's hook is taken out of the settings. */
  readonly keepsHook?: false;
  /** Settings of the project in which the host starts. */
  readonly project?: Readonly<Record<string, unknown>>;
  /** More words of the host's command line. */
  readonly words?: readonly string[];
  /** The script; by default a shell command. */
  readonly script?: "shell" | "write";
  /** The sentence if the case ends as it must, and if it does not. */
  readonly closed: string;
  readonly open: string;
  /** What to do if it does not. */
  readonly remedy: string;
}

const install = "run `svc-gate hook install --agent claude-code`";
const managed = "run `svc-gate hook install --agent claude-code --scope managed` as an administrator";

export const cases: readonly Case[] = [
  {
    name: "block",
    gate: "block",
    mustRun: false,
    closed: "a BLOCK did not run",
    open: "a call ran although the gate answered BLOCK",
    remedy: install,
  },
  {
    name: "block-write",
    gate: "block",
    mustRun: false,
    script: "write",
    closed: "a blocked file was not written",
    open: "the host wrote a file although the gate answered BLOCK",
    remedy: `${install}; the hook's matcher must be "*"`,
  },
  {
    name: "allow",
    gate: "allow",
    mustRun: true,
    closed: "an ALLOW ran",
    open: "a call did not run although the gate answered ALLOW: another hook or rule refuses it",
    remedy: "look for a `deny` rule, or a hook that fails",
  },
  {
    name: "closed",
    gate: "closed",
    mustRun: false,
    closed: "without a gate, nothing ran",
    open: "a call ran while no gate listened",
    remedy: `${install}; the hook needs "onFailure": "block", and Claude Code 2.1.295 or later`,
  },
  {
    name: "broken",
    gate: "broken",
    mustRun: false,
    closed: "after an error of the gate (500), nothing ran",
    open: "a call ran after an error of the gate (500)",
    remedy: `${install}; the hook needs "onFailure": "block", and Claude Code 2.1.295 or later`,
  },
  {
    name: "empty",
    gate: "empty",
    mustRun: false,
    closed: "after an empty answer, nothing ran",
    open: "a call ran after an empty answer",
    remedy: `${install} without --no-grant, or with --form command`,
  },
  {
    name: "no-hook",
    gate: "allow",
    mustRun: false,
    keepsHook: false,
    closed: "without the hook, nothing ran",
    open: "a call ran without the hook: the host's own permissions allow it",
    remedy: `${install} without --no-grant and --keep-allow, once the gate enforces`,
  },
  {
    name: "project-off",
    gate: "block",
    mustRun: false,
    project: { disableAllHooks: true },
    closed: "a project that switches hooks off ran nothing",
    open: "a project's .claude/settings.json with `disableAllHooks` switched the hook off, and a call ran",
    remedy: managed,
  },
  {
    name: "project-allows",
    gate: "block",
    mustRun: false,
    project: { disableAllHooks: true, permissions: { allow: ["Bash"], defaultMode: "bypassPermissions" } },
    closed: "a project that switches hooks off and allows commands ran nothing",
    open: "a project's .claude/settings.json switched the hook off and allowed commands, and a call ran",
    remedy: managed,
  },
  {
    name: "bare",
    gate: "block",
    mustRun: false,
    words: ["--bare", "--allowedTools", "Bash"],
    closed: "the host's options --bare and --allowedTools ran nothing",
    open: "the host's options --bare and --allowedTools switched the hook off, and a call ran",
    remedy: managed,
  },
];
