import type { TextDocument } from "vscode-languageserver-textdocument";
import {
  CompletionItemKind,
  MarkupKind,
  type CompletionItem,
  type Hover,
  type Location,
  type TextEdit,
} from "vscode-languageserver";
import { typeText } from "../../../../readers/src/ir.ts";
import { layOut } from "../fmt/layout.ts";
import {
  chainAt,
  coreAt,
  findDeclaration,
  functionText,
  suggest,
  suggestMembers,
  type Suggestion,
} from "./conditions.ts";
import { allowedAt, shapeOf, type AllowedContent } from "./file-schema.ts";
import { find, classifyFile, namesUnder, formatNode, type Outline } from "./outline.ts";
import { locationAt, type CursorLocation } from "./cursor-location.ts";
import { besideUri, sourceOf, type Workspace } from "./workspace.ts";

const kinds: Readonly<Record<Suggestion["kind"], CompletionItemKind>> = {
  root: CompletionItemKind.Variable,
  name: CompletionItemKind.Variable,
  member: CompletionItemKind.Field,
  function: CompletionItemKind.Function,
};

/** The completions at an offset. */
export async function complete(
  workspace: Workspace,
  document: TextDocument,
  offset: number,
): Promise<CompletionItem[]> {
  const kind = classifyFile(sourceOf(document));
  if (kind === undefined) return [];
  const outline = workspace.outline(document);
  const location = locationAt(document.getText(), offset);
  const shape = await shapeOf(kind);
  const allowed = allowedAt(shape, location.key === undefined ? location.path : [...location.path, location.key]);
  if (allowed.isMember && outline !== undefined) return suggestMembers(outline, location).map(suggestionItem);
  if (location.key === undefined) return keyItems(allowed);
  const condition = conditionOf(allowed, location);
  if (condition !== undefined && outline !== undefined) return suggest(outline, condition).map(suggestionItem);
  const tools = outline === undefined || !allowed.isTools ? [] : namesUnder(outline, "tools");
  return [
    ...allowed.values.map((label) => ({ label, kind: CompletionItemKind.Value })),
    ...tools.map((label) => ({ label, kind: CompletionItemKind.Reference, detail: "a tool of this contract" })),
  ];
}

function keyItems({ keys }: AllowedContent): CompletionItem[] {
  return [...keys].map(([label, documentation]) => ({
    label,
    kind: CompletionItemKind.Property,
    insertText: `${label}: `,
    documentation,
  }));
}

/** The location as a condition: the whole value, or the text after the last open brace of a reason. */
function conditionOf(allowed: AllowedContent, location: CursorLocation): CursorLocation | undefined {
  if (location.key === "per" || (location.key === "*" && location.path.at(-1) === "per")) return location;
  if (allowed.isExpression) return location;
  if (!allowed.isReason) return undefined;
  const open = location.before.lastIndexOf("{");
  return open > location.before.lastIndexOf("}") ? { ...location, before: location.before.slice(open + 1) } : undefined;
}

function suggestionItem({ name, kind, detail }: Suggestion): CompletionItem {
  return { label: name, kind: kinds[kind], detail };
}

/** Describes the word at an offset: its declaration, its function's signature, its proven type. */
export async function hover(workspace: Workspace, document: TextDocument, offset: number): Promise<Hover | null> {
  const outline = workspace.outline(document);
  const word = chainAt(document.getText(), offset);
  const kind = classifyFile(sourceOf(document));
  if (outline === undefined || word === undefined || kind === undefined) return null;
  const location = locationAt(document.getText(), offset);
  const lines: string[] = [];
  const shape = await shapeOf(kind);
  const isKey = location.key === undefined && !allowedAt(shape, location.path).isMember;
  if (isKey || isOverKey(document, word.from)) {
    const keys = locationAt(document.getText(), word.from);
    const known = allowedAt(shape, keys.path).keys.get(word.chain.join("."));
    if (known !== undefined) lines.push(known);
  } else {
    const found = findDeclaration(outline, location, word.chain);
    if (found !== undefined) lines.push(`\`${word.chain.join(".")}\`: \`${formatNode(found.node)}\``);
    const doc = functionText(word.chain.at(-1) ?? "");
    if (doc !== undefined && found === undefined) lines.push(doc);
    const compiled = workspace.findPolicySet(document);
    const core = compiled === undefined ? undefined : coreAt(compiled, document.uri, word);
    if (core !== undefined) lines.push(`It is ${typeText(core.type)}.`);
  }
  if (lines.length === 0) return null;
  const range = { start: document.positionAt(word.from), end: document.positionAt(word.to) };
  return { contents: { kind: MarkupKind.Markdown, value: lines.join("\n\n") }, range };
}

/** Do only white space, dashes or an open brace precede the word on its line? */
function isOverKey(document: TextDocument, from: number): boolean {
  const text = document.getText();
  const before = text.slice(text.lastIndexOf("\n", from - 1) + 1, from);
  return /^[\s-]*$/.test(before) && /^[\w.*$-]+\s*:/.test(text.slice(from));
}

/** The declaration of the word at an offset. */
export function define(workspace: Workspace, document: TextDocument, offset: number): Location | null {
  const outline = workspace.outline(document);
  if (outline === undefined) return null;
  const here = ({ from, to }: { readonly from: number; readonly to: number }): Location => ({
    uri: document.uri,
    range: { start: document.positionAt(from), end: document.positionAt(to) },
  });
  const file = contractFile(document, outline, offset);
  if (file !== undefined)
    return { uri: file, range: { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } } };
  const tool = toolAt(document, outline, offset);
  if (tool !== undefined) return here(tool);
  const word = chainAt(document.getText(), offset);
  const found =
    word === undefined ? undefined : findDeclaration(outline, locationAt(document.getText(), offset), word.chain);
  return found === undefined ? null : here(found.key);
}

/** The URI of the contract that a mandate, or a test file, names at an offset. */
function contractFile(document: TextDocument, { root }: Outline, offset: number): string | undefined {
  const open = [root.entries.get("contracts"), root.entries.get("contract"), root.entries.get("mandate")];
  const kind = classifyFile(sourceOf(document));
  if (kind === "contract" || kind === undefined) return undefined;
  const nodes = open.slice(0, kind === "mandate" ? 1 : 3).flatMap((entry) => {
    const node = entry?.value;
    return node === undefined ? [] : node.kind === "list" ? node.items : [node];
  });
  for (const node of nodes) {
    const named = node.kind === "map" ? node.entries.get("file")?.value : node;
    if (named?.kind === "scalar" && named.span.from <= offset && offset <= named.span.to)
      return besideUri(document.uri, named.text);
  }
  return undefined;
}

/** The declaration of the tool that is named at an offset, outside conditions. */
function toolAt(document: TextDocument, outline: Outline, offset: number): { from: number; to: number } | undefined {
  const location = locationAt(document.getText(), offset);
  const isList = location.key === "*" && ["on", "of"].includes(location.path.at(-1) ?? "");
  if (!isList && !["on", "of"].includes(location.key ?? "")) return undefined;
  const text = document.getText();
  const before = /[^\s[\],"']*$/.exec(text.slice(0, offset))?.[0] ?? "";
  const name = before + (/^[^\s[\],"'}]*/.exec(text.slice(offset))?.[0] ?? "");
  const known = namesUnder(outline, "tools").find(
    (tool) => tool === name || (name.endsWith("*") && tool.startsWith(name.slice(0, -1))),
  );
  return known === undefined ? undefined : find(outline, "tools", known)?.key;
}

/** The formatted document; nothing if it is not YAML. */
export function format(document: TextDocument): TextEdit[] {
  const laidOut = layOut(sourceOf(document));
  if (!laidOut.ok || laidOut.value === document.getText()) return [];
  const end = document.positionAt(document.getText().length);
  return [{ range: { start: { line: 0, character: 0 }, end }, newText: laidOut.value }];
}
