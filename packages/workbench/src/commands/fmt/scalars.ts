import { readYaml, Report, type YamlNode, type YamlScalar } from "../../../../readers/src/contract.ts";

/** The position of a scalar: it decides which texts need quotes. */
export type ScalarContext = "block" | "flow" | "key";

/** A scalar on one line, with as few quotes as possible. */
export function scalarLine(scalar: YamlScalar, context: ScalarContext): string {
  const raw = rawText(scalar);
  if (scalar.value === null && scalar.text === "") return context === "flow" ? "null" : "";
  if (context !== "key" && typeof scalar.value !== "string") return scalar.text;
  if (isPlain(scalar.text, context)) return scalar.text;
  // Escapes stay as they were written: their characters may be invisible.
  if (raw.startsWith('"') && raw.includes("\\") && !raw.includes("\n")) return raw;
  return quoteText(scalar.text);
}

/** A scalar of several lines as a block: its head (`>-`) and its lines without their indentation. */
export function scalarBlock(
  scalar: YamlScalar,
): { readonly head: string; readonly lines: readonly string[] } | undefined {
  const raw = rawText(scalar);
  const lines = raw.split(/\r?\n/);
  if (/^[|>]/.test(raw)) return blockLines(lines);
  if (lines.length === 1) return undefined;
  const words = (/^["']/.test(raw) ? raw.slice(1, -1) : raw).split(/\r?\n/).map((line) => line.trim());
  // Only a text that is the same after folding: no escapes, no empty lines.
  return words.join(" ") === scalar.text ? { head: ">-", lines: words } : undefined;
}

/** The scalar as written in the file. */
function rawText({ span }: YamlScalar): string {
  return span.file.text.slice(span.from, span.to).replace(/[\r\n]+$/, "");
}

function blockLines([head = "", ...lines]: readonly string[]): ReturnType<typeof scalarBlock> {
  const style = /^[|>]-?(?=\s|$)/.exec(head)?.[0];
  // Explicit indicators for line ends and indentation would change their meaning with the lines around them.
  if (style === undefined) return undefined;
  const first = lines.find((line) => line.trim() !== "");
  if (first === undefined) return undefined;
  const indent = first.length - first.trimStart().length;
  const found = lines.map((line) => line.slice(indent));
  const end = found.findLastIndex((line) => line !== "") + 1;
  return { head: style, lines: found.slice(0, end) };
}

const known = new Map<string, boolean>();

/** Does the text keep its meaning without quotes? The gate's own reader decides. */
function isPlain(text: string, context: ScalarContext): boolean {
  if (!/^[^\s"'#&*!|>%@`{}[\],][^\r\n\t]*$/.test(text) || / $|: | #|:$/.test(text) || text.startsWith("---"))
    return false;
  return known.getOrInsertComputed(`${context} ${text}`, () => {
    const report = new Report();
    const source = { block: `- ${text}`, flow: `- [${text}, 0]`, key: `- { ${text}: 0 }` }[context];
    const isSame = readsAs(readYaml({ name: "scalar", text: source }, report), text, context) && report.size === 0;
    // A key is always text here, but not for every reader of YAML.
    return isSame && (context !== "key" || isPlain(text, "block") || /^(?:on|no|n|y|yes|off)$/.test(text));
  });
}

function readsAs(node: YamlNode | undefined, text: string, context: ScalarContext): boolean {
  const item = node?.kind === "list" && node.items.length === 1 ? node.items[0] : undefined;
  if (context === "block") return item?.kind === "scalar" && item.value === text;
  if (context === "key") return item?.kind === "map" && item.entries.size === 1 && item.entries.has(text);
  const [value] = item?.kind === "list" && item.items.length === 2 ? item.items : [];
  return value?.kind === "scalar" && value.value === text;
}

const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** In double quotes; in single quotes if that avoids escapes. */
function quoteText(text: string): string {
  if (text.search(hidden) === -1) {
    if (!/["\\]/.test(text)) return `"${text}"`;
    return `'${text.replaceAll("'", "''")}'`;
  }
  const escaped = JSON.stringify(text).replace(hidden, (character) => {
    const code = (character.codePointAt(0) ?? 0).toString(16);
    return code.length > 4 ? `\\U${code.padStart(8, "0")}` : `\\u${code.padStart(4, "0")}`;
  });
  return escaped;
}
