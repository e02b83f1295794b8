import { didYouMean } from "../../wire/mod.ts";
import type { Report, SourceFile } from "../text/diagnostic.ts";
import { PartReader } from "../text/part-reader.ts";
import { readYaml, type YamlMap, type YamlNode, type YamlScalar } from "../text/yaml.ts";
import {
  nameOfForm,
  type CommandsDocument,
  type CommandTable,
  type Form,
  type FormsDocument,
  type PackDocument,
} from "./form.ts";
import { readList, readTable } from "./read-forms.ts";

/** Reads the `commands` of a contract; undefined if they are not a map. */
export function readCommands(node: YamlNode, name: string, report: Report): CommandsDocument | undefined {
  const reader = new PartReader(report);
  const map = reader.part(node, "commands", "`commands`");
  return map && readMap(reader, map, name);
}

/** Reads a pack's text. */
export function readPack(file: SourceFile, report: Report): PackDocument | undefined {
  const reader = new PartReader(report);
  const root = reader.part(readYaml(file, report), "pack", "a pack");
  if (root === undefined) return undefined;
  const table = readTable(reader, root, reader.name(root, "pack")?.text ?? "");
  return { ...table, limits: reader.readNamedParts(root, "limits", (node) => node) };
}

function readMap(reader: PartReader, map: YamlMap, name: string): CommandsDocument {
  const weaken = reader.items(map, "weaken").flatMap((node) => {
    const inner = reader.part(node, "weaker", "a form under `weaken`");
    const because = inner && reader.requireText(inner, "because", "a form under `weaken`");
    const form = inner && reader.requireText(inner, "form", "a form under `weaken`");
    return form === undefined ? [] : [{ form, because: because?.text ?? "" }];
  });
  return {
    from: readList(reader, map, "from"),
    without: reader.readTextList(map, "without"),
    weaken,
    own: readTable(reader, map, name),
  };
}

/** Joins the packs and the own forms of a contract. Problems go to the report. */
export function linkCommands(document: CommandsDocument, packs: readonly PackDocument[], report: Report): CommandTable {
  const tables = [...packs, document.own];
  const taken = packs.flatMap(({ forms }) => forms);
  const isTaken = leaveOut(document.without, taken, { report, isPermitted: true });
  const isWeakened = leaveOut(
    document.weaken.map(({ form }) => form),
    taken,
    { report, isPermitted: false },
  );
  return {
    forms: [...taken.filter((form) => !isTaken(form) && !isWeakened(form)), ...document.own.forms],
    programs: joinPrograms(tables, report),
    generated: tables.flatMap(({ generated }) => generated),
    variables: new Set(tables.flatMap(({ variables }) => variables)),
    weakened: document.weaken.map(({ form, because }) => ({ form: form.text, because })),
  };
}

/** Each program is described in one table, so that no pack changes how the forms of another one are read. */
function joinPrograms(tables: readonly FormsDocument[], report: Report): CommandTable["programs"] {
  const owners = new Map<string, FormsDocument>();
  const joined = tables.flatMap((table) =>
    [...table.programs].map(([program, { span, ...shape }]) => {
      const owner = owners.getOrInsert(program, table);
      if (owner !== table)
        report.add(
          "form",
          span,
          `\`${owner.name}\` describes the program \`${program}\` already`,
          "leave it out here, because its options and style hold for the forms of all packs",
        );
      return [program, shape] as const;
    }),
  );
  return new Map(joined);
}

interface LeavingOut {
  readonly report: Report;
  /** Does it leave out forms that are ALLOW? */
  readonly isPermitted: boolean;
}

/** The test for forms that a contract leaves out of its packs, by their names. */
function leaveOut(
  names: readonly YamlScalar[],
  forms: readonly Form[],
  { report, isPermitted }: LeavingOut,
): (form: Form) => boolean {
  const candidates = forms.filter(({ verdict }) => (verdict === "ALLOW") === isPermitted);
  for (const { text, span } of names) {
    if (candidates.some((form) => isNamed(form, text))) continue;
    const isOther = forms.some((form) => isNamed(form, text));
    const hint = isOther
      ? isPermitted
        ? "it is stricter than ALLOW: write it under `weaken`, with `because`"
        : "it is ALLOW: write it under `without`"
      : didYouMean(text, candidates.map(nameOfForm), "`svc-gate commands` prints the forms");
    report.add("form", span, `no such form \`${text}\` is in the packs`, hint);
  }
  const texts = names.map(({ text }) => text);
  return (form) => candidates.includes(form) && texts.some((text) => isNamed(form, text));
}

function isNamed(form: Form, name: string): boolean {
  return nameOfForm(form) === name || form.run.join(" ") === name;
}

const names = new Map<string, string>();

/** A name for the table in this process. Two tables have one name only if every call gets the same answer. */
export function nameOfTable({ forms, programs, generated, variables }: CommandTable): string {
  const plain = forms.map((form) => ({ ...form, span: undefined, does: [...form.does] }));
  const text = JSON.stringify([plain, [...programs], generated, [...variables]]);
  return names.getOrInsertComputed(text, () => `table ${names.size + 1}`);
}
