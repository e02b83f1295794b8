/** Writes command lines that a form of a pack may list: some fit it, and some have words that it must not take. */
import type {
  Form,
  FormOption,
  ProgramShape,
  WordShape,
} from "../../../../packages/core/src/contract/commands/form.ts";
import type { Dice } from "../../campaign/random.ts";

/** Words for each kind. The fixture has these files, folders and branches; `new` is free. */
const words: Readonly<Record<string, readonly string[]>> = {
  FILE: ["a.txt", "src/c.txt", "src/a.ts", "src/*.ts", "./src/*.txt", "data.json", "none.txt"],
  PATH: ["a.txt", "scratch.txt", "new", "src/new.ts", "src", "none/new"],
  LEAF: ["a.txt", "src/a.ts", "new.txt"],
  LOCAL: ["./src", "./a.txt", "."],
  FOLDER: ["src", "."],
  TREE: ["src", "src/a.ts", "a.txt"],
  PATHSPEC: ["a.txt", "src", "src/*.ts", "none.txt"],
  OBJECT: ["HEAD:a.txt", "HEAD:src/a.ts"],
  REF: ["HEAD", "main", "topic", "HEAD~1", "v1", "newbranch"],
  GENERATED: ["dist", "node_modules", "dist/x.js"],
  INCLUDE: ["'*.ts'", "'*.js'"],
  ENDING: ["ts"],
  TEXT: ["one", "'two words'", "x=1", "%s", "'%(refname)'"],
  NUMBER: ["1", "2", "10"],
  NAME: ["main", "one", "x"],
  PATTERN: ["one", "@one", "'x y'"],
  PACKAGE: ["left-pad", "@types/node", "./src"],
  TASK: ["test", "lint:fix", "unit-test"],
  PORT: [":3000"],
  SED: ["s/one/two/", "1d", "'2p'", "'$!N'"],
  AWK: ["'{print $1}'", "'/one/'", "'{ n += NF } END { print n }'"],
  JQ: [".", ".a", "'.[]?'"],
  COMMAND: ["ls", "'cat' a.txt"],
  ANY: ["one", "'two words'"],
};

/** Words that lead outside, to secrets, or look like options. A form that takes one of them must not be ALLOW for it. */
const hostile: readonly string[] = [
  ".env",
  "../outside/secret",
  "/etc/passwd",
  "~/secret",
  "-delete",
  "--output=precious.txt",
  "-oprecious.txt",
  ".ssh/id",
  "./",
  "*",
  "@a.txt",
  "precious.txt",
  "src/../precious.txt",
  "'x; pwn'",
  "$(pwn)",
];

const hostileShare = 0.12;

/** @returns undefined if a piece of the form cannot be written */
export function textOf(form: Form, program: ProgramShape | undefined, dice: Dice): string | undefined {
  const wordFor = (shape: WordShape): string | undefined => {
    if (dice.roll() < hostileShare) return dice.oneOf(hostile);
    if (shape.kind !== undefined) return words[shape.kind] && dice.oneOf(words[shape.kind] ?? []);
    return shape.texts.length === 0 ? undefined : quoted(dice.oneOf(shape.texts));
  };
  const pieces: string[] = [];
  for (const option of chosen(form, program, dice)) {
    const text = optionText(option, dice, wordFor);
    if (text === undefined) return undefined;
    pieces.push(text);
  }
  for (const position of form.words) {
    const { isOptional, isRepeated } = position;
    const least = isOptional ? 0 : 1;
    const count = isRepeated ? least + Math.floor(dice.roll() * 2) : isOptional && dice.roll() < 0.4 ? 0 : 1;
    for (let at = 0; at < count; at += 1) {
      const word = wordFor(position);
      if (word === undefined) return undefined;
      pieces.push(word);
    }
  }
  const [name = "", ...rest] = form.run;
  return [name, ...rest, ...pieces].join(" ");
}

/** An option that the form needs, and up to two others. */
function chosen(form: Form, program: ProgramShape | undefined, dice: Dice): readonly FormOption[] {
  const needed = form.options.filter(({ names }) => names.some((name) => form.needs.includes(name)));
  const others = [...form.options, ...(program?.everywhere ?? [])];
  const some = others.length === 0 ? [] : Array.from({ length: Math.floor(dice.roll() * 3) }, () => dice.oneOf(others));
  return [...(needed.length === 0 ? [] : [dice.oneOf(needed)]), ...some];
}

function optionText(
  { names, value, isOptional }: FormOption,
  dice: Dice,
  wordFor: (shape: WordShape) => string | undefined,
): string | undefined {
  const name = dice.oneOf(names) === "-NUMBER" ? "-3" : dice.oneOf(names.filter((each) => each !== "-NUMBER"));
  if (name === undefined) return undefined;
  if (value === undefined || (isOptional && dice.roll() < 0.5)) return quoted(name);
  const word = wordFor(value);
  if (word === undefined) return undefined;
  if (isOptional) return name.startsWith("--") ? `${name}=${word}` : `${name}${word}`;
  return name.startsWith("--") && dice.roll() < 0.4 ? `${name}=${word}` : `${name} ${word}`;
}

function quoted(text: string): string {
  return /^[\w.,:/@+=%-]+$/.test(text) ? text : `'${text}'`;
}
