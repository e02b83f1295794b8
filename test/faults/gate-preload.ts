/**
 * Loaded into a gate before it starts: some of its sources are read with other words, in every thread. FAULTS_CHANGES
 * says which; a source that does not have what is to be replaced ends the gate, so that no control goes stale in silence.
 */
import { registerHooks } from "node:module";
import type { Change } from "./place.ts";

const changes = JSON.parse(process.env["FAULTS_CHANGES"] ?? "[]") as readonly Change[];

registerHooks({
  load: (url, context, next) => {
    const loaded = next(url, context);
    const own = changes.filter(({ file }) => url.endsWith(`/${file}`));
    if (own.length === 0) return loaded;
    let text = textOf(loaded.source);
    for (const { file, from, to } of own) {
      const changed = text.replace(new RegExp(from), to);
      if (changed === text) throw new Error(`${file} does not have what is to be replaced: ${from}`);
      text = changed;
    }
    return { ...loaded, source: text };
  },
});

function textOf(source: string | NodeJS.TypedArray | ArrayBuffer | undefined): string {
  return typeof source === "string" ? source : new TextDecoder().decode(source);
}
