import { isAbsolute } from "node:path";
import { bad, good, type Result } from "../../wire/mod.ts";
import { fileSink } from "./file-sink.ts";

/** A file that is given checkpoints to keep. The same one serves all ledgers of a gate. */
export interface Sink {
  /** Such as `file sink`. */
  readonly by: string;
  /** Where it is, for the log. */
  readonly place: string;
  /** Gives it a checkpoint. @param tenant null is the root */
  readonly write: (tenant: string | null, note: string) => Promise<void>;
  /** The last checkpoint of this origin that it was given; undefined where it has none. */
  readonly read: (tenant: string | null, origin: string) => Promise<Kept | undefined>;
}

/** A checkpoint that a sink keeps. */
export interface Kept {
  readonly note: string;
  /** When it was given that, in milliseconds. */
  readonly at: number;
}

const sinksMax = 16;

/** Reads a list of sinks, as the setting has them. */
export function parseSinks(text: string): Result<readonly Sink[], string> {
  const places = text
    .split(",")
    .map((place) => place.trim())
    .filter(Boolean);
  if (places.length > sinksMax) return bad(`there are over ${sinksMax} sinks`);
  if (new Set(places).size < places.length) return bad("a sink stands twice");
  const sinks: Sink[] = [];
  for (const place of places) {
    const path = /^file:(.*)$/.exec(place)?.[1];
    // A URL may hold a secret behind its question mark.
    if (path === undefined)
      return bad(`${place.split("?")[0]}: a sink is a file, such as file:/srv/anchors/gate (docs/anchors.md)`);
    if (!isAbsolute(path) || path.includes("\0"))
      return bad(`${place}: name it with its whole path, such as file:/srv/anchors/gate`);
    const sink = fileSink(path);
    sinks.push(sinks.length === 0 ? sink : { ...sink, by: `${sink.by} ${sinks.length + 1}` });
  }
  return good(sinks);
}
