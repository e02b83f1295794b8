/** The location of a cursor in a document, found from indentation: an unfinished text is often not YAML. */
export interface CursorLocation {
  /** The keys above, `*` for an item of a list: `["rules", "*"]`. */
  readonly path: readonly string[];
  /** The key whose value contains the cursor; undefined if a key is being written. */
  readonly key: string | undefined;
  /** The text of the value, or of the key, before the cursor. */
  readonly before: string;
  /** The text of the map around the cursor: a rule's lines, or its braces. */
  readonly around: string;
}

interface DocumentLine {
  readonly text: string;
  /** The column of its key, after the dashes of a list. */
  readonly column: number;
  readonly dashes: readonly number[];
  readonly key: string | undefined;
}

export function locationAt(text: string, offset: number): CursorLocation {
  const lines = text.split("\n");
  const at = text.slice(0, offset).split("\n").length - 1;
  const lineStart = text.lastIndexOf("\n", offset - 1) + 1;
  const prefix = text.slice(lineStart, offset);
  const own = readLine(prefix);
  const above = ancestors(lines.slice(0, at).map(readLine), own);
  const around = itemAround(lines, at, own);
  const flow = locateInFlow(prefix);
  if (flow !== undefined) {
    const base = [...above, ...dashesOf(own), ...(own.key === undefined ? [] : [own.key])];
    return {
      ...flow,
      path: [...base, ...flow.path],
      around: flow.path.length > 0 || own.key === undefined ? (lines[at] ?? "") : around,
    };
  }
  if (own.key !== undefined)
    return { path: [...above, ...dashesOf(own)], key: own.key, before: readValuePrefix(prefix, own), around };
  const isKey = own.text === "" || /^["'\w$.*-]*$/.test(own.text);
  const continued = isKey ? undefined : blockKey(lines, at, own.column);
  const path = [...above, ...dashesOf(own)];
  if (continued !== undefined) return { path: path.slice(0, -1), key: path.at(-1), before: own.text, around };
  return { path, key: undefined, before: own.text, around };
}

function readLine(whole: string): DocumentLine {
  const text = whole.slice(0, columnsMax);
  const dashes: number[] = [];
  let column = text.length - text.trimStart().length;
  while (/^- ?/.test(text.slice(column)) && /^-(?: |$)/.test(text.slice(column))) {
    dashes.push(column);
    column += 1;
    while (text[column] === " ") column += 1;
  }
  const rest = text.slice(column);
  const key = /^(?:"([^"]*)"|'([^']*)'|([^\s"'#[\]{},][^#]*?))\s*:(?=\s|$)/.exec(rest);
  return { text: rest, column, dashes, key: key === null ? undefined : (key[1] ?? key[2] ?? key[3]) };
}

function dashesOf({ dashes }: DocumentLine): readonly string[] {
  return dashes.map(() => "*");
}

/** The keys that enclose a line, outermost first. */
function ancestors(above: readonly DocumentLine[], own: DocumentLine): readonly string[] {
  const path: string[] = [];
  let column = own.dashes[0] ?? own.column;
  let isItem = own.dashes.length > 0;
  for (const line of above.toReversed()) {
    if (line.text === "" || line.text.startsWith("#")) continue;
    const encloses =
      line.key !== undefined &&
      (line.column < column || (isItem && line.column === column && line.dashes.length === 0));
    if (encloses && line.key !== undefined) path.unshift(line.key);
    const [dash] = line.dashes;
    if (dash !== undefined && dash < column && (encloses || line.column === column)) {
      for (const inner of line.dashes.toReversed()) if (inner < column) path.unshift("*");
      column = dash;
      isItem = true;
    } else if (encloses) {
      column = line.column;
      isItem = false;
    }
    if (column === 0 && !isItem) break;
  }
  return path;
}

/** The number of characters before a brace or a quote that decide whether it starts a value. */
const lookBack = 20;
/** Longer lines are read up to this column: nobody writes them by hand. */
const columnsMax = 2000;

/** Inside braces on one line: the keys of the open braces, and the key or value that is being written. */
function locateInFlow(prefix: string): Pick<CursorLocation, "path" | "key" | "before"> | undefined {
  const open: { readonly brace: string; key: string | undefined; from: number }[] = [];
  let quote = "";
  for (let at = 0; at < prefix.length; at += 1) {
    const unit = prefix.charAt(at);
    const top = open.at(-1);
    if (quote !== "") {
      if (unit === "\\" && quote === '"') at += 1;
      else if (unit === quote) quote = "";
    } else if ((unit === '"' || unit === "'") && /(?:^|[\s{[,])$/.test(prefix.slice(Math.max(0, at - lookBack), at)))
      quote = unit;
    else if (
      (unit === "{" || unit === "[") &&
      /(?:^|: |- |[{[,]\s*)$/.test(prefix.slice(Math.max(0, at - lookBack), at))
    )
      open.push({ brace: unit, key: undefined, from: at + 1 });
    else if ((unit === "}" || unit === "]") && top !== undefined) open.pop();
    else if (unit === "," && top !== undefined) {
      top.key = undefined;
      top.from = at + 1;
    } else if (unit === ":" && /\s/.test(prefix.charAt(at + 1) || " ") && top?.brace === "{" && top.key === undefined) {
      top.key = prefix
        .slice(top.from, at)
        .trim()
        .replaceAll(/^["']|["']$/g, "");
      top.from = at + 1;
    }
  }
  const last = open.at(-1);
  if (last === undefined) return undefined;
  const steps = open.slice(0, -1).map(({ brace, key }) => (brace === "[" ? "*" : (key ?? "")));
  const before = prefix.slice(last.from).replace(/^\s*["']?/, "");
  if (last.brace === "{") return { path: steps, key: last.key, before };
  return { path: steps, key: "*", before };
}

/** The key of the block text (`>-`) that a line continues. */
function blockKey(lines: readonly string[], at: number, column: number): string | undefined {
  for (const text of lines.slice(0, at).toReversed()) {
    if (text.trim() === "") continue;
    const line = readLine(text);
    if (line.text.length > 0 && line.column < column)
      return /:\s*[|>]/.test(line.text) || !/:\s*$/.test(line.text) ? line.key : undefined;
  }
  return undefined;
}

function readValuePrefix(prefix: string, { key, column }: DocumentLine): string {
  const behind = prefix.slice(prefix.indexOf(":", column + (key?.length ?? 0)) + 1);
  return behind.replace(/^\s*["']?/, "");
}

/** The lines of the item, or of the map, that a line belongs to. */
function itemAround(lines: readonly string[], at: number, own: DocumentLine): string {
  const column = own.column;
  const isInside = (text: string): boolean => text.trim() === "" || readLine(text).column >= column;
  let from = at;
  while (
    from > 0 &&
    isInside(lines[from] ?? "") &&
    !(readLine(lines[from] ?? "").dashes.length > 0 && readLine(lines[from] ?? "").column <= column)
  )
    from -= 1;
  let to = at + 1;
  while (to < lines.length && isInside(lines[to] ?? "") && readLine(lines[to] ?? "").dashes.length === 0) to += 1;
  return lines.slice(from, to).join("\n");
}
