import { readFile } from "node:fs/promises";
import { bad, good, type Result } from "../../wire/mod.ts";
import type { Config } from "../config.ts";
import type { AnchorSites } from "./anchors.ts";
import { parsePolicy } from "./policy.ts";
import { parseSinks } from "./sinks.ts";

/** Who anchors the ledgers, as the settings have it; undefined where nobody does. */
export async function anchorSites(config: Config): Promise<Result<AnchorSites | undefined, string>> {
  const { witnessPolicy, anchorEvery, accept } = config;
  const sinks = parseSinks(config.sinks ?? "");
  if (!sinks.ok) return bad(`SVC_SINKS: ${sinks.problem}`);
  if (witnessPolicy === undefined && sinks.value.length === 0) return good(undefined);
  const policy = witnessPolicy === undefined ? undefined : await readPolicy(witnessPolicy);
  if (policy?.ok === false) return bad(`SVC_WITNESS_POLICY names ${witnessPolicy}, which ${policy.problem}`);
  const acceptClaims = accept.includes("anchors");
  return good({ policy: policy?.value, sinks: sinks.value, every: anchorEvery, acceptClaims });
}

async function readPolicy(file: string): Promise<ReturnType<typeof parsePolicy>> {
  try {
    const policy = parsePolicy(await readFile(file, "utf8"));
    return policy.ok ? policy : bad(`cannot be used: ${policy.problem}`);
  } catch (error) {
    return bad(`cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}
