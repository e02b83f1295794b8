import { createHmac } from "node:crypto";

/** A cache of 4,096 keys of this length takes a few megabytes. A longer key is digested each time. */
const keyCachedMax = 512;

/** The texts that start so are not counters' keys and rarely come again. */
const ownDomain = "svc-gate/";

/** Digests counters' keys: HMAC-SHA256 with the ledger's own secret, in hex. Recent short keys are cached. */
export function keyDigester(secret: string): (key: string) => string {
  const digests = new Map<string, string>();
  return (key) => {
    const known = digests.get(key);
    if (known !== undefined) return known;
    const digest = createHmac("sha256", secret).update(key).digest("hex");
    if (key.length > keyCachedMax || key.startsWith(ownDomain)) return digest;
    if (digests.size >= 4096) digests.clear();
    digests.set(key, digest);
    return digest;
  };
}
