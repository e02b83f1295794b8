import { hash } from "node:crypto";
import { canonical } from "../../wire/mod.ts";
import { isListInput, partText, type SensitiveMember } from "./evidence.ts";

/** The marker in a receipt for an input that is not stored whole. */
export interface CutInput {
  /** The size of the input: its received text without white space outside strings, in UTF-8. */
  readonly bytes: number;
  /** The first bytes of that text, `headBytesMax` at most. */
  readonly head: string;
  /** SHA-256 of that text, in hex. */
  readonly sha256: string;
  /** Sensitive members whose value is `null` in `head` and under `sha256`. Absent if there are none. */
  readonly withheld?: readonly string[];
}

/** A shorter input is never cut, because its marker would be larger than the input. */
export const headBytesMax = 256;

/**
 * Returns the value of the part `input` for an input that is not stored whole. It is a list. An input is always an
 * object, so no agent can send an input that looks like a marker.
 *
 * @param sensitive the input's sensitive members. They are left out, so that nobody can guess an erased member from the
 *   marker
 */
export function cutInputText(inputText: string, sensitive: readonly SensitiveMember[]): string {
  const members = sensitive.filter(({ name }) => name.startsWith("input."));
  const shown = members
    .toSorted((a, b) => b.from - a.from)
    .reduce((text, { from, to }) => `${text.slice(0, from)}null${text.slice(to)}`, inputText);
  const cut = {
    bytes: Buffer.byteLength(inputText),
    head: headOf(shown),
    sha256: hash("sha256", shown, "hex"),
    ...(members.length === 0 ? {} : { withheld: members.map(({ name }) => name).toSorted() }),
  };
  return canonical([cut]);
}

/** Returns the first bytes of a text, up to the last whole character. */
function headOf(text: string): string {
  const bytes = Buffer.from(text.slice(0, headBytesMax));
  let end = Math.min(bytes.length, headBytesMax);
  // In UTF-8 a byte of the form 10xxxxxx continues a character.
  while (end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.toString("utf8", 0, end);
}

/** Returns the marker in a check's evidence, whose digest was verified; undefined if the input is whole or erased. */
export function readCutInput(evidence: string): CutInput | undefined {
  if (!isListInput(evidence)) return undefined;
  const [cut] = parseJsonList(partText(evidence, "input") ?? "");
  return isCutInput(cut) ? cut : unreadable;
}

function parseJsonList(text: string): readonly unknown[] {
  try {
    return JSON.parse(text) as readonly unknown[];
  } catch {
    return [];
  }
}

/** The result for any other list. A gate writes no such list, and a list is never an input. */
const unreadable: CutInput = { bytes: 0, head: "", sha256: "" };

function isCutInput(value: unknown): value is CutInput {
  const { bytes, head, sha256, withheld = [] } = (value ?? {}) as Partial<CutInput>;
  return (
    Number.isSafeInteger(bytes) &&
    typeof head === "string" &&
    typeof sha256 === "string" &&
    Array.isArray(withheld) &&
    withheld.every((name) => typeof name === "string")
  );
}
