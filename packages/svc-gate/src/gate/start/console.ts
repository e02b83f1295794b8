import { join } from "node:path";
import type { Logger } from "pino";
import { dataFolder } from "../../ledger/mod.ts";
import type { KeyRing } from "../admin/keys/keys.ts";
import { ConsoleDoor } from "../console/door.ts";
import { FirstCode } from "../console/first-code.ts";
import { OidcSignIn } from "../console/oidc/sign-in.ts";
import { readOidc } from "../console/oidc/settings.ts";
import { OwnNames } from "../console/own-names.ts";
import { Seal } from "../console/seal.ts";
import { secretIn, Sessions } from "../console/sessions.ts";
import { servesConsole, type Config } from "./config.ts";

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
  const { basePath, consoleSecret: text, dataDir, oidc, publicUrl } = config;
  const file = join(dataDir, dataFolder.files.consoleSecret);
  const secret = (): Promise<Buffer> => (text === undefined ? secretIn(file) : Promise.resolve(Buffer.from(text)));
  return new ConsoleDoor({
    names: new OwnNames(publicUrl),
    sessions: new Sessions(secret),
    oidc:
      oidc &&
      new OidcSignIn({ file: oidc, seal: new Seal(secret, "svc-gate console oidc 1"), keys, warn: log.warn.bind(log) }),
    code: new FirstCode(showCode),
    keys,
    basePath,
  });
}

/** @returns why the file of SVC_OIDC cannot be used; undefined if it can */
export async function oidcProblem({ oidc }: Config): Promise<string | undefined> {
  const settings = oidc === undefined ? undefined : await readOidc(oidc);
  return settings?.ok === false ? settings.problem : undefined;
}
