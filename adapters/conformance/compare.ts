/** Holds the three ledgers of one case against each other and against the case. */
import { existsSync, readFileSync } from "node:fs";
import type { ShownRequest } from "../../packages/agent/src/model/server.ts";
import type { Driver, Ended, Expected, HostCase } from "./case.ts";
import type { Receipt } from "./fixture.ts";

/** A line of the witness. Only payments have a time and an input. */
export interface WitnessLine {
  /** `pay 5`, `shell A1`. */
  readonly what: string;
  readonly at?: number;
  readonly input?: unknown;
}

export interface Ledgers {
  readonly witness: readonly WitnessLine[];
  /** The content of a file that only a command can have read. */
  readonly secret: string | undefined;
  readonly shown: readonly ShownRequest[];
  /** Empty if the gate was a bad one. */
  readonly receipts: readonly Receipt[];
  readonly ended: Ended;
}

/** Names of the tools that providers run, as requests to the models have them. */
const searches = ["web_search", "googleSearch"];

export function witnessIn(file: string): readonly WitnessLine[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "");
  return lines.map((line) => {
    const [, amount, at, input] = /^pay (\S+) at (\d+) with (.*)$/.exec(line) ?? [];
    return input === undefined ? { what: line } : { what: `pay ${amount}`, at: Number(at), input: JSON.parse(input) };
  });
}

export function expectedOf(one: HostCase, { hasPermissions }: Driver): Expected {
  return hasPermissions ? one.expect : (one.expectWithoutPermissions ?? one.expect);
}

/** Returns a sentence for each difference. */
export function problemsOf(one: HostCase, driver: Driver, ledgers: Ledgers): readonly string[] {
  // A host without permissions runs what an observing gate lets pass.
  const runsUnjudged = one.variant === "fail-open-without-grant" || (one.gate === "observe" && !driver.hasPermissions);
  return [
    ...againstExpected(expectedOf(one, driver), driver, ledgers),
    ...shownAgainstWitness(ledgers),
    ...(runsUnjudged ? [] : witnessAgainstReceipts(driver, ledgers)),
  ];
}

function againstExpected(expect: Expected, driver: Driver, ledgers: Ledgers): readonly string[] {
  const { witness, shown, receipts, secret, ended } = ledgers;
  const texts = shown.flatMap(({ results }) => results.map(({ text }) => text));
  const hasRead = secret !== undefined && texts.some((text) => text.includes(secret));
  const hasSearched = shown.some(({ tools }) => tools.some(({ name }) => searches.includes(name)));
  const ran = [...witness.map(({ what }) => what), ...(hasRead ? ["read"] : []), ...(hasSearched ? ["web"] : [])];
  const wanted = expect.receipts?.map((row) => row.replace(/^mcp /, `${toolOf(driver, driver.tools.mcp.gate)} `));
  const judged = receipts.filter(({ tool_name }) => tool_name !== driver.waits?.gate);
  const rows = judged.map(({ tool_name, answered }) => `${toolOf(driver, tool_name)} ${answered}`);
  return [
    ...(isEach(expect.ran, ran) ? [] : [`ran: [${ran.join(", ")}], not [${expect.ran.join(", ")}]`]),
    ...(wanted === undefined || isEach(wanted, rows)
      ? []
      : [`receipts: [${rows.join(", ")}], not [${wanted.join(", ")}]`]),
    ...(expect.saw === undefined || texts.some((text) => expect.saw?.test(text))
      ? []
      : [`no result that the model saw matches ${expect.saw}: ${JSON.stringify(texts).slice(0, 500)}`]),
    ...(expect.hasOutcomes === true &&
    receipts.some(({ answered, outcome }) => answered === "ALLOW" && outcome?.status !== "done")
      ? ["a receipt of a call that ran does not have the outcome done"]
      : []),
    ...(expect.ended === undefined || expect.ended === ended.ended
      ? []
      : [`the run ended as ${ended.ended}, not ${expect.ended}`]),
  ];
}

/** Each payment that the model was told about is in the witness, and the other way round. */
function shownAgainstWitness({ witness, shown }: Ledgers): readonly string[] {
  // Some hosts show the model more than the tool's own text.
  const told = [
    ...new Map(
      shown.flatMap(({ results }) =>
        results.flatMap(({ call, text }) => {
          const amount = /(?:\b|\\n)paid ([\d.]+)\b/.exec(text)?.[1]; // some protocols show the result as JSON
          return amount === undefined ? [] : [[call, `pay ${amount}`] as const];
        }),
      ),
    ).values(),
  ].toSorted();
  const ran = witness.flatMap(({ what, at }) => (at === undefined ? [] : [what])).toSorted();
  // A sub-agent's results are in its own requests, so they are here too.
  return told.join() === ran.join() ? [] : [`the model was told of [${told.join(", ")}], and [${ran.join(", ")}] ran`];
}

/** Each payment that ran has an earlier receipt of its own with ALLOW, an enforcing mode and the same input. */
function witnessAgainstReceipts(driver: Driver, { witness, receipts }: Ledgers): readonly string[] {
  const free = receipts.filter(({ answered, mode }) => answered === "ALLOW" && mode !== "observe");
  return witness.flatMap(({ what, at, input }) => {
    const index = free.findIndex((receipt) =>
      at === undefined
        ? toolOf(driver, receipt.tool_name) === "shell"
        : [driver.tools.pay.gate, driver.tools.mcp.gate].includes(receipt.tool_name) &&
          JSON.stringify(receipt.tool_input) === JSON.stringify(input) &&
          receipt.at <= at,
    );
    if (index === -1) return [`"${what}" ran without a receipt of its own that allows it`];
    free.splice(index, 1);
    return [];
  });
}

function toolOf({ tools }: Driver, name: string): string {
  return Object.entries(tools).find(([, { gate }]) => gate === name)?.[0] ?? name;
}

/** Whether the texts match the patterns one to one. */
function isEach(patterns: readonly string[], texts: readonly string[]): boolean {
  const left = [...texts];
  return (
    patterns.length === texts.length &&
    patterns.every((pattern) => {
      const index = left.findIndex((text) => new RegExp(`^(?:${pattern})$`).test(text));
      if (index !== -1) left.splice(index, 1);
      return index !== -1;
    })
  );
}
