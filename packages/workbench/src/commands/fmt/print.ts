import type { YamlNode } from "../../../../readers/src/contract.ts";
import type { Collection, Item, LayoutNode } from "./arrange.ts";
import { scalarBlock, scalarLine } from "./scalars.ts";

/** The layout of a kind of file: the order of parts, and the blank lines between them. */
export interface Style {
  /** The order of a map's keys; undefined if they stay as they are. A path has `*` for names and indexes. */
  readonly order: (path: readonly string[]) => readonly string[] | undefined;
  /** Do blank lines separate the items of this collection that take several lines? */
  readonly isAiry: (path: readonly string[]) => boolean;
}

const columnsMax = 120;

/** The formatted document. */
export function print(root: LayoutNode, style: Style): string {
  if (root.kind === "scalar") return `${scalarLine(root.scalar, "block")}\n`;
  const block = root.kind === "flow" ? root.block : root;
  if (block.items.length === 0) return `${[...block.tail, block.kind === "map" ? "{}" : "[]"].join("\n")}\n`;
  return `${withoutBlankEnds(new Printer(style).root(block)).join("\n")}\n`;
}

function withoutBlankEnds(lines: readonly string[]): readonly string[] {
  const first = lines.findIndex((line) => line !== "");
  return lines.slice(first, lines.findLastIndex((line) => line !== "") + 1);
}

interface ItemLines {
  /** The lines above, without indentation. */
  readonly lead: readonly string[];
  readonly body: readonly string[];
  /** It is a map or a list over several lines. */
  readonly isLong: boolean;
}

class Printer {
  readonly #style: Style;

  constructor(style: Style) {
    this.#style = style;
  }

  /** The lines above the first part belong to the file, whichever part becomes the first. */
  root(block: Collection): readonly string[] {
    const [first, ...rest] = block.items;
    if (first === undefined) return block.tail;
    return [...first.lead, ...this.#collection({ ...block, items: [{ ...first, lead: [] }, ...rest] }, 0, [])];
  }

  #collection(block: Collection, indent: number, path: readonly string[]): string[] {
    const isAiry = this.#style.isAiry(path);
    const lines: string[] = [];
    let wasLong = false;
    for (const [at, item] of this.#sortItems(block, path).entries()) {
      const { lead, body, isLong } = this.#item(item, indent, path);
      const above = at === 0 ? dropBlankStart(lead) : lead;
      if (at > 0 && isAiry && (isLong || wasLong) && above[0] !== "") lines.push("");
      lines.push(...above.map((line) => indentLine(line, indent)), ...body);
      wasLong = isLong;
    }
    return [...lines, ...block.tail.map((line) => indentLine(line, indent))];
  }

  #sortItems({ kind, items }: Collection, path: readonly string[]): readonly Item[] {
    const order = kind === "map" ? (this.#style.order(path) ?? []) : [];
    return items.toSorted((a, b) => rankIn(order, a.key?.text) - rankIn(order, b.key?.text));
  }

  #item(item: Item, indent: number, path: readonly string[]): ItemLines {
    const { key, value, lead } = item;
    const inside = [...path, key === undefined ? "*" : key.text];
    const head = " ".repeat(indent) + (key === undefined ? "-" : `${scalarLine(key, "key")}:`);
    if (value.kind === "scalar") return { lead, body: this.#scalar(item, head, indent), isLong: false };
    const flow = this.#flowLines(item, head, indent, inside);
    if (flow !== undefined) return { lead, body: flow, isLong: false };
    return this.#block(expandBraces(item), head, indent, inside);
  }

  #scalar({ value, trail }: Item, head: string, indent: number): string[] {
    if (value.kind !== "scalar") return [];
    const line = joinWords(head, scalarLine(value.scalar, "block"));
    const block = scalarBlock(value.scalar);
    const isBlock = block !== undefined && (block.head !== ">-" || value.comment !== undefined || !isOnce(value, line));
    if (!isBlock) return [withComment(line, trail ?? value.comment)];
    const lines = block.lines.map((text) => indentLine(text, indent + 2));
    return [withComment(`${head} ${block.head}`, value.comment ?? trail), ...lines];
  }

  #flowLines(
    { value, keyComment, trail }: Item,
    head: string,
    indent: number,
    path: readonly string[],
  ): string[] | undefined {
    const node = value.kind === "flow" ? value.node : emptyOf(value);
    if (node === undefined) return undefined;
    const text = typeof node === "string" ? node : this.#flow(node, path);
    const line = keyComment === undefined ? `${head} ${text}` : `${" ".repeat(indent + 2)}${text}`;
    if (Array.from(line).length > columnsMax) return undefined;
    const whole = withComment(line, trail);
    return keyComment === undefined ? [whole] : [withComment(head, keyComment), whole];
  }

  #flow(node: YamlNode, path: readonly string[]): string {
    if (node.kind === "scalar") return scalarLine(node, "flow");
    if (node.kind === "list") return `[${node.items.map((item) => this.#flow(item, [...path, "*"])).join(", ")}]`;
    const order = this.#style.order(path) ?? [];
    const entries = [...node.entries.entries()].toSorted(([a], [b]) => rankIn(order, a) - rankIn(order, b));
    const members = entries.map(
      ([name, { key, value }]) => `${scalarLine(key, "key")}: ${this.#flow(value, [...path, name])}`,
    );
    return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
  }

  #block(item: Item, head: string, indent: number, path: readonly string[]): ItemLines {
    const block = item.value.kind === "map" || item.value.kind === "list" ? item.value : undefined;
    if (block === undefined) return { lead: item.lead, body: [], isLong: false };
    if (item.key !== undefined) {
      const body = [withComment(head, item.keyComment), ...this.#collection(block, indent + 2, path)];
      return { lead: item.lead, body, isLong: true };
    }
    // The first line of the item follows its dash, and the comments above that line are above the dash.
    const lines = this.#collection(block, indent + 2, path);
    const first = lines.findIndex((line) => !/^ *(?:#|$)/.test(line));
    const above = lines.slice(0, first).map((line) => line.trimStart());
    const [line = "", ...rest] = lines.slice(first);
    return { lead: [...item.lead, ...above], body: [`${head} ${line.slice(indent + 2)}`, ...rest], isLong: true };
  }
}

/** The item with its braces expanded into lines. */
function expandBraces(item: Item): Item {
  const { value, trail, keyComment, key, lead } = item;
  if (value.kind !== "flow") return item;
  if (trail === undefined) return { ...item, value: value.block };
  const takes = keyComment === undefined && key !== undefined;
  return {
    ...item,
    value: value.block,
    trail: undefined,
    ...(takes ? { keyComment: trail } : { lead: [...lead, trail] }),
  };
}

/** Keys that the order does not name come last, in their original order. */
function rankIn(order: readonly string[], name: string | undefined): number {
  const at = name === undefined ? -1 : order.indexOf(name);
  return at === -1 ? order.length : at;
}

function emptyOf(value: LayoutNode): string | undefined {
  if (value.kind !== "map" && value.kind !== "list") return undefined;
  return value.items.length > 0 ? undefined : value.kind === "map" ? "{}" : "[]";
}

/** Is it a text on several lines that fits on one? Blocks stay blocks. */
function isOnce(value: LayoutNode, line: string): boolean {
  if (value.kind !== "scalar") return false;
  const { span } = value.scalar;
  return !/[|>]/.test(span.file.text.charAt(span.from)) && Array.from(line).length <= columnsMax;
}

function dropBlankStart(lines: readonly string[]): readonly string[] {
  const first = lines.findIndex((line) => line !== "");
  return first === -1 ? [] : lines.slice(first);
}

function indentLine(line: string, indent: number): string {
  return line === "" ? "" : " ".repeat(indent) + line;
}

function joinWords(head: string, text: string): string {
  return text === "" ? head : `${head} ${text}`;
}

function withComment(line: string, comment: string | undefined): string {
  return comment === undefined ? line : `${line} ${comment}`;
}
