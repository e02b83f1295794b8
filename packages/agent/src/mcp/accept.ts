/** `svc-gate mcp accept`: shows a person what a server offers and what changed, and writes the lock file. */
import { saysYes } from "../ask.ts";
import { channels, type Channel } from "./channels.ts";
import type { McpOptions } from "./command.ts";
import { digestOf, textIn } from "./json.ts";
import { offersOf } from "./offers.ts";
import {
  readLock,
  sourceDigest,
  startedBy,
  UsageError,
  writeLock,
  type LockFile,
  type PinnedText,
  type PinnedTool,
} from "./pins.ts";
import type { Offer } from "./probe.ts";
import { visible } from "./visible.ts";

/** @returns 0 if the lock file says what the server offers, 1 if the person said no */
export async function accept(options: McpOptions): Promise<number> {
  const { lockFile, allow, deny, isYes } = options;
  const earlier = readLock(lockFile);
  const kept = earlier?.channels ?? [];
  const allowed = channels.filter(
    (channel) => (kept.includes(channel) || allow.includes(channel)) && !deny.includes(channel),
  );
  const offers = await offersOf(options, allowed);
  const lock = lockOf(options, allowed, offers);
  const changes = differences(earlier, lock);
  if (changes.length === 0) {
    process.stdout.write(`Nothing has changed since you accepted the MCP server ${options.prefix}.\n`);
    return 0;
  }
  process.stdout.write(`${changes.map((change) => visible(change)).join("\n")}\n`);
  const nobody = "svc-gate mcp: nobody can answer here; run it in a terminal, or add --yes after you read this";
  if (!isYes && !(await saysYes("Accept all this?", new UsageError(nobody)))) {
    process.stdout.write("Nothing is accepted.\n");
    return 1;
  }
  writeLock(lockFile, lock);
  process.stdout.write(`Accepted. The lock file is ${lockFile}\n`);
  return 0;
}

function lockOf({ prefix, source }: McpOptions, allowed: readonly Channel[], offers: readonly Offer[]): LockFile {
  const tools = new Map<string, Map<string, PinnedTool>>();
  const instructions = new Map<string, PinnedText>();
  for (const offer of offers) {
    const text = offer.instructions;
    if (text !== undefined) instructions.set(text, { digest: digestOf(text), text });
    for (const definition of offer.tools) {
      const name = textIn(definition, "name");
      if (name === undefined) continue;
      const known = tools.get(name) ?? new Map<string, PinnedTool>();
      const digest = digestOf(definition);
      tools.set(name, known.set(digest, { digest, definition }));
    }
  }
  const sorted = [...tools].toSorted(([one], [other]) => (one < other ? -1 : 1));
  return {
    version: 1,
    server: prefix,
    source: sourceDigest(source),
    started: startedBy(source),
    channels: allowed,
    instructions: [...instructions.values()],
    tools: Object.fromEntries(sorted.map(([name, pinned]) => [name, [...pinned.values()]])),
  };
}

/** Returns lines for people: `+` is new, `-` is gone. */
function differences(earlier: LockFile | undefined, now: LockFile): readonly string[] {
  const lines: string[] = [];
  const addDifference = (title: string, before: readonly string[], after: readonly string[]): void => {
    const [gone, added] = [
      before.filter((each) => !after.includes(each)),
      after.filter((each) => !before.includes(each)),
    ];
    if (gone.length + added.length === 0) return;
    lines.push(title, ...gone.map((each) => `  - ${each}`), ...added.map((each) => `  + ${each}`));
  };
  const same = earlier?.server === now.server ? earlier : undefined;
  const describeStart = (lock: LockFile | undefined): string[] =>
    lock === undefined ? [] : [JSON.stringify(lock.started)];
  addDifference(`The server ${now.server} is started in this way:`, describeStart(same), describeStart(now));
  addDifference("These channels are allowed:", same?.channels ?? [], now.channels);
  const texts = (lock: LockFile | undefined): string[] =>
    (lock?.instructions ?? []).map(({ text }) => JSON.stringify(text));
  addDifference("It tells the model:", texts(same), texts(now));
  for (const name of new Set([...Object.keys(same?.tools ?? {}), ...Object.keys(now.tools)])) {
    addDifference(
      `The tool ${JSON.stringify(name)}:`,
      formatPinnedTools(pinnedIn(same, name)),
      formatPinnedTools(pinnedIn(now, name)),
    );
  }
  return lines;
}

function pinnedIn(lock: LockFile | undefined, name: string): readonly PinnedTool[] {
  return (lock !== undefined && Object.hasOwn(lock.tools, name) ? lock.tools[name] : undefined) ?? [];
}

/** One line for each member of the only definition, so that a difference is short. */
function formatPinnedTools(pinned: readonly PinnedTool[]): readonly string[] {
  if (pinned.length !== 1) return pinned.map(({ definition }) => JSON.stringify(definition));
  return Object.entries(pinned[0]?.definition ?? {}).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
}
