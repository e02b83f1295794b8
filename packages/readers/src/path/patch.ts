import {
  type ContractFunction,
  EvaluationError,
  listType,
  recordType,
  string,
  type Value,
} from "../../../core/src/contract/function.ts";
import { readPath } from "./path.ts";

const filesMax = 500;
const names = listType(string, filesMax);

/** Patches in the format of coding agents, which starts with `*** Begin Patch`. */
export const patchFunctions: readonly ContractFunction[] = [
  {
    name: "patch",
    style: "function",
    parameters: ["string"],
    result: recordType({ files: names, adds: names, updates: names, deletes: names }),
    doc:
      "The files of a patch that coding agents write (`*** Begin Patch`): `adds`, `updates`, `deletes`, and all of them in " +
      "`files`. A moved file is in `deletes` by its old name and in `adds` by its new one. A path is as written, and each " +
      "one that `path` refuses is an error. So is a line that two agents could read differently.",
    examples: [
      ['patch("*** Begin Patch\\n*** Delete File: src/a.ts\\n*** End Patch").files', '["src/a.ts"]'],
      [
        'patch("*** Begin Patch\\n*** Update File: a.ts\\n*** Move to: b.ts\\n@@\\n-x\\n+y\\n*** End Patch").adds',
        '["b.ts"]',
      ],
    ],
    load: () => Promise.resolve(), // it needs no package; a decision parses each text once
    cost: ([text]) => 16 + ((text as string).length >> 2),
    run: ([text]) => readPatch(text as string),
  },
];

type PatchAction = "Add" | "Update" | "Delete";

/** @throws {EvaluationError} if Codex, Copilot CLI and opencode could change different files */
function readPatch(text: string): Value {
  const lines = text.replace(/\n$/, "").split("\n");
  if (lines[0] !== "*** Begin Patch") refuse("its first line is not `*** Begin Patch`");
  if (lines.at(-1) !== "*** End Patch") refuse("its last line is not `*** End Patch`");
  const found: Record<PatchAction, string[]> = { Add: [], Update: [], Delete: [] };
  let change: PatchAction | undefined;
  for (const [index, line] of lines.entries()) {
    if (index === 0 || index === lines.length - 1) continue;
    const [, kind, path = ""] = /^\*\*\* (Add|Update|Delete) File: (.*)$/s.exec(line) ?? [];
    const [, target] = /^\*\*\* Move to: (.*)$/s.exec(line) ?? [];
    if (kind !== undefined) found[(change = kind as PatchAction)].push(checkPath(path));
    else if (target !== undefined && lines[index - 1]?.startsWith("*** Update File: ")) {
      found.Delete.push(found.Update.pop() ?? "");
      found.Add.push(checkPath(target));
    } else if (change === undefined || !isContent(line, change)) refuse(`line ${index + 1} has no clear meaning`);
  }
  const { Add, Update, Delete } = found;
  const files = [...new Set([...Add, ...Update, ...Delete])];
  if (files.length === 0) refuse("it changes no file");
  if (files.length > filesMax) refuse(`it changes over ${filesMax} files`);
  return new Map([
    ["files", files],
    ["adds", Add],
    ["updates", Update],
    ["deletes", Delete],
  ]);
}

/** Is it a line of a file, and nothing else for any of the agents? */
function isContent(line: string, change: PatchAction): boolean {
  if (line === "*** End of File") return change === "Update";
  return contents[change].test(line) && !mayBeName.test(line);
}

/** A carriage return within a line ends it for Copilot CLI. */
const contents: Readonly<Record<PatchAction, RegExp>> = {
  Add: /^\+[^\r]*\r?$/,
  Update: /^(?:(?:[ +-]|@@)[^\r]*)?\r?$/,
  Delete: /(?!)/,
};

/** Some agents look for `***` behind blanks. Text such as `***bold***` starts no name. */
const mayBeName = /^[\p{White_Space}\p{C}]*\*{3}(?:[\p{White_Space}\p{C}]|$)/u;

function checkPath(path: string): string {
  readPath(path);
  return path;
}

function refuse(why: string): never {
  throw new EvaluationError(`a patch that is in doubt: ${why}`);
}
