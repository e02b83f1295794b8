import { existsSync } from "node:fs";
import { join, relative } from "node:path";
import { userFile } from "../install/claude-code.ts";
import { findHost, isOfMachine, managedFolder, readSettingsFiles, redirected, runHost } from "./claude-code.ts";
import { replaceFolder } from "./namespaces.ts";
import type { ListerStart, ToolLister } from "./tool-lister.ts";
import { BadInput } from "../bad-input.ts";

type Members = Readonly<Record<string, unknown>>;

/** How the tools of Claude Code are listed: in a headless run, and in a session with a terminal, which has more tools. */
export const claudeCodeTools: ToolLister = {
  version: (named) => findHost(named).version,
  gateName: (name) => (name.startsWith("mcp__") || name.includes(".") ? undefined : name),
  start: async (start) => {
    const { named, project, isCut, folder, gate, model, timesShown, say } = start;
    const files = readSettingsFiles(project);
    const machine = files.filter(isOfMachine);
    if (!isCut && machine.some(({ settings }) => "hooks" in settings))
      throw new BadInput(`${machine[0]?.path} has hooks, and this system does not let the doctor leave them out`);
    const ofUser = files.find(({ path }) => path === userFile())?.settings ?? {};
    const own = files.filter((file) => file.path !== userFile() && !isOfMachine(file));
    const managed =
      isCut && existsSync(managedFolder) ? replaceFolder(managedFolder, join(folder, "managed")) : undefined;
    for (const { path, settings } of machine)
      managed?.write(relative(managedFolder, path), withoutPrograms(settings, start));
    const common = {
      host: findHost(named),
      model,
      gate,
      folder,
      script: "tools",
      user: withoutPrograms(ofUser, start),
      project: Object.assign({}, ...own.map(({ settings }) => withoutPrograms(settings, start))),
      words: [],
    };
    try {
      const { output } = await runHost(common);
      const times = timesShown();
      if (times > 0) await runHost({ ...common, inTerminal: () => timesShown() > times });
      if (times > 0 && timesShown() === times)
        say("no session with a terminal was seen: tools that need a person are not listed");
      return output.trim().split("\n").at(-1) ?? "";
    } finally {
      managed?.end();
    }
  },
};

/** Settings that start no program, and let the host show all its tools at once. Without this variable it holds some back. */
function withoutPrograms(settings: Members, { gate, folder }: ListerStart): Members {
  const { hooks: _, ...copy } = redirected(settings, { gate, keyFile: join(folder, "key"), keepsHook: false });
  return { ...copy, env: { ...(copy["env"] as Members | undefined), ENABLE_TOOL_SEARCH: "false" } };
}
