import { readFile } from "node:fs/promises";
import { LedgerRefused } from "../../ledger/errors.ts";
import { readCollected } from "../../ledger/mod.ts";
import { bad, good, type Result } from "../../../../core/src/wire/mod.ts";
import type { AnchorSites } from "./anchors.ts";
import type { CollectedCheckpoints } from "./collected.ts";
import { parsePolicy } from "./policy.ts";
import { parseSinks } from "./sinks.ts";

/** The settings of anchors: `SVC_SINKS`, `SVC_SEEN`, `SVC_WITNESS_POLICY`, `SVC_ANCHOR_EVERY` and `--accept`. */
export interface SiteSettings {
  readonly sinks: string | undefined;
  readonly seen: string | undefined;
  readonly witnessPolicy: string | undefined;
  readonly anchorEvery: AnchorSites["every"];
  readonly accept: readonly string[];
}

/** Reads the anchors in the settings; undefined if there are none. */
export async function anchorSites(config: SiteSettings): Promise<Result<AnchorSites | undefined, string>> {
  const { witnessPolicy, anchorEvery, accept } = config;
  const sinks = parseSinks(config.sinks ?? "");
  if (!sinks.ok) return bad(`SVC_SINKS: ${sinks.problem}`);
  if (witnessPolicy === undefined && config.seen === undefined && sinks.value.length === 0) return good(undefined);
  const policy = witnessPolicy === undefined ? undefined : await readPolicy(witnessPolicy);
  if (policy?.ok === false) return bad(`SVC_WITNESS_POLICY names ${witnessPolicy}, which ${policy.problem}`);
  const collected = config.seen === undefined ? good(undefined) : await readSeen(config.seen);
  if (!collected.ok) return bad(`SVC_SEEN: ${collected.problem}`);
  const acceptClaims = accept.includes("anchors");
  return good({
    policy: policy?.value,
    sinks: sinks.value,
    collected: collected.value,
    every: anchorEvery,
    acceptClaims,
  });
}

async function readPolicy(file: string): Promise<ReturnType<typeof parsePolicy>> {
  try {
    const policy = parsePolicy(await readFile(file, "utf8"));
    return policy.ok ? policy : bad(`cannot be used: ${policy.problem}`);
  } catch (error) {
    return bad(`cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

async function readSeen(file: string): Promise<Result<CollectedCheckpoints, string>> {
  try {
    return good({ file, notes: await readCollected(file) });
  } catch (error) {
    if (error instanceof LedgerRefused) return bad(error.message);
    throw error;
  }
}
