/** The settings that `svc-gate hook install` writes, for hosts that only start commands as hooks. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { InstallOptions } from "../../../packages/agent/src/install/host.ts";
import { root } from "../../../test/support/gate.ts";
import { noHandoffs } from "./library.ts";
import type { HookKind, HostCase, Plan } from "../case.ts";

/** A program instead of the hook, inside the shell line that `hook install` writes. */
const failing: Readonly<Record<Exclude<HookKind, "ours" | "absent" | "misspelt">, string>> = {
  crashes: "kill -SEGV $$",
  "exits-1": "exit 1",
  "not-there": "",
  killed: "kill -KILL $$",
  hangs: "sleep 20",
  "says-nothing": "exit 0",
  "says-text": "echo ALLOW",
  "says-odd-json": `echo '{"verdict":"ALLOW"}'`,
};

/** What `hook install` is asked for. It writes the key to its file. */
export function wantedFor({ folder, gate, key, case: one }: Plan): InstallOptions {
  const keyFile = join(folder, "key");
  writeFileSync(keyFile, key, { mode: 0o600 });
  return {
    url: gate,
    keyFile,
    program: join(root, "packages", "agent", "bin", "svc-gate.mjs"),
    form: "command",
    onEscalate: one.onEscalate === "wait" ? "wait" : "deny",
    isGrant: true,
    keepsAllow: false,
    isManaged: one.isProtected === true,
  };
}

/** Shortens the deadlines, so that the kit does not wait long, and puts a program that fails instead of the hook. */
export function forCase(text: string, { folder, secondsForHook, case: one }: Plan): string {
  const { hook = "ours" } = one;
  const isWaiting = one.onEscalate === "wait";
  const quick = text
    .replaceAll(" --key-file ", ` --timeout ${secondsForHook} --wait 20 --key-file `)
    .replaceAll(/\/timeout -k 1 \d+/g, `/timeout -k 1 ${isWaiting ? 30 : secondsForHook + 2}`);
  if (hook === "ours" || hook === "absent" || hook === "misspelt") return quick;
  const program = hook === "not-there" ? "/nonexistent/svc-gate" : join(folder, "failing.sh");
  writeFileSync(join(folder, "failing.sh"), `#!/bin/sh\n${failing[hook]}\n`, { mode: 0o755 });
  return quick.replaceAll(/(out=\$\(\S+\/timeout -k 1 \d+ )[^)]*\)/g, `$1${program})`);
}

/** Why a case does not apply to a command hook; undefined if it may. */
export function excuseOfCommand({ variant, onEscalate }: HostCase): string | undefined {
  if (variant?.startsWith("fail-open")) return "the hook has no fail-open";
  if (variant === "facts-throw") return "the hook sends no facts of a platform";
  if (variant === "other-protocol") return "the host speaks one protocol";
  if (variant === "handoff") return noHandoffs;
  if (variant === "instant-client") return "the hook is a process of its own";
  return onEscalate === "park" ? "the host cannot park a run" : undefined;
}
