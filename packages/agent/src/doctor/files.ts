/** The files of settings that a host reads, and copies of them that name the doctor's gate. */
import { existsSync, readFileSync } from "node:fs";
import type { DoctorHost, SettingsFile } from "./host.ts";
import { checkJson, type Redirection } from "./redirect.ts";

/** The settings of the user and of the machine, and of a project if one is given. */
export function readFiles(agent: DoctorHost, project: string | undefined): readonly SettingsFile[] {
  const paths = [...agent.files(), ...(project === undefined ? [] : agent.projectFiles(project))];
  return paths.flatMap((path) => {
    if (!existsSync(path)) return [];
    const file = { path, text: readFileSync(path, "utf8") };
    (agent.check ?? checkJson)(file);
    return [file];
  });
}

export function isOfMachine(
  { machineFolder }: Pick<DoctorHost, "machineFolder">,
  { path }: Pick<SettingsFile, "path">,
): boolean {
  return path.startsWith(`${machineFolder}/`) || path.startsWith(`${machineFolder}\\`);
}

/** Copies, grouped by who may write the file. */
export interface Copies {
  readonly machine: readonly SettingsFile[];
  readonly user: readonly SettingsFile[];
  readonly project: readonly SettingsFile[];
}

export function copiesOf(agent: DoctorHost, files: readonly SettingsFile[], redirection: Redirection): Copies {
  const ofUser = new Set(agent.files());
  const copies = files.map(({ path, text }) => ({ path, text: agent.redirect(text, redirection) }));
  const writerOf = (file: SettingsFile): keyof Copies =>
    isOfMachine(agent, file) ? "machine" : ofUser.has(file.path) ? "user" : "project";
  const of = (writer: keyof Copies): readonly SettingsFile[] => copies.filter((file) => writerOf(file) === writer);
  return { machine: of("machine"), user: of("user"), project: of("project") };
}
