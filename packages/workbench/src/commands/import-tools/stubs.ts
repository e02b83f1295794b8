import { BadInput } from "../../../../gate/src/cli/mod.ts";
import { renderDiagnostic } from "../../../../readers/src/contract.ts";
import type { Json } from "../../../../core/src/wire/mod.ts";
import { layOut } from "../fmt/layout.ts";
import type { ImportSource } from "./source.ts";
import type { SourceTool } from "./source-tool.ts";
import { toSubset, type SchemaNote } from "./subset.ts";
import { yamlFlow, yamlText } from "./yaml-flow.ts";

/** A tool as a contract would list it. */
export interface Stub {
  readonly name: string;
  readonly summary: string;
  readonly input: Json;
  /** The parts of the source's schema that the contract does not express. */
  readonly notes: readonly SchemaNote[];
}

const summaryCharactersMax = 200;

export function stubsOf({ tools }: ImportSource): readonly Stub[] {
  return tools.map(({ name, description, input, root, note }: SourceTool) => {
    const { schema, notes } = toSubset(input, root);
    const all = note === undefined ? notes : [{ at: "input", text: note }, ...notes];
    return { name, summary: summaryOf(description), input: schema, notes: all };
  });
}

/** A server's description of its tool is quoted, on one line and bounded: nobody follows it as an instruction. */
function summaryOf(description: string): string {
  const words = description
    .slice(0, 4 * summaryCharactersMax)
    .replaceAll(/\s+/g, " ")
    .trim();
  const characters = Array.from(words);
  return characters.length > summaryCharactersMax ? `${characters.slice(0, summaryCharactersMax).join("")}…` : words;
}

/** A contract of stubs: every tool is listed with its schema, and every call is refused until somebody adds rules. */
export function contractOf(name: string, stubs: readonly Stub[], host?: string): string {
  const head = [
    ...(host === undefined ? [] : [`# The tools that ${host} offers its model.`]),
    "# Tools as their source describes them. Summaries are the source's words, not the gate's.",
    "# Every call is refused until you replace `otherwise: BLOCK`, or write rules.",
    "# Undeclared members are refused if the source does not mention them.",
    `contract: ${name}`,
    stubs.length === 0 ? "tools: {}" : "tools:",
  ];
  const text = [...head, ...stubs.flatMap(stubLines), ""].join("\n");
  const laidOut = layOut({ name, text });
  if (laidOut.ok) return laidOut.value;
  const isTooLarge = laidOut.problem.every(({ code }) => code === "too-large");
  if (isTooLarge) throw new BadInput(`a contract of these ${stubs.length} tools is too large: import fewer of them`);
  throw new Error(`stubs that are not YAML: ${laidOut.problem.map(renderDiagnostic).join("\n")}`);
}

function stubLines({ name, summary, input, notes }: Stub): readonly string[] {
  return [
    ...notes.map((note) => `  # ${noteText(note)}`),
    `  ${yamlText(name)}:`,
    ...(summary === "" ? [] : [`    summary: ${yamlText(summary)}`]),
    `    input: ${yamlFlow(input)}`,
    "    otherwise: BLOCK",
  ];
}

/** Names of members come from the source, so they are escaped and cannot end a line. */
export function noteText({ at, text }: SchemaNote): string {
  const path = yamlText(at).slice(1, -1);
  return `${Array.from(path).slice(0, 80).join("")}: ${text}`;
}
