import { isAbsolute } from "node:path";
import { bad, good, type Result } from "../../../../core/src/wire/mod.ts";
import { fileSink } from "./file-sink.ts";
import type { Sink } from "./sink.ts";

const sinksMax = 16;

/** Reads the list of sinks in the setting. */
export function parseSinks(text: string): Result<readonly Sink[], string> {
  const places = text
    .split(",")
    .map((place) => place.trim())
    .filter(Boolean);
  if (places.length > sinksMax) return bad(`there are over ${sinksMax} sinks`);
  if (new Set(places).size < places.length) return bad("a sink appears twice");
  const sinks: Sink[] = [];
  for (const place of places) {
    const path = /^file:(.*)$/.exec(place)?.[1];
    // A URL may have a secret after its question mark.
    if (path === undefined)
      return bad(
        `${place.split("?")[0]} is not a file: name a sink such as file:/srv/anchors/gate (docs/guides/anchors.md)`,
      );
    if (!isAbsolute(path) || path.includes("\0"))
      return bad(`${place} is not an absolute path: name a sink such as file:/srv/anchors/gate`);
    const sink = fileSink(path);
    sinks.push(sinks.length === 0 ? sink : { ...sink, by: `${sink.by} ${sinks.length + 1}` });
  }
  return good(sinks);
}
