import { existsSync } from "node:fs";
import { join, relative } from "node:path";
import { BadInput } from "../bad-input.ts";
import { claudeCode } from "./claude-code.ts";
import { copiesOf, isOfMachine, readFiles } from "./files.ts";
import type { Place, SettingsFile } from "./host.ts";
import { replaceFolder } from "./namespaces.ts";
import { settingsIn, type Members } from "./redirect.ts";
import { findHost, runHost } from "./run.ts";
import type { ToolLister } from "./tool-lister.ts";

const { machineFolder } = claudeCode;

/** How the tools of Claude Code are listed: in a headless run, and in a session with a terminal, which has more tools. */
export const claudeCodeTools: ToolLister = {
  version: (named) => findHost(claudeCode, named).version,
  gateName: (name) => (name.startsWith("mcp__") || name.includes(".") ? undefined : name),
  start: async ({ named, project, isCut, folder, gate, model, timesShown, say }) => {
    const { program, version } = findHost(claudeCode, named);
    const files = readFiles(claudeCode, project);
    const hooked = files.find((file) => isOfMachine(claudeCode, file) && "hooks" in settingsIn(file.text));
    if (!isCut && hooked !== undefined)
      throw new BadInput(`${hooked.path} has hooks, and this system does not let the doctor leave them out`);
    const copies = copiesOf(claudeCode, files, { gate, keyFile: join(folder, "key"), keepsHook: false });
    const managed =
      isCut && existsSync(machineFolder) ? replaceFolder(machineFolder, join(folder, "managed")) : undefined;
    for (const { path, text } of copies.machine) managed?.write(relative(machineFolder, path), withoutPrograms(text));
    const place: Place = {
      home: join(folder, "home"),
      workspace: join(folder, "workspace"),
      temporary: join(folder, "tmp"),
      model,
      key: gate.key,
      version,
      user: [copyOf(copies.user[0])],
      project: claudeCode.merged(
        copies.project.map(({ text }) => withoutPrograms(text)),
        {},
      ),
    };
    const start = claudeCode.start(place, "[[tools]]");
    try {
      const output = await runHost(program, place, start);
      const times = timesShown();
      if (times > 0) await runHost(program, place, { ...start, words: ["[[tools]]"] }, () => timesShown() > times);
      if (times > 0 && timesShown() === times)
        say("no session with a terminal was seen: tools that need a person are not listed");
      return output.trim().split("\n").at(-1) ?? "";
    } finally {
      managed?.end();
    }
  },
};

/** Settings that start no program, and let the host show all its tools at once. Without this variable it holds some back. */
function withoutPrograms(text: string): string {
  const settings = settingsIn(text);
  const { hooks: _, ...copy } = settings;
  const env = { ...(copy["env"] as Members | undefined), ENABLE_TOOL_SEARCH: "false" };
  return JSON.stringify({ ...copy, env });
}

function copyOf(file: SettingsFile | undefined): SettingsFile {
  return { path: file?.path ?? "", text: withoutPrograms(file?.text ?? "{}") };
}
