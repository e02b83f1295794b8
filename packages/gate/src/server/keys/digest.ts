import { hash } from "node:crypto";

/**
 * Returns the stored form of a key: SHA-256 in hex. A generated key has 256 random bits, so a slow hash is not needed.
 */
export function digestOf(key: string): string {
  return hash("sha256", key, "hex");
}
