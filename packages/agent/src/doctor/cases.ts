import type { ScriptedCall } from "../model/script.ts";
import { shellWord } from "../shell-word.ts";
import type { Behaviour } from "./stand-in.ts";

/**
 * One start of the host: the gate's answer, and what is changed. The scripted call must run if the hook brings an ALLOW,
 * and in no other case.
 */
export interface Case {
  readonly name: string;
  /** By default a BLOCK. */
  readonly gate?: Behaviour;
  /** False: the gate's hook is taken out of the settings. */
  readonly keepsHook?: false;
  /** Settings of the project in which the host starts: an object of JSON, or a text. */
  readonly project?: Readonly<Record<string, unknown>> | string;
  /** More words of the host's command line. */
  readonly words?: readonly string[];
  /** The script; by default a shell command. */
  readonly script?: "shell" | "write";
  /** The sentences for a closed case and for an open case. */
  readonly closed: string;
  readonly open: string;
  /** What to do if it does not. */
  readonly remedy: string;
}

/**
 * The calls of a host whose shell takes a command and a description: each makes this file.
 *
 * @param write the tool that writes a file, and its arguments
 */
export function usualCalls(file: string, shell: string, [write, content]: readonly [string, object]): Calls {
  const command = `touch ${shellWord(file)}`;
  return {
    shell: { tool: shell, arguments: JSON.stringify({ command, description: "make a file" }) },
    write: { tool: write, arguments: JSON.stringify(content) },
  };
}

export type Calls = Readonly<Partial<Record<"shell" | "write", ScriptedCall>>>;

/** How to set up a host's hook, for the remedies of the cases. */
interface SetUp {
  readonly install: string;
  readonly remedies?: Readonly<Record<string, string>>;
  /** Whether the host has a tool that writes a file. */
  readonly hasWrite: boolean;
}

/** The cases of every host: what it does with each answer of the gate, and without one. */
export function commonCases({ install, remedies = {}, hasWrite }: SetUp): readonly Case[] {
  const all: readonly Case[] = [
    {
      name: "block",
      closed: "a blocked call did not run",
      open: "a call ran although the gate answered BLOCK",
      remedy: install,
    },
    {
      name: "block-write",
      script: "write",
      closed: "a blocked file was not written",
      open: "the host wrote a file although the gate answered BLOCK",
      remedy: `${install}; the hook's matcher must be "*"`,
    },
    {
      name: "allow",
      gate: "allow",
      closed: "an ALLOW ran",
      open: "a call did not run although the gate answered ALLOW: another hook or rule refuses it",
      remedy: "look for a `deny` rule, or a hook that fails",
    },
    {
      name: "closed",
      gate: "closed",
      closed: "without a gate, nothing ran",
      open: "a call ran while no gate listened",
      remedy: install,
    },
    {
      name: "broken",
      gate: "broken",
      closed: "after an error of the gate (500), nothing ran",
      open: "a call ran after an error of the gate (500)",
      remedy: install,
    },
    {
      name: "empty",
      gate: "empty",
      closed: "after an empty answer, nothing ran",
      open: "a call ran after an empty answer",
      remedy: install,
    },
    {
      name: "no-hook",
      gate: "allow",
      keepsHook: false,
      closed: "without the hook, nothing ran",
      open: "a call ran without the hook: the host's own permissions allow it",
      remedy: install,
    },
  ];
  return all
    .filter(({ script }) => hasWrite || script !== "write")
    .map((each) => ({ ...each, remedy: remedies[each.name] ?? each.remedy }));
}
