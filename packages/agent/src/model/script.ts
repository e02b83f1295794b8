/** What the scripted model says. A script is data, so that a test and a person can read what the model makes the host do. */

/** A tool call. `arguments` is text, so that a script can send JSON that ends too early or repeats a member. */
export interface ScriptedCall {
  readonly tool: string;
  readonly arguments: string;
}

/** One answer of the model: tool calls of one batch, or a text. A text ends the run of most hosts. */
export type ScriptedTurn = readonly ScriptedCall[] | string;

/** Turns by the name that the user's text has as `[[NAME]]`. */
export type Scripts = Readonly<Record<string, readonly ScriptedTurn[]>>;

/** The result of a tool as a request shows it to the model. */
export interface ToolResult {
  /** The id of the call, or the tool's name in a protocol without ids. */
  readonly call: string;
  readonly text: string;
}

/** A message of any protocol. */
export interface ModelMessage {
  readonly from: "user" | "model";
  /** The text of a person, without results of tools. */
  readonly text: string;
  readonly results: readonly ToolResult[];
}

/** Where in which script a request is. */
export interface ScriptPosition {
  /** Undefined if no text of the user has a marker. */
  readonly script: string | undefined;
  readonly turn: number;
}

const marker = /\[\[([\w.-]+)\]\]/g;

/**
 * Finds the position in the script by the last marker in the user's texts and the number of model turns after it. So a
 * repeated request gets the same answer, and a sub-agent with a marker of its own has its own script.
 */
export function findPosition(messages: readonly ModelMessage[]): ScriptPosition {
  let position: ScriptPosition = { script: undefined, turn: 0 };
  let before: ModelMessage["from"] = "user";
  for (const { from, text } of messages) {
    const name = from === "user" ? [...text.matchAll(marker)].at(-1)?.[1] : undefined;
    if (name !== undefined) position = { script: name, turn: 0 };
    // Some protocols send one message for each call of a batch.
    else if (from === "model" && before !== "model") position = { ...position, turn: position.turn + 1 };
    before = from;
  }
  return position;
}

/** Returns the turn at that position. A model without a script, or at its end, says a text and calls nothing. */
export function turnAt(scripts: Scripts, { script, turn }: ScriptPosition): ScriptedTurn {
  if (script === undefined) return "This conversation has no script.";
  const turns = Object.hasOwn(scripts, script) ? scripts[script] : undefined;
  return turns === undefined ? `The script ${script} does not exist.` : (turns[turn] ?? "The script has ended.");
}

/**
 * Fills `<<PATTERN>>` in arguments with what the pattern's group matches in the latest result that has it, or with 0. So
 * a script can use an id that the host made.
 */
export function fillTurn(turn: ScriptedTurn, results: readonly ToolResult[]): ScriptedTurn {
  if (typeof turn === "string") return turn;
  const findMatch = (pattern: string): string =>
    results.map(({ text }) => new RegExp(pattern).exec(text)?.[1]).findLast((each) => each !== undefined) ?? "0";
  return turn.map(({ tool, arguments: input }) => ({
    tool,
    arguments: input.replaceAll(/<<(.+?)>>/g, (_, pattern: string) => findMatch(pattern)),
  }));
}
