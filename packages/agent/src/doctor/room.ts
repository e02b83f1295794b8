import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import type { Scripts } from "../model/script.ts";
import { startModel, type ScriptedModel } from "../model/server.ts";
import type { DoctorHost, StartContext, SettingsFile } from "./host.ts";
import { replaceFolder } from "./namespaces.ts";
import { startStandIn, type StandIn } from "./stand-in.ts";

/** Where a host is started: a folder of the doctor's own, its gate and its scripted model. */
export interface Room {
  /** Empty at the start. */
  readonly folder: string;
  readonly gate: StandIn;
  readonly model: ScriptedModel;
  /** Replaces the machine's settings by files, if the doctor may do that. */
  readonly replaceMachineFiles: (files: readonly SettingsFile[]) => void;
  readonly makeContext: (version: string, settings: Pick<StartContext, "user" | "project">) => StartContext;
}

/**
 * Makes the folder, the gate and the model, runs `work`, and removes them.
 *
 * @param isCut true if the host can reach this machine only; then it does not see the machine's settings
 */
export async function inRoom<T>(
  { machineFolder }: DoctorHost,
  isCut: boolean,
  scriptsIn: (folder: string) => Scripts,
  work: (room: Room) => Promise<T>,
): Promise<T> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "svc-gate-doctor-"))); // the path that the host shows
  const leave = (): void => rmSync(folder, { recursive: true, force: true });
  process.once("exit", leave);
  for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
  const gate = await startStandIn(randomBytes(24).toString("hex"));
  const model = await startModel(scriptsIn(folder));
  const managed =
    isCut && existsSync(machineFolder) ? replaceFolder(machineFolder, join(folder, "managed")) : undefined;
  try {
    return await work({
      folder,
      gate,
      model,
      replaceMachineFiles: (files) =>
        files.forEach(({ path, text }) => managed?.write(relative(machineFolder, path), text)),
      makeContext: (version, settings) => ({
        home: join(folder, "home"),
        workspace: join(folder, "workspace"),
        temporary: join(folder, "tmp"),
        model: model.url,
        key: gate.key,
        version,
        ...settings,
      }),
    });
  } finally {
    managed?.end();
    await Promise.all([gate.stop(), model.stop()]);
    leave();
  }
}
