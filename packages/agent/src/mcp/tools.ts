/** `svc-gate mcp tools`: prints the tools of a server, for `svc-gate import-tools`. */
import { wholeAcceptCommand } from "./accept-command.ts";
import type { McpOptions } from "./command.ts";
import { digestOf, textIn, type JsonRecord } from "./json.ts";
import { offersOf } from "./offers.ts";
import { readLock, readPins } from "./pins.ts";
import type { Offer } from "./probe.ts";
import { visible } from "./visible.ts";

/** @returns 0; standard output has `{server, tools}`, where `server` is its part of the names at the gate */
export async function printTools(options: McpOptions): Promise<number> {
  const { prefix, source, server, lockFile } = options;
  const lock = readLock(lockFile);
  const offers = await offersOf(options, lock?.server === prefix ? lock.channels : []);
  const tools = toolsIn(offers, say);
  const pins = readPins(lockFile, { prefix, source, remedy: "" });
  const isAccepted = (tool: JsonRecord): boolean => pins.statusOf(textIn(tool, "name") ?? "", tool) === "accepted";
  const unaccepted = tools.filter((tool) => !isAccepted(tool)).length;
  if (unaccepted > 0)
    say(
      `${unaccepted} of its ${tools.length} tools are not accepted: the proxy blocks them until you run\n  ` +
        wholeAcceptCommand(server, source),
    );
  process.stdout.write(`${JSON.stringify({ server: prefix, tools }, null, 2)}\n`);
  return 0;

  function say(sentence: string): void {
    process.stderr.write(`svc-gate mcp (${prefix}): ${sentence}\n`);
  }
}

/** One definition for each name. The offer of the newer generation comes first. */
function toolsIn(offers: readonly Offer[], say: (sentence: string) => void): readonly JsonRecord[] {
  const found = new Map<string, JsonRecord>();
  for (const tool of offers.flatMap(({ tools }) => tools)) {
    const name = textIn(tool, "name");
    const earlier = name === undefined ? undefined : found.get(name);
    if (name === undefined) say("a tool without a name is left out");
    else if (earlier === undefined) found.set(name, tool);
    else if (digestOf(earlier) !== digestOf(tool))
      say(`the tool ${visible(JSON.stringify(name))} has two definitions: the first is used`);
  }
  return [...found.values()];
}
