import { join } from "node:path";
import type { Logger } from "pino";
import { dataFolder } from "../../ledger/mod.ts";
import type { KeyRing } from "../admin/keys/keys.ts";
import { ConsoleDoor } from "../console/door.ts";
import { FirstCode } from "../console/first-code.ts";
import { OwnNames } from "../console/own-names.ts";
import { secretIn, Sessions } from "../console/sessions.ts";
import { servesConsole, type Config } from "./config.ts";
import { isPrivateUrl } from "./loopback.ts";

interface ConsoleHooks {
  readonly keys: KeyRing;
  readonly log: Logger;
  /** Shows a person at the gate's terminal the code for the first sign-in; by default in the log. */
  readonly showCode?: (sentence: string) => void;
}

/** Makes the door of the console; undefined if the gate does not serve it. */
export function openConsole(
  config: Config,
  { keys, log, showCode = (sentence) => log.warn(sentence) }: ConsoleHooks,
): ConsoleDoor | undefined {
  if (!servesConsole(config)) return undefined;
  const { basePath, consoleSecret: text, dataDir, publicUrl } = config;
  const file = join(dataDir, dataFolder.files.consoleSecret);
  const secret = (): Promise<Buffer> => (text === undefined ? secretIn(file) : Promise.resolve(Buffer.from(text)));
  return new ConsoleDoor({
    names: new OwnNames(publicUrl),
    sessions: new Sessions(secret),
    code: new FirstCode(showCode),
    keys,
    basePath,
  });
}

/** Returns the address of the console that persons open. A public address without TLS is not one of its names. */
export function consoleUrl({ publicUrl }: Config, address: string): string {
  return `${publicUrl !== undefined && isPrivateUrl(publicUrl) ? publicUrl : address}/console`;
}
