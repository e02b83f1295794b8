import { join } from "node:path";
import type { Logger } from "pino";
import { dataFolder } from "../../ledger/mod.ts";
import type { KeyRing } from "../keys/keys.ts";
import { ConsoleDoor } from "../http/door.ts";
import { FirstCode, OwnNames, Seal, secretIn, Sessions } from "../../../../console/src/server/mod.ts";
import type { OidcSignIn } from "../../../../console/src/server/oidc/mod.ts";
import { RequestQueue } from "../admission/line.ts";
import { readPrivateJson } from "../settings/private-file.ts";
import { StartRefused } from "../errors.ts";
import type { Config } from "./config.ts";
import { noConsole } from "./console-settings.ts";
import { good, isPrivateUrl, limits } from "../../../../core/src/wire/mod.ts";

interface ConsoleHooks {
  readonly keys: KeyRing;
  readonly log: Logger;
  /** Shows a person at the gate's terminal the code for the first sign-in; by default in the log. */
  readonly showCode?: (sentence: string) => void;
}

/** Makes the door of the console; undefined if the gate does not serve it. */
export async function openConsole(
  config: Config,
  { keys, log, showCode = (sentence) => log.warn(sentence) }: ConsoleHooks,
): Promise<ConsoleDoor | undefined> {
  if (noConsole(config) !== undefined) return undefined;
  const { basePath, consoleSecret: text, dataDir, oidc, publicUrl } = config;
  const file = join(dataDir, dataFolder.files.consoleSecret);
  const secret = (): Promise<Buffer> => (text === undefined ? secretIn(file) : Promise.resolve(Buffer.from(text)));
  const seal = new Seal(secret, "svc-gate console oidc 1");
  const warn = (why: string): void => log.warn(why);
  return new ConsoleDoor({
    names: new OwnNames(publicUrl),
    sessions: new Sessions(secret),
    oidc: oidc === undefined ? undefined : await signInBy({ file: oidc, seal, keys, warn }),
    code: new FirstCode(showCode),
    keys,
    basePath,
  });
}

/** Makes the sign-in with a provider. Its code is loaded if there is one. */
async function signInBy(
  parts: Pick<ConstructorParameters<typeof OidcSignIn>[0], "file" | "keys" | "seal" | "warn">,
): Promise<OidcSignIn> {
  const provider = await import("../../../../console/src/server/oidc/mod.ts");
  const { redeemedMax: max, tooMany } = provider;
  const places = { ofKeyMax: max, ofTenantMax: max, max, waitingOfKeyMax: limits.readsWaitingMax };
  const line = new RequestQueue({ ...places, refusal: () => tooMany });
  const enter: ConstructorParameters<typeof OidcSignIn>[0]["enter"] = async (owner, signal) => {
    const ticket = await line.enter(owner, signal);
    return ticket.ok ? good(() => line.leave(ticket.value)) : ticket;
  };
  return new provider.OidcSignIn({ ...parts, readJson: readPrivateJson, enter });
}

/** Returns where people open the console, without its path. A public address without TLS is not one of its names. */
export function consoleOrigin({ publicUrl }: Config, address: string): string {
  return publicUrl !== undefined && isPrivateUrl(new URL(publicUrl)) ? publicUrl : address;
}

/** @throws {StartRefused} if the file of SVC_OIDC cannot be used */
export async function requireOidc({ oidc }: Config): Promise<void> {
  if (oidc === undefined) return;
  const { readOidc } = await import("../../../../console/src/server/oidc/mod.ts");
  const settings = await readOidc(oidc, readPrivateJson);
  if (!settings.ok) throw new StartRefused(settings.problem, 2);
}
