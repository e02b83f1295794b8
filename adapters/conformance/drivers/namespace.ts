import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const script = fileURLToPath(new URL("managed.sh", import.meta.url));

/**
 * Starts a program where only its own mount namespace has the administrator's file.
 *
 * @param file the file's text is here
 * @param place where the program finds it, below /etc
 */
export function inNamespace(file: string, place: string, words: readonly string[]): readonly string[] {
  return ["unshare", "-m", "sh", script, file, place, ...words];
}

let namespace: string | undefined | null = null;

/** Returns why this machine cannot have an administrator's file in a namespace of its own. */
export function noNamespace(): string | undefined {
  if (namespace === null) {
    const words = ["-m", "sh", script, "/dev/null", "/etc/svc-gate-test/file", "true"];
    const { status } = spawnSync("unshare", words, { stdio: "ignore" });
    namespace = status === 0 ? undefined : "this machine does not let the test make a mount namespace";
  }
  return namespace;
}
