import { hash } from "node:crypto";

/** What is kept of a key: SHA-256 in hex. A made key has 256 random bits, so that no slow digest is needed. */
export function digestOf(key: string): string {
  return hash("sha256", key, "hex");
}
