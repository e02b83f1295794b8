import { fileURLToPath } from "node:url";

/** The folder where the hosts are installed: that of the lock file, or the one that SVC_TEST_HOSTS names. */
export function hosts(): string {
  return process.env["SVC_TEST_HOSTS"] ?? fileURLToPath(new URL("hosts", import.meta.url));
}
