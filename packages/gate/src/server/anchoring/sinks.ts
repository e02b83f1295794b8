import { isAbsolute } from "node:path";
import { bad, good, type Result } from "../../../../core/src/wire/mod.ts";
import { fileSink } from "./file-sink.ts";
import type { Sink } from "./sink.ts";

const sinksMax = 16;

/** Reads the list of sinks in the setting. */
export function parseSinks(text: string): Result<readonly Sink[], string> {
  const addresses = text
    .split(",")
    .map((address) => address.trim())
    .filter(Boolean);
  if (addresses.length > sinksMax) return bad(`there are over ${sinksMax} sinks`);
  if (new Set(addresses).size < addresses.length) return bad("a sink appears twice");
  const sinks: Sink[] = [];
  for (const address of addresses) {
    const path = /^file:(.*)$/.exec(address)?.[1];
    // A URL may have a secret after its question mark.
    if (path === undefined)
      return bad(
        `${address.split("?")[0]} is not a file: name a sink such as file:/srv/anchors/gate (docs/guides/anchors.md)`,
      );
    if (!isAbsolute(path) || path.includes("\0"))
      return bad(`${address} is not an absolute path: name a sink such as file:/srv/anchors/gate`);
    const sink = fileSink(path);
    sinks.push(sinks.length === 0 ? sink : { ...sink, by: `${sink.by} ${sinks.length + 1}` });
  }
  return good(sinks);
}
