import { readYaml, Report, toJson, type Diagnostic, type SourceFile } from "../../../../readers/src/contract.ts";
import { documentKeys, spellValue } from "../../../../readers/src/ir.ts";
import { bad, good, type Result } from "../../../../core/src/wire/mod.ts";
import { arrange } from "./arrange.ts";
import { commentsOf } from "./comments.ts";
import { print, type Style } from "./print.ts";

/**
 * Formats a contract, a mandate or a test file: two spaces, parts in their order, braces if they fit into 120 columns,
 * quotes only if they are needed. The meaning and every comment stay the same.
 *
 * @returns the text, or the problems of the YAML
 */
export function layOut(source: SourceFile): Result<string, readonly Diagnostic[]> {
  const report = new Report();
  const root = readYaml(source, report);
  if (root === undefined || report.size > 0) return bad(report.sorted([source]));
  const keys = root.kind === "map" ? [...root.entries.keys()] : [];
  const text = print(arrange(root), styleOf(keys));
  const after = readYaml({ name: source.name, text }, report);
  const isSame = after !== undefined && spellValue(toJson(after)) === spellValue(toJson(root));
  if (isSame && commentTexts(text) === commentTexts(source.text)) return good(text);
  report.add("yaml", root.span, "it cannot be formatted without changing its meaning", "write it in a simpler way");
  return bad(report.sorted([source]));
}

function commentTexts(text: string): string {
  const texts = commentsOf(text).map((comment) => comment.text);
  return texts.toSorted().join("\n");
}

function styleOf(keys: readonly string[]): Style {
  if (keys.includes("contract") && !keys.includes("cases")) return contractStyle;
  if (keys.includes("pack")) return packStyle;
  if (keys.includes("mandate") && !keys.includes("cases")) return mandateStyle;
  return { order: () => undefined, isAiry: (path) => path.join(".") === "cases" };
}

const contractStyle: Style = {
  isAiry: (path) => path.length === 0 || path.join(".") === "rules",
  order: ([part, name, inner, ...deeper]) => {
    if (part === undefined) return documentKeys.contract;
    if (part === "commands") return orderOfCommands(name, inner, deeper);
    if (part === "requires") return name === "*" && inner === undefined ? documentKeys.requirement : undefined;
    if (name === undefined || deeper.length > 1) return undefined;
    if (inner === undefined)
      return new Map<string, readonly string[]>([
        ["tools", documentKeys.tool],
        ["counters", documentKeys.counter],
        ["rules", documentKeys.rule],
        ["limits", documentKeys.limit],
      ]).get(part);
    if (part !== "tools") return undefined;
    if (inner === "otherwise" && deeper.length === 0) return documentKeys.outcome;
    return inner === "requires" && deeper[0] === "*" ? documentKeys.requirement : undefined;
  },
};

function orderOfCommands(
  name: string | undefined,
  inner: string | undefined,
  deeper: readonly string[],
): readonly string[] | undefined {
  if (name === undefined) return documentKeys.commands;
  if (inner === undefined || deeper.length > 0) return undefined;
  const items = { forms: documentKeys.form, weaken: documentKeys.weaker, programs: documentKeys.program };
  return Object.entries(items).find(([key]) => key === name)?.[1];
}

const packStyle: Style = {
  isAiry: (path) => path.length === 0,
  order: ([part, name, inner]) => {
    if (part === undefined) return documentKeys.pack;
    if (name === undefined) return undefined;
    if (part === "programs" && inner === undefined) return documentKeys.program;
    return part === "forms" && inner === undefined ? documentKeys.form : undefined;
  },
};

const mandateStyle: Style = {
  isAiry: () => false,
  order: ([part, name, inner]) => {
    if (part === undefined) return documentKeys.mandate;
    return part === "contracts" && name === "*" && inner === undefined ? documentKeys.entry : undefined;
  },
};
