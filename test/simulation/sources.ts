import { registerHooks } from "node:module";
import { basename } from "node:path";

/**
 * The gate's own sources, loaded over a simulated machine: nothing of them is changed, only what they import of the platform
 * is another. A copy can be made wrong on purpose, to see whether the simulation notices.
 */

/** A text that is replaced in one file of a copy. */
export interface Edit {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** What stands in for the platform: for all of the sources, or for the ledger alone. */
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

/** What is made smaller, so that small histories meet it often. */
const smaller: readonly Edit[] = [
  { file: "ledger/stores/sqlite-file.ts", from: "logPagesMax = 2000", to: "logPagesMax = 12" },
];

const root = new URL("../../src/", import.meta.url).href;
const here = import.meta.url;
const edits = new Map<string, readonly Edit[]>();
const applied = new Set<Edit>();

registerHooks({
  resolve(specifier, context, next) {
    const from = context.parentURL ?? "";
    const query = new URL(from || here).searchParams;
    if (!query.has("copy") || !from.startsWith(root)) return next(specifier, context);
    const stand = replaced[specifier] ?? (from.includes("/src/ledger/") ? replacedInLedger[specifier] : undefined);
    if (stand !== undefined) {
      // The one that must know which thread asks is copied with the sources.
      const own = specifier === "node:worker_threads" ? `?${query.toString()}` : "";
      return { url: new URL(stand, here).href + own, shortCircuit: true };
    }
    const found = next(specifier, context);
    return found.url.startsWith(root) ? { ...found, url: `${found.url}?${query.toString()}` } : found;
  },
  load(url, context, next) {
    const loaded = next(url, context);
    const copy = new URL(url).searchParams.get("copy");
    const wanted = edits.get(copy ?? "")?.filter(({ file }) => url.startsWith(`${root}${file}?`)) ?? [];
    if (wanted.length === 0) return loaded;
    let source = Buffer.from(loaded.source as Uint8Array).toString();
    for (const edit of wanted) {
      if (!source.includes(edit.from))
        throw new Error(`${edit.file} has no longer what is to be made wrong: ${edit.from}`);
      source = source.replace(edit.from, () => edit.to);
      applied.add(edit);
    }
    return { ...loaded, source };
  },
});

type Gates = typeof import("../../src/gate/gate.ts");
type Clocks = typeof import("../../src/gate/clock.ts");
type Ledgers = typeof import("../../src/ledger/mod.ts");
type Trees = typeof import("../../src/ledger/tree/mod.ts");

export type Sources = Pick<Gates, "openGate"> &
  Pick<Clocks, "Clock"> &
  Pick<Ledgers, "openLedger"> &
  Pick<Trees, "makeSigningKey" | "readSigningKeys" | "Signer" | "writeSigningKeys">;

/** A copy of the sources, with mistakes in it where there are edits. */
export async function loadSources(copy: string, wrong: readonly Edit[] = []): Promise<Sources> {
  const all = [...smaller, ...wrong];
  edits.set(copy, all);
  const load = <Module>(file: string, thread = ""): Promise<Module> =>
    import(`${root}${file}?copy=${copy}${thread}`) as Promise<Module>;
  for (const file of ["ledger/stores/sqlite-writer.ts", "ledger/stores/sqlite-reader.ts"])
    await load(file, `&thread=${basename(file)}`);
  const { openGate } = await load<Gates>("gate/gate.ts");
  const { Clock } = await load<Clocks>("gate/clock.ts");
  const { openLedger } = await load<Ledgers>("ledger/mod.ts");
  const trees = await load<Trees>("ledger/tree/mod.ts");
  const idle = all.filter((edit) => !applied.has(edit));
  if (idle.length > 0) throw new Error(`nobody loaded ${idle.map(({ file }) => file).join(", ")}`);
  return { ...trees, openLedger, openGate, Clock };
}
