/** How a scalar is written in YAML. */
export type ScalarStyle = "plain" | "single" | "double" | "block";

/**
 * The offset of each UTF-16 unit of a scalar's value in `raw`, the scalar as written, and one more for its end. Accounts
 * for quotes, escapes, folded lines and indentation (YAML 1.2.2, sections 7.3 and 8.1). If an offset cannot be found, it
 * is the scalar's start.
 */
export function scalarOffsets(raw: string, style: ScalarStyle, value: string): readonly number[] {
  if (style === "plain" && raw === value) return Array.from({ length: value.length + 1 }, (_, at) => at);
  const offsets = style === "block" ? blockOffsets(raw, value) : flowOffsets(raw, style);
  if (offsets.length === value.length + 1) return offsets;
  return Array.from({ length: value.length + 1 }, () => 0);
}

/** A line break with the blanks around it, and the empty lines after it. */
const fold = /[ \t]*(?:\r?\n[ \t]*)+/y;
const escapedBreak = /\\\r?\n[ \t]*/y;

function flowOffsets(raw: string, style: "plain" | "single" | "double"): number[] {
  const end = style === "plain" ? raw.length : raw.length - 1;
  const offsets: number[] = [];
  let at = style === "plain" ? 0 : 1;
  while (at < end) {
    const breaks = match(fold, raw, at);
    if (breaks !== undefined) {
      // One break folds to a blank; each empty line after it is a line break of the value.
      const first = at + breaks.indexOf("\n");
      const count = Math.max(1, breaks.split("\n").length - 2);
      for (let unit = 0; unit < count; unit += 1) offsets.push(first);
      at += breaks.length;
      continue;
    }
    const [width, units] = style === "plain" ? [1, 1] : widthOf(raw, at, style);
    for (let unit = 0; unit < units; unit += 1) offsets.push(at);
    at += width;
  }
  offsets.push(Math.min(at, end));
  return offsets;
}

/** The number of characters that one character takes as written, and the number of units in the value. */
function widthOf(raw: string, at: number, style: "single" | "double"): readonly [number, number] {
  if (style === "single") return raw[at] === "'" ? [2, 1] : [1, 1];
  if (raw[at] !== "\\") return [1, 1];
  const skipped = match(escapedBreak, raw, at);
  if (skipped !== undefined) return [skipped.length, 0];
  const digits = { x: 2, u: 4, U: 8 }[raw.charAt(at + 1)] ?? 0;
  const isPair = digits === 8 && Number.parseInt(raw.slice(at + 2, at + 10), 16) > 0xffff;
  return [2 + digits, isPair ? 2 : 1];
}

/** The value contains the lines as written, in order; between them are blanks or line breaks. */
function blockOffsets(raw: string, value: string): number[] {
  const offsets: number[] = [];
  let lineFrom = raw.indexOf("\n") + 1;
  let breakAt = Math.max(0, lineFrom - 1);
  while (lineFrom > 0 && lineFrom < raw.length) {
    const lineEnd = raw.indexOf("\n", lineFrom);
    const line = raw.slice(lineFrom, lineEnd === -1 ? undefined : lineEnd).replace(/\r$/, "");
    const text = line.trim();
    const found = text === "" ? -1 : value.indexOf(text, offsets.length);
    if (found >= 0) {
      while (offsets.length < found) offsets.push(breakAt);
      const from = lineFrom + line.indexOf(text);
      for (let unit = 0; unit < text.length; unit += 1) offsets.push(from + unit);
      breakAt = from + text.length;
    }
    if (lineEnd === -1) break;
    lineFrom = lineEnd + 1;
  }
  while (offsets.length <= value.length) offsets.push(breakAt);
  return offsets;
}

function match(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}
