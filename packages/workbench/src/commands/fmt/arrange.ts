import type { Span, YamlNode, YamlScalar } from "../../../../readers/src/contract.ts";
import { Comments } from "./comments.ts";

/** A part of a document with the comments that belong to it. */
export type LayoutNode =
  | { readonly kind: "scalar"; readonly scalar: YamlScalar; readonly comment: string | undefined }
  /** Written in braces or brackets, without a comment inside: one line, if it fits. */
  | { readonly kind: "flow"; readonly node: YamlNode; readonly block: Collection }
  | Collection;

export interface Collection {
  readonly kind: "map" | "list";
  readonly items: readonly Item[];
  /** Comments after the last item. */
  readonly tail: readonly string[];
}

export interface Item {
  /** Comments and blank lines ("") above. */
  readonly lead: readonly string[];
  readonly key: YamlScalar | undefined;
  /** The comment between a key and a value that starts on another line. */
  readonly keyComment: string | undefined;
  readonly value: LayoutNode;
  /** The comment at the end of the line. */
  readonly trail: string | undefined;
}

/** Assigns every comment of a document to a part: the part below it, or the part on its line. */
export function arrange(root: YamlNode): LayoutNode {
  const { text } = root.span.file;
  if (root.kind === "scalar") return { kind: "scalar", scalar: root, comment: undefined };
  return collectionOf(new Comments(text), root, text.length + 1, 0);
}

interface Child {
  readonly key: YamlScalar | undefined;
  readonly node: YamlNode;
}

/** @param limit the offset that its comments must precede */
function collectionOf(
  comments: Comments,
  node: Exclude<YamlNode, YamlScalar>,
  limit: number,
  column: number,
): Collection {
  const children: readonly Child[] =
    node.kind === "map"
      ? [...node.entries.values()].map(({ key, value }) => ({ key, node: value }))
      : node.items.map((item) => ({ key: undefined, node: item }));
  const items = children.map((child, at) => {
    const next = children[at + 1];
    return itemOf(comments, child, next === undefined ? limit : startOf(next), column);
  });
  return { kind: node.kind, items, tail: comments.tail(limit, column) };
}

function itemOf(comments: Comments, { key, node }: Child, limit: number, outer: number): Item {
  const lead = [...comments.before(startOf({ key, node }))];
  const isWritten = !isMissing(node, key);
  const keyComment = key && comments.behind(key.span.to, isWritten ? node.span.from : key.span.to);
  if (node.kind !== "scalar" && !isFlow(node)) {
    const own = columnOf(node.span);
    // A list may be indented as little as its key: the lines after it at that column do not belong to it.
    const value = collectionOf(
      comments,
      node,
      limit,
      node.kind === "list" && own === outer && key !== undefined ? own + 1 : own,
    );
    return { lead, key, keyComment, value, trail: undefined };
  }
  const between = key === undefined || !isWritten ? [] : comments.before(node.span.from);
  lead.push(...between.filter((line) => line !== ""));
  const value = node.kind === "scalar" ? scalarPart(comments, node) : flowPart(comments, node);
  const trail = comments.behind(isWritten ? node.span.to : (key?.span.to ?? 0), limit);
  return settle({ lead, key, keyComment, value, trail });
}

function scalarPart(comments: Comments, scalar: YamlScalar): LayoutNode {
  const { text } = scalar.span.file;
  const isBlock = /[|>]/.test(text.charAt(scalar.span.from)) && scalar.text !== "";
  const comment = isBlock ? comments.behind(scalar.span.from, text.indexOf("\n", scalar.span.from)) : undefined;
  return { kind: "scalar", scalar, comment };
}

function flowPart(comments: Comments, node: Exclude<YamlNode, YamlScalar>): LayoutNode {
  const { from, to } = node.span;
  const hasComments = comments.has(from, to);
  const block = collectionOf(comments, node, to, 0);
  return hasComments ? block : { kind: "flow", node, block };
}

function isFlow({ span: { file, from, to } }: YamlNode): boolean {
  return /[[{]/.test(file.text.charAt(from)) && /[\]}]/.test(file.text.charAt(to - 1));
}

function columnOf({ file, from }: Span): number {
  return from - (file.text.lastIndexOf("\n", from - 1) + 1);
}

/** Moves a comment whose position no longer exists: braces that are expanded, a value that moved up to its key. */
function settle(item: Item): Item {
  const { keyComment, trail, value, lead } = item;
  if (value.kind === "flow") return item;
  if (value.kind === "scalar") {
    if (keyComment === undefined) return item;
    if (trail === undefined && value.comment === undefined)
      return { ...item, keyComment: undefined, trail: keyComment };
    return { ...item, keyComment: undefined, lead: [...lead, keyComment] };
  }
  if (value.items.length === 0) {
    const inside = [keyComment ?? "", ...value.tail].filter((line) => line !== "");
    return { ...item, keyComment: undefined, lead: [...lead, ...inside], value: { ...value, tail: [] } };
  }
  if (trail === undefined) return item;
  if (keyComment === undefined && item.key !== undefined) return { ...item, keyComment: trail, trail: undefined };
  return { ...item, lead: [...lead, trail], trail: undefined };
}

function startOf({ key, node }: Child): number {
  return (key ?? node).span.from;
}

/** Nothing is written: the reader gives an empty value the key's span. */
function isMissing(node: YamlNode, key: YamlScalar | undefined): boolean {
  return node.kind === "scalar" && node.value === null && node.text === "" && node.span.from <= (key?.span.from ?? -1);
}
