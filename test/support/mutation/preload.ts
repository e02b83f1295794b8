/**
 * Loaded into a gate before it starts: if MUTATED_SOURCES names a file, every thread loads the sources in it instead of
 * the right ones. `mutatedEnvironment` writes that file.
 */
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";

const file = process.env["MUTATED_SOURCES"];

if (file !== undefined) {
  const sources = new Map(JSON.parse(readFileSync(file, "utf8")) as readonly (readonly [url: string, text: string])[]);
  registerHooks({
    load: (url, context, next) => {
      const loaded = next(url, context);
      const source = sources.get(url);
      return source === undefined ? loaded : { ...loaded, source };
    },
  });
}
