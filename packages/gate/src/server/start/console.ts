import { join } from "node:path";
import type { Logger } from "pino";
import { dataFolder } from "../../ledger/mod.ts";
import type { KeyRing } from "../keys/keys.ts";
import { ConsoleDoor } from "../http/door.ts";
import { FirstCode } from "../../../../console/src/server/first-code.ts";
import { OidcSignIn } from "../../../../console/src/server/oidc/sign-in.ts";
import { readOidc } from "../../../../console/src/server/oidc/settings.ts";
import { OwnNames } from "../../../../console/src/server/own-names.ts";
import { Seal } from "../../../../console/src/server/seal.ts";
import { secretIn, Sessions } from "../../../../console/src/server/sessions.ts";
import { StartRefused } from "../errors.ts";
import type { Config } from "./config.ts";
import { noConsole } from "./console-settings.ts";
import { isPrivateUrl } from "../../../../core/src/wire/loopback.ts";

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
  if (noConsole(config) !== undefined) return undefined;
  const { basePath, consoleSecret: text, dataDir, oidc, publicUrl } = config;
  const file = join(dataDir, dataFolder.files.consoleSecret);
  const secret = (): Promise<Buffer> => (text === undefined ? secretIn(file) : Promise.resolve(Buffer.from(text)));
  const seal = new Seal(secret, "svc-gate console oidc 1");
  const warn = (why: string): void => log.warn(why);
  return new ConsoleDoor({
    names: new OwnNames(publicUrl),
    sessions: new Sessions(secret),
    oidc: oidc === undefined ? undefined : new OidcSignIn({ file: oidc, seal, keys, warn }),
    code: new FirstCode(showCode),
    keys,
    basePath,
  });
}

/** Returns the address of the console that persons open. A public address without TLS is not one of its names. */
export function consoleUrl({ publicUrl }: Config, address: string): string {
  return `${publicUrl !== undefined && isPrivateUrl(publicUrl) ? publicUrl : address}/console`;
}

/** @throws {StartRefused} if the file of SVC_OIDC cannot be used */
export async function requireOidc({ oidc }: Config): Promise<void> {
  const settings = oidc === undefined ? undefined : await readOidc(oidc);
  if (settings?.ok === false) throw new StartRefused(settings.problem, 2);
}
