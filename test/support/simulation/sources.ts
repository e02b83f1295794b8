import { registerHooks } from "node:module";
import { basename } from "node:path";
import type { Mutation } from "../mutation/mutate.ts";
import { mutatedSources } from "../mutation/sources.ts";

/**
 * The gate's own sources on a simulated machine: they are unchanged, and only their imports of the platform are
 * replaced. A copy can have defects, to see whether the simulation notices.
 */

/** The replacements of platform modules: for all of the sources, or for the ledger alone. */
const replaced: Readonly<Record<string, string>> = {
  "node:sqlite": "./sqlite.ts",
  "node:crypto": "./host-crypto.ts",
  "node:timers/promises": "./host-timers-promises.ts",
  "node:worker_threads": "./host-worker-threads.ts",
};
const replacedInLedger: Readonly<Record<string, string>> = {
  "node:fs": "./host-fs.ts",
  "node:fs/promises": "./host-fs-promises.ts",
};

/**
 * Limits that are reduced: small histories reach the first one often. No thread rests, because the sources outlive a
 * simulated process.
 */
const smaller: readonly Mutation[] = [
  { within: "logPagesMax", value: "12" },
  { within: "restingMax", value: "0" },
];

const root = new URL("../../../packages/", import.meta.url).href;
const here = import.meta.url;
/** For each copy, the sources that differ, by their URLs. */
const others = new Map<string, ReadonlyMap<string, string>>();
/** The differing sources that were loaded, with the copy's name. */
const loadedOthers = new Set<string>();

registerHooks({
  resolve(specifier, context, next) {
    const from = context.parentURL ?? "";
    const query = new URL(from || here).searchParams;
    if (!query.has("copy") || !from.startsWith(root)) return next(specifier, context);
    const stand = replaced[specifier] ?? (from.includes("/src/ledger/") ? replacedInLedger[specifier] : undefined);
    if (stand !== undefined) {
      // The module that must know which thread asks is copied with the sources.
      const own = specifier === "node:worker_threads" ? `?${query.toString()}` : "";
      return { url: new URL(stand, here).href + own, shortCircuit: true };
    }
    const found = next(specifier, context);
    return found.url.startsWith(root) ? { ...found, url: `${found.url}?${query.toString()}` } : found;
  },
  load(url, context, next) {
    const loaded = next(url, context);
    const copy = new URL(url).searchParams.get("copy") ?? "";
    const [file = ""] = url.split("?");
    const source = others.get(copy)?.get(file);
    if (source === undefined) return loaded;
    loadedOthers.add(`${copy} ${file}`);
    return { ...loaded, source };
  },
});

type Gates = typeof import("../../../packages/gate/src/server/service/gate.ts");
type Clocks = typeof import("../../../packages/gate/src/server/policy/clock.ts");
type Ledgers = typeof import("../../../packages/gate/src/ledger/mod.ts");
type Signing = typeof import("../../../packages/gate/src/ledger/signing/mod.ts");

export type Sources = Pick<Gates, "openGate"> &
  Pick<Clocks, "Clock"> &
  Pick<Ledgers, "openLedger"> &
  Pick<Signing, "makeSigningKey" | "readSigningKeys" | "Signer" | "writeSigningKeys">;

/** Makes a copy of the sources, with defects if there are mutations. */
export async function loadSources(copy: string, wrong: readonly Mutation[] = []): Promise<Sources> {
  const mutated = mutatedSources([...smaller, ...wrong]);
  others.set(copy, mutated);
  const load = <Module>(file: string, thread = ""): Promise<Module> =>
    import(`${root}${file}?copy=${copy}${thread}`) as Promise<Module>;
  for (const file of ["gate/src/ledger/store/sqlite/writer.ts", "gate/src/ledger/store/sqlite/reader.ts"])
    await load(file, `&thread=${basename(file)}`);
  const { openGate } = await load<Gates>("gate/src/server/service/gate.ts");
  const { Clock } = await load<Clocks>("gate/src/server/policy/clock.ts");
  const { openLedger } = await load<Ledgers>("gate/src/ledger/mod.ts");
  const signing = await load<Signing>("gate/src/ledger/signing/mod.ts");
  const idle = [...mutated.keys()].filter((file) => !loadedOthers.has(`${copy} ${file}`));
  if (idle.length > 0) throw new Error(`nobody loaded ${idle.join(", ")}`);
  return { ...signing, openLedger, openGate, Clock };
}
