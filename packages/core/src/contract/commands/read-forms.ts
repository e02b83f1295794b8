import type { Verdict } from "../../wire/mod.ts";
import type { PartReader } from "../text/part-reader.ts";
import type { Span } from "../text/diagnostic.ts";
import { type YamlMap, type YamlNode, type YamlScalar } from "../text/yaml.ts";
import {
  effects,
  optionStyles,
  type CommandEffect,
  type Form,
  type FormException,
  type FormOption,
  type FormsDocument,
  type Kind,
  type OptionStyle,
  type WordPosition,
  type WrittenProgram,
} from "./form.ts";
import { isProblem, parseOption, parsePosition, parseShape, type ShapeProblem } from "./shapes.ts";

/** Reads the parts that a pack and a contract's `commands` share. */
export function readTable(reader: PartReader, map: YamlMap, name: string): FormsDocument {
  const programs = reader.readNamedParts(map, "programs", (node, span) => readProgram(reader, node, span), false);
  const forms: Form[] = [];
  for (const node of reader.items(map, "forms")) {
    forms.push(...readForm(reader, { source: name, before: forms }, node));
  }
  return {
    name,
    forms,
    programs,
    generated: readList(reader, map, "generated").map(({ text }) => text),
    variables: reader.readTextList(map, "variables").map(({ text }) => text),
  };
}

function readProgram(reader: PartReader, node: YamlNode, span: Span): WrittenProgram | undefined {
  const map = reader.part(node, "program", "a program");
  if (map === undefined) return undefined;
  const written = reader.text(map, "style");
  const style = written?.text ?? "gnu";
  if (!(optionStyles as readonly string[]).includes(style))
    reader.report.add(
      "form",
      written?.span ?? span,
      `\`${style}\` is not a style of options`,
      `styles are ${optionStyles.join(", ")}`,
    );
  return {
    span,
    style: style as OptionStyle,
    options: readOptions(reader, map, "options", []),
    everywhere: readOptions(reader, map, "everywhere", []),
  };
}

interface FormPlace {
  /** The pack or contract. */
  readonly source: string;
  /** The forms above it, whose options it may take. */
  readonly before: readonly Form[];
}

/** A form for each spelling of its command: `[poetry show, uv tree]`, `python|python3 -m`. */
function readForm(reader: PartReader, { source, before }: FormPlace, node: YamlNode): readonly Form[] {
  const map = reader.part(node, "form", "a form");
  if (map === undefined) return [];
  const written = readList(reader, map, "run");
  if (written.length === 0)
    reader.report.add("missing", map.span, "a form has no `run:`", "name the program: `run: git status`");
  const rest = readFormWithoutRun(reader, { source, before }, map);
  const forms = written.flatMap(({ text, span }) => spellings(text).map((run) => ({ ...rest, run, span })));
  for (const form of forms) checkForm(reader, form, map);
  return forms;
}

function spellings(text: string): readonly (readonly string[])[] {
  let runs: readonly (readonly string[])[] = [[]];
  for (const word of text.trim().split(/\s+/))
    runs = runs.flatMap((run) => word.split("|").map((each) => [...run, each]));
  return runs;
}

function readFormWithoutRun(
  reader: PartReader,
  { source, before }: FormPlace,
  map: YamlMap,
): Omit<Form, "run" | "span"> {
  const does = new Set(readEffects(reader, map));
  const isUnseen =
    readWord(reader, map, ["writes", "unseen"], "name the files that it changes under `words`") !== undefined;
  const written = reader.verdict(reader.text(map, "verdict"));
  const verdict = written ?? impliedVerdict(does, isUnseen);
  const any = reader.text(map, "any");
  return {
    source,
    options: readOptions(reader, map, "options", before),
    words: readPositions(reader, map),
    refuses: readOptions(reader, map, "refuses", before),
    needs: readList(reader, map, "needs").map(({ text }) => text),
    marked: readOptions(reader, map, "marked", before),
    any: any && keepGood(reader, any, parseShape(any.text)),
    unless: readException(reader, map),
    does,
    isUnseen,
    starting: readWord(reader, map, ["patterns", "any", "code"], "leave it out if an option of the program does harm"),
    prints: readPrints(reader, map),
    verdict,
    reason: reader.text(map, "reason")?.text,
    examples: reader.readTextList(map, "examples").map(({ text }) => text),
    counterexamples: reader.readTextList(map, "counterexamples").map(({ text }) => text),
  };
}

/** The verdict of a form that does not state one. */
function impliedVerdict(does: ReadonlySet<CommandEffect>, isUnseen: boolean): Verdict {
  return isUnseen || does.has("sends") || does.has("destroys") ? "ESCALATE" : "ALLOW";
}

/** A form that is ALLOW names all that it permits; a stricter one says what would be lost. */
function checkForm(reader: PartReader, form: Form, map: YamlMap): void {
  const { run, words, verdict, reason, does } = form;
  const report: ReportForm = (key, message, hint) =>
    reader.report.add("form", map.entries.get(key)?.key.span ?? form.span, message, hint);
  const label = `the form \`${run.join(" ")}\``;
  if (run.some((word) => !/^[\w.+@:/[!-]+$/.test(word)))
    report(
      "run",
      `${label} has a word that is not plain`,
      "write the program and the words after it, such as `git stash list`",
    );
  if (does.size === 0)
    report("does", `${label} does not say what it does`, `write \`does: [reads]\`; it may have ${effects.join(", ")}`);
  if (verdict === "ALLOW") {
    for (const key of ["marked", "any", "unless"])
      if (map.entries.has(key))
        report(key, `${label} is ALLOW, so it has no \`${key}\``, "list what it permits under `options` and `words`");
    if (does.has("sends") || does.has("destroys"))
      report("verdict", `${label} sends or destroys, so it is not ALLOW`, "remove `verdict`");
  } else if (form.needs.length > 0) {
    report("needs", `${label} is ${verdict}, so it has no \`needs\``, "write the option under `marked`");
  } else if (run.some((word) => word.startsWith("-"))) {
    report("run", `${label} is ${verdict}, and has an option in \`run\``, "write the option under `marked`");
  } else if (reason === undefined) {
    report("run", `${label} is ${verdict}, so it needs a reason`, "say what would be lost or sent, under `reason:`");
  }
  const [odd] = /\{(?!(?:words|word\.[1-9]|option)\})[^}]*\}?/.exec(reason ?? "") ?? [];
  if (odd !== undefined)
    report("reason", `${label} has \`${odd}\` in its reason`, "it may have `{words}`, `{word.1}` and `{option}`");
  checkWords(report, label, form);
  const code = verdict === "ALLOW" ? codeKinds.find(([names]) => names.includes(run[0] ?? "")) : undefined;
  if (
    code !== undefined &&
    words.some(({ kind }, at) => kind === "TEXT" || kind === "NAME" || (kind === "ARGS" && at === 0))
  )
    report("words", `${label} permits any code, because \`${run[0]}\` runs its words`, code[1]);
  const anything = words.find(({ kind }) => kind === "ANY");
  if (anything !== undefined && !["echo", "printf"].includes(run[0] ?? ""))
    report("words", `${label} permits any word`, "only `echo` and `printf` have `ANY`");
}

type ReportForm = (key: string, message: string, hint: string) => void;

/** Programs whose words are code, and what to write for such a word. */
const codeKinds: readonly (readonly [names: readonly string[], hint: string])[] = [
  [["sed", "gsed"], "write `SED` for the script"],
  [["awk", "gawk", "mawk", "nawk"], "write `AWK` for the script"],
  [["jq", "gojq", "jaq"], "write `JQ` for the filter"],
  [
    ["sh", "bash", "dash", "zsh", "ksh", "ash", "fish"],
    "write `COMMAND`, or `reads LEAF` for a script of the workspace",
  ],
];

/** Kinds of words that never count as a file. */
const texts: ReadonlySet<Kind> = new Set(["TEXT", "NUMBER", "SED", "AWK", "JQ"]);

/** A file must not pass as a text, and a script not as a file. */
function checkWords(report: ReportForm, label: string, { options, words, needs }: Form): void {
  const at = words.findIndex(
    ({ kind, isOptional, isRepeated }) => kind !== undefined && texts.has(kind) && (isOptional || isRepeated),
  );
  if (at >= 0 && words.slice(at + 1).some(({ role }) => role !== undefined))
    report(
      "words",
      `${label} lets a file pass as a \`${words[at]?.kind ?? ""}\``,
      "write two forms, one of them with `needs`",
    );
  const scripts = options.filter(({ value }) => value?.kind !== undefined && ["SED", "AWK", "JQ"].includes(value.kind));
  const isScript = words[0]?.kind !== undefined && texts.has(words[0].kind);
  if (scripts.length > 0 && !isScript && !needs.some((name) => scripts.some(({ names }) => names.includes(name))))
    report("options", `${label} lets a script pass as a file`, `write \`needs: [${scripts[0]?.names[0] ?? ""}]\``);
  const unknown = needs.find((name) => !options.some(({ names }) => names.includes(name)));
  if (unknown !== undefined)
    report("needs", `${label} needs \`${unknown}\`, which is not under \`options\``, "list it there too");
}

function readEffects(reader: PartReader, map: YamlMap): readonly CommandEffect[] {
  return reader.texts(map, "does").flatMap(({ text, span }) => {
    const effect = effects.find((each) => each === text);
    if (effect !== undefined) return [effect];
    reader.report.add("form", span, `\`${text}\` is not an effect`, `effects are ${effects.join(", ")}`);
    return [];
  });
}

/** A key whose value is one of some words. */
function readWord<Word extends string>(
  reader: PartReader,
  map: YamlMap,
  [key, ...values]: readonly [key: string, ...values: readonly Word[]],
  hint: string,
): Word | undefined {
  const written = reader.text(map, key);
  const value = values.find((each) => each === written?.text);
  const said = values.map((each) => `\`${each}\``).join(" or ");
  if (written !== undefined && value === undefined)
    reader.report.add("form", written.span, `the value of \`${key}\` is ${said}`, hint);
  return value;
}

function readPrints(reader: PartReader, map: YamlMap): boolean | readonly string[] {
  const prints = reader.text(map, "prints");
  const [whole, options] = /^names(?: with (.+))?$/.exec(prints?.text ?? "") ?? [];
  if (prints !== undefined && whole === undefined)
    reader.report.add(
      "form",
      prints.span,
      "`prints` says `names`",
      "write `prints: names` or `prints: names with -l | --files`",
    );
  return options === undefined ? whole !== undefined : options.split("|").map((each) => each.trim());
}

/** A list, or one text with commas between its items. */
export function readList(reader: PartReader, map: YamlMap, key: string): readonly YamlScalar[] {
  const value = map.entries.get(key)?.value;
  if (value?.kind !== "scalar") return reader.texts(map, key);
  const items = value.text.split(",").map((text) => ({ ...value, text: text.trim(), value: text.trim() }));
  return items.filter(({ text }) => text !== "");
}

/** The options of a list. `like git log` takes the same list of a form above. */
function readOptions(
  reader: PartReader,
  map: YamlMap,
  key: "options" | "everywhere" | "refuses" | "marked",
  before: readonly Form[],
): readonly FormOption[] {
  return readList(reader, map, key).flatMap((scalar) => {
    const [, other] = /^like (.+)$/.exec(scalar.text) ?? [];
    if (other === undefined) return keepGood(reader, scalar, parseOption(scalar.text)) ?? [];
    const form = before.findLast(({ run, needs }) => run.join(" ") === other && needs.length === 0);
    if (form === undefined)
      reader.report.add(
        "form",
        scalar.span,
        `no form \`${other}\` is above this one`,
        "`like` takes the options of a form above",
      );
    return (key === "everywhere" ? undefined : form?.[key]) ?? [];
  });
}

function readPositions(reader: PartReader, map: YamlMap, key = "words"): readonly WordPosition[] {
  const items = readList(reader, map, key);
  const words = items.flatMap((scalar) => keepGood(reader, scalar, parsePosition(scalar.text)) ?? []);
  const at = words.findIndex(({ kind }) => kind === "ARGS" || kind === "COMMAND");
  if (at >= 0 && at < words.length - 1)
    reader.report.add(
      "form",
      items[at + 1]?.span ?? map.span,
      "a word follows all words",
      `put \`${words[at]?.kind ?? ""}\` last`,
    );
  return words;
}

function keepGood<Part extends object>(
  reader: PartReader,
  { span }: YamlScalar,
  part: Part | ShapeProblem,
): Part | undefined {
  if (!isProblem(part)) return part;
  reader.report.add("form", span, part.message, part.hint);
  return undefined;
}

function readException(reader: PartReader, map: YamlMap): FormException | undefined {
  const inner = reader.part(map.entries.get("unless")?.value, "exception", "`unless`");
  return inner && { options: readOptions(reader, inner, "options", []), words: readPositions(reader, inner) };
}
