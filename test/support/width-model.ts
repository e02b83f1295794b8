/**
 * A naive model of forms for the tests of widths: it compares two calls piece by piece, as a person would with a pencil, and knows
 * nothing of shells or tables. A call is drawn from parts, so no text is read.
 */
import type { Dice } from "./campaign/random.ts";

/** The table of commands that the drawn calls are for. */
export const widthForms = `
forms:
  - { run: git push, words: [NAME ?, REF *], does: sends, reason: sends commits }
  - { run: git push, marked: [--force, -f], does: [sends, destroys], reason: overwrites }
  - { run: git show, options: [-n NUMBER, --author TEXT, -C enters FOLDER], words: [REF *], does: reads }
  - { run: git commit, options: [-m | --message TEXT, -a, -F reads FILE], words: writes PATHSPEC *, does: [writes, runs] }
  - { run: cat, words: reads FILE *, does: reads }
  - { run: grep, options: [-n], words: [PATTERN, reads FILE +], does: reads }
  - { run: npm run, words: TASK | all, does: runs }
  - { run: timeout, words: [NUMBER, COMMAND], does: runs }
  - { run: restart, words: [NAME, NUMBER ?], does: runs, verdict: ESCALATE, reason: restarts a service }
  - { run: fetch, words: [URL, NAME ?], does: sends, reason: asks another machine }
  - { run: run-code, words: [AWK], does: runs, verdict: ESCALATE, reason: runs code }
  - { run: docker exec, does: runs, verdict: ESCALATE, reason: runs a command }
  - { run: rm, words: writes FILE +, does: destroys, reason: deletes }
  - { run: apply, does: writes, writes: unseen, reason: changes files that the patch names }
  - { run: copy, words: [reads FILE, writes FILE], does: writes }
  - { run: python, words: [reads LEAF], does: runs }
  - { run: export, words: TEXT +, does: reads }
  - { run: cd, words: enters FOLDER, does: reads }
`;

export type WidthName = "files" | "same" | "texts";

type DrawnKind = "FILE" | "NAME" | "NUMBER" | "PATHSPEC" | "PATTERN" | "REF" | "TASK" | "TEXT";

interface DrawnWord {
  readonly text: string;
  /** The kind of its position; undefined for a word that stays. */
  readonly kind?: DrawnKind;
}

interface DrawnCommand {
  /** What stands before it: an assignment or a command that runs it. */
  readonly before: readonly string[];
  readonly words: readonly DrawnWord[];
  readonly redirect: string;
}

/** Commands with signs between them. */
export interface DrawnCall {
  readonly commands: readonly DrawnCommand[];
  readonly signs: readonly string[];
  /** What stands around them, with `*` for the commands. */
  readonly around: string;
}

const programs: readonly (readonly DrawnWord[])[] = [
  [{ text: "restart" }, { text: "web", kind: "NAME" }],
  [{ text: "restart" }, { text: "web", kind: "NAME" }, { text: "5", kind: "NUMBER" }],
  [{ text: "git" }, { text: "push" }, { text: "origin", kind: "NAME" }, { text: "main" }],
  [{ text: "git" }, { text: "show" }, { text: "-n" }, { text: "5", kind: "NUMBER" }, { text: "HEAD", kind: "REF" }],
  [{ text: "git" }, { text: "commit" }, { text: "-m" }, { text: "a text", kind: "TEXT" }],
  [
    { text: "git" },
    { text: "commit" },
    { text: "-m" },
    { text: "x", kind: "TEXT" },
    { text: "src/a.ts", kind: "PATHSPEC" },
  ],
  [{ text: "cat" }, { text: "a.txt", kind: "FILE" }],
  [{ text: "grep" }, { text: "-n" }, { text: "x y", kind: "PATTERN" }, { text: "src/a.ts", kind: "FILE" }],
  [{ text: "npm" }, { text: "run" }, { text: "test", kind: "TASK" }],
  [{ text: "cat" }],
  [{ text: "docker" }, { text: "exec" }, { text: "web" }, { text: "sh" }],
  [{ text: "unlisted" }, { text: "x" }],
  [{ text: "rm" }, { text: "a.txt" }],
];

/** Words of each kind, and others that a later call may bring. */
const wordsOf: Readonly<Record<DrawnKind, readonly string[]>> = {
  FILE: ["b.txt", "src/b.ts", "./test/c.test.ts", "README.md"],
  NAME: ["api-2", "db_1", "origin", "v1.2"],
  NUMBER: ["7", "60", "1.5"],
  PATHSPEC: ["b.txt", "src/b.ts", "docs"],
  PATTERN: ["x1", "a b", "^x$", "@x"],
  REF: ["main", "v1.2", "HEAD~2", "feature/x"],
  TASK: ["build", "test:unit", "lint"],
  TEXT: ["fix", "feat: a (b); c", "two\nlines", "costs $5"],
};
const others =
  "-f|--force|.env|src/.env|../x|/etc/passwd|~/x|+main|:main|ext::sh|https://h.example/x|a:b|@x|*|src/*.ts|deploy||-|--|a,b|{a,b}";
const hostile = others.split("|");
/** Texts that a shell fills in, which stand as they are. */
const runTime = ["$(id)", "$X", "`id`", '"$(cat .env)"', "<(id)", "$'a'"];
const signs = [" && ", " | ", " ; ", " || ", "\n", " & ", " |& "];
const befores = ["X=1", "timeout 5", "sudo", "unlisted", "timeout 6", "env"];
const redirects = [" > b.txt", " 2>/dev/null", " < a.txt", " >> src/b.ts", " 2>&1"];
const arounds = [
  "(*)",
  "{ *; }",
  "* &",
  "for f in a b; do *; done",
  "if *; then cat; fi",
  "! *",
  "* # x",
  "cd src && *",
  "cat <<E\n*\nE",
];

export function drawCall(dice: Dice): DrawnCall {
  const count = dice.oneOf([1, 1, 2, 3]);
  const commands = Array.from({ length: count }, () => drawCommand(dice));
  return {
    commands,
    signs: commands.slice(1).map(() => dice.oneOf(signs)),
    around: dice.roll() < 0.15 ? dice.oneOf(arounds) : "*",
  };
}

function drawCommand(dice: Dice): DrawnCommand {
  // The last three are rare, since nothing may differ beside them.
  const words = dice.roll() < 0.1 ? dice.oneOf(programs) : dice.oneOf(programs.slice(0, -3));
  return {
    before: dice.roll() < 0.15 ? [dice.oneOf(befores)] : [],
    words,
    redirect: dice.roll() < 0.15 ? dice.oneOf(redirects) : "",
  };
}

/** Draws a later call: the same one with up to three changes, most of them of words. */
export function drawLater(source: DrawnCall, dice: Dice): DrawnCall {
  let later = source;
  for (let left = dice.oneOf([0, 1, 1, 2, 3]); left > 0; left -= 1) later = changed(later, dice);
  return later;
}

function changed(call: DrawnCall, dice: Dice): DrawnCall {
  const at = Math.floor(dice.roll() * call.commands.length);
  const change = (edit: (command: DrawnCommand) => DrawnCommand): DrawnCall => ({
    ...call,
    commands: call.commands.map((command, index) => (index === at ? edit(command) : command)),
  });
  const word = (edit: (word: DrawnWord) => readonly DrawnWord[]): DrawnCall =>
    change((command) => {
      const place = Math.floor(dice.roll() * command.words.length);
      return { ...command, words: command.words.flatMap((each, index) => (index === place ? edit(each) : [each])) };
    });
  const ofKind = (): DrawnCall =>
    change((command) => ({
      ...command,
      words: command.words.map((each) =>
        each.kind === undefined ? each : { ...each, text: dice.oneOf(wordsOf[each.kind]) },
      ),
    }));
  const edits = {
    ofKind,
    hostile: () => word((each) => [{ ...each, text: dice.oneOf(hostile) }]),
    runTime: () => word(() => [{ text: dice.oneOf(runTime) }]),
    added: () => word((each) => [each, { text: dice.oneOf([...hostile, ...wordsOf.NAME]) }]),
    removed: () => word(() => []),
    before: () => change((command) => ({ ...command, before: [...command.before, dice.oneOf(befores)] })),
    redirect: () => change((command) => ({ ...command, redirect: command.redirect + dice.oneOf(redirects) })),
    program: () => change((command) => ({ ...command, words: dice.oneOf(programs) })),
    sign: () => ({ ...call, signs: call.signs.map(() => dice.oneOf(signs)) }),
    more: () => ({
      ...call,
      commands: [...call.commands, drawCommand(dice)],
      signs: [...call.signs, dice.oneOf(signs)],
    }),
    around: () => ({ ...call, around: dice.oneOf(arounds) }),
  };
  const weights = {
    ofKind: 12,
    hostile: 4,
    runTime: 1,
    added: 1,
    removed: 1,
    before: 1,
    redirect: 1,
    program: 1,
    sign: 1,
  };
  return edits[dice.weighted({ ...weights, more: 1, around: 1 })]();
}

export function render({ commands, signs: between, around }: DrawnCall): string {
  const texts = commands.map(renderCommand);
  return around.replace("*", () => texts.map((text, at) => text + (between[at] ?? "")).join(""));
}

function renderCommand({ before, words, redirect }: DrawnCommand): string {
  return [...before, ...words.map(({ text }) => quoted(text))].join(" ") + redirect;
}

function quoted(text: string): string {
  return runTime.includes(text) || /^[\w./:@+=~*,{}-]+$/.test(text) ? text : `'${text}'`;
}

const texts: readonly DrawnKind[] = ["NAME", "NUMBER", "PATTERN", "TASK", "TEXT"];
const kindsOf: Readonly<Record<WidthName, readonly DrawnKind[]>> = {
  same: [],
  texts,
  files: [...texts, "FILE", "REF"],
};

/** May the later call be of the form of the source? A word has the kind that the source has at its place. */
export function isOfForm(source: DrawnCall, later: DrawnCall, width: WidthName): boolean {
  const kindAt = (at: number, place: number): DrawnKind | undefined => source.commands[at]?.words[place]?.kind;
  return render(source) === render(later) || pencilled(source, width, kindAt) === pencilled(later, width, kindAt);
}

/** The text of a call with a hole for each word that may differ. */
function pencilled(
  call: DrawnCall,
  width: WidthName,
  kindAt: (at: number, place: number) => DrawnKind | undefined,
): string {
  const runs = call.commands.map(({ words, before }) => [...before, ...words.map(({ text }) => text)].join(" "));
  const isAny = (pattern: RegExp): boolean => runs.some((run) => pattern.test(run));
  const kept = call.commands.map(({ redirect }) => redirect.replaceAll(/ 2>(?:\/dev\/null|&1)/g, "")).join("");
  const isKept = isAny(/\bX=1/) || kept !== "" || /&$|for |<</.test(call.around) || call.signs.includes(" & ");
  const isPiped = call.signs.some((sign) => / \|&? /.test(sign)) && isAny(/restart|push|commit|npm|timeout/);
  const isUnlisted = isAny(/\b(?:docker|unlisted|sudo|rm)\b/);
  const kinds = isKept || isPiped || isUnlisted ? [] : kindsOf[width];
  const allowed = isAny(/git push/) ? kinds.filter((kind) => kind === "NAME") : kinds;
  const pieces = call.commands.map(({ words, ...rest }, at) => ({
    ...rest,
    words: words.map(({ text }, place) => {
      const kind = kindAt(at, place);
      return kind !== undefined && allowed.includes(kind) && fits(text, kind) ? { kind } : text;
    }),
  }));
  return JSON.stringify([pieces, call.signs, call.around]);
}

function fits(text: string, kind: DrawnKind): boolean {
  if (runTime.includes(text)) return false;
  switch (kind) {
    case "FILE":
    case "PATHSPEC":
      return !/^[-/~+@:]|^$|(?:^|\/)\.[^/]|[*{,:]/.test(text);
    case "NAME":
      return /^\w[\w.-]*$/.test(text);
    case "REF":
      return /^[\w@][\w.@/~-]*$/.test(text);
    case "TASK":
    case "NUMBER":
      return /^\w[\w.:/~-]*$/.test(text);
    case "PATTERN":
    case "TEXT":
      return !/^[.~*{]/.test(text);
    default:
      return kind satisfies never;
  }
}
