/** The facts that the doctor needs about a host. */
import type { OfferedTool } from "../model/protocol.ts";
import type { Calls, Case } from "./cases.ts";
import type { Redirection } from "./redirect.ts";

/** A file that the host reads. */
export interface SettingsFile {
  readonly path: string;
  readonly text: string;
}

/** Where one start of the host happens. */
export interface StartContext {
  readonly home: string;
  readonly workspace: string;
  readonly temporary: string;
  /** The address of the scripted model. */
  readonly model: string;
  readonly key: string;
  readonly version: string;
  /** The settings of the user, each with its path and a text that names the doctor's gate. */
  readonly user: readonly SettingsFile[];
  /** The text of the project's settings; undefined if the project has none. */
  readonly project: string | undefined;
}

/** How to start the host. */
export interface Start {
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly files: readonly SettingsFile[];
}

export interface DoctorHost {
  /** The name as people write it. */
  readonly product: string;
  /** The program in PATH. */
  readonly program: string;
  /** The paths of the user's files and of the machine's, whether or not they exist. */
  readonly files: () => readonly string[];
  /** The paths of a project's files. */
  readonly projectFiles: (project: string) => readonly string[];
  /** The folder of the machine's settings, which only an administrator can write. */
  readonly machineFolder: string;
  /** Every command that the host would start because of the settings, with the member that names it. */
  readonly commandsIn: (text: string) => readonly string[];
  /** The form of the gate's hook in the settings; undefined if they have none. */
  readonly gateHookIn: (text: string) => string | undefined;
  /** Whether the host starts with nothing allowed because of these settings. */
  readonly isGrantMode: (text: string) => boolean;
  /** Throws if the host cannot read the text. By default the text must be a JSON object. */
  readonly check?: (file: SettingsFile) => void;
  /** A copy of settings whose hooks ask the doctor's gate with the doctor's key. */
  readonly redirect: (text: string, redirection: Redirection) => string;
  /** One text from a project's own files and from what a case adds. By default JSON. */
  readonly merged?: (own: readonly string[], added: unknown) => string;
  readonly cases: (files: readonly SettingsFile[]) => readonly Case[];
  /** The calls that the model asks for: each makes this file. */
  readonly calls: (file: string) => Calls;
  readonly start: (context: StartContext, prompt: string) => Start;
  /** A tool as the gate is asked about it, or the reason why the list leaves it out. By default the tool does not change. */
  readonly atGate?: (tool: OfferedTool) => OfferedTool | string;
  /** How to make the host show its model all its tools. By default a headless run without settings does this. */
  readonly listing?: ToolListing;
  /** What the doctor cannot see in this host with these settings; undefined if that is nothing. */
  readonly note?: (files: readonly SettingsFile[]) => string | undefined;
}

export interface ToolListing {
  /** A copy of settings that starts no program, and shows every tool of the user's own sessions. */
  readonly settings: (text: string) => string;
  /** The words of a session with a terminal, which has more tools. */
  readonly session: (prompt: string) => readonly string[];
}
