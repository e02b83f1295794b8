import type { Span, YamlNode, YamlScalar } from "../../../../readers/src/contract.ts";
import { Comments } from "./comments.ts";

/** A part of a document with the comments that belong to it. */
export type Part =
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
  /** The comment between a key and a value that begins on another line. */
  readonly keyComment: string | undefined;
  readonly value: Part;
  /** The comment at the end of the line. */
  readonly trail: string | undefined;
}

/** Assigns every comment of a document to a part: the part below it, or the part on its line. */
export function arrange(root: YamlNode): Part {
  const { text } = root.span.file;
  const arranger = new Arranger(new Comments(text), text);
  if (root.kind === "scalar") return { kind: "scalar", scalar: root, comment: undefined };
  return arranger.collection(root, text.length + 1, 0);
}

interface Child {
  readonly key: YamlScalar | undefined;
  readonly node: YamlNode;
}

class Arranger {
  readonly #comments: Comments;
  readonly #text: string;

  constructor(comments: Comments, text: string) {
    this.#comments = comments;
    this.#text = text;
  }

  /** @param limit the offset that its comments must precede */
  collection(node: Exclude<YamlNode, YamlScalar>, limit: number, column: number): Collection {
    const children: readonly Child[] =
      node.kind === "map"
        ? [...node.entries.values()].map(({ key, value }) => ({ key, node: value }))
        : node.items.map((item) => ({ key: undefined, node: item }));
    const items = children.map((child, at) => {
      const next = children[at + 1];
      return this.#item(child, next === undefined ? limit : startOf(next), column);
    });
    return { kind: node.kind, items, tail: this.#comments.tail(limit, column) };
  }

  #item({ key, node }: Child, limit: number, outer: number): Item {
    const lead = [...this.#comments.before(startOf({ key, node }))];
    const keyComment = key === undefined ? undefined : this.#comments.behind(key.span.to, beginning(node, key));
    if (node.kind !== "scalar" && !this.#isFlow(node)) {
      const own = this.#columnOf(node.span);
      // A list may be indented as little as its key: the lines after it at that column do not belong to it.
      const value = this.collection(
        node,
        limit,
        node.kind === "list" && own === outer && key !== undefined ? own + 1 : own,
      );
      return { lead, key, keyComment, value, trail: undefined };
    }
    const between = key === undefined || isMissing(node, key) ? [] : this.#comments.before(node.span.from);
    lead.push(...between.filter((line) => line !== ""));
    const value = node.kind === "scalar" ? this.#scalar(node) : this.#flow(node);
    const trail = this.#comments.behind(isMissing(node, key) ? (key?.span.to ?? 0) : node.span.to, limit);
    return settle({ lead, key, keyComment, value, trail });
  }

  #scalar(scalar: YamlScalar): Part {
    const isBlock = /[|>]/.test(this.#text.charAt(scalar.span.from)) && scalar.text !== "";
    const comment = isBlock
      ? this.#comments.behind(scalar.span.from, this.#text.indexOf("\n", scalar.span.from))
      : undefined;
    return { kind: "scalar", scalar, comment };
  }

  #flow(node: Exclude<YamlNode, YamlScalar>): Part {
    const { from, to } = node.span;
    const hasComments = this.#comments.has(from, to);
    const block = this.collection(node, to, 0);
    return hasComments ? block : { kind: "flow", node, block };
  }

  #isFlow(node: YamlNode): boolean {
    return /[[{]/.test(this.#text.charAt(node.span.from)) && /[\]}]/.test(this.#text.charAt(node.span.to - 1));
  }

  #columnOf({ from }: Span): number {
    return from - (this.#text.lastIndexOf("\n", from - 1) + 1);
  }
}

/** Moves a comment whose place no longer exists: braces that are expanded, a value that moved up to its key. */
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

function beginning(node: YamlNode, key: YamlScalar): number {
  return isMissing(node, key) ? key.span.to : node.span.from;
}

/** Nothing is written: the reader gives an empty value the key's place. */
function isMissing(node: YamlNode, key: YamlScalar | undefined): boolean {
  return node.kind === "scalar" && node.value === null && node.text === "" && node.span.from <= (key?.span.from ?? -1);
}
