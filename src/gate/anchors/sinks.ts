import { isAbsolute } from "node:path";
import { bad, good, type Result } from "../../wire/mod.ts";
import { fileSink } from "./file-sink.ts";
import { gitSink } from "./git-sink.ts";
import { send, shownReply } from "./send.ts";
import { parseUrl, shownUrl } from "./url.ts";

/** Something that is given checkpoints to keep. The same one serves all ledgers of a gate. */
export interface Sink {
  /** Such as `file sink`. */
  readonly by: string;
  /** Where it is, for the log. */
  readonly place: string;
  /**
   * Gives it a checkpoint.
   *
   * @param tenant null is the root
   * @throws {Error} with a sentence, where it did not take it
   */
  write(tenant: string | null, note: string, signal: AbortSignal): Promise<void>;
  /** The last checkpoint of this origin that it was given; undefined where it has none. The same errors. */
  readonly read?: (tenant: string | null, origin: string, signal: AbortSignal) => Promise<Kept | undefined>;
}

/** A checkpoint that a sink keeps. */
export interface Kept {
  readonly note: string;
  /** When it was given that, in milliseconds. */
  readonly at: number;
}

const sinksMax = 16;
const httpTimeoutMs = 5000;

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
    const sink = parseSink(place);
    if (!sink.ok) return bad(`${place.split("?")[0]}: ${sink.problem}`);
    const same = sinks.filter(({ by }) => by.startsWith(sink.value.by)).length;
    sinks.push(same === 0 ? sink.value : { ...sink.value, by: `${sink.value.by} ${same + 1}` });
  }
  return good(sinks);
}

function parseSink(place: string): Result<Sink, string> {
  const [, kind, path = ""] = /^(file|git):(.*)$/.exec(place) ?? [];
  if (kind === undefined) return parseHttpSink(place);
  if (!isAbsolute(path) || path.includes("\0"))
    return bad(`name it with its whole path, such as ${kind}:/srv/anchors/${kind === "git" ? "repository" : "gate"}`);
  return good(kind === "file" ? fileSink(path) : gitSink(path));
}

function parseHttpSink(place: string): Result<Sink, string> {
  if (!/^https?:/.test(place)) return bad("a sink is file:/path, git:/path/to/repository, or https://...");
  const url = parseUrl(place);
  if (!url.ok) return url;
  const { href } = url.value;
  const write: Sink["write"] = async (_tenant, note, signal) => {
    const reply = await send(href, { body: note, timeoutMs: httpTimeoutMs, signal });
    if (!reply.ok) throw new Error(reply.problem);
    if (reply.value.status < 200 || reply.value.status > 299) throw new Error(shownReply(reply.value));
  };
  return good({ by: "HTTP sink", place: shownUrl(href), write });
}
