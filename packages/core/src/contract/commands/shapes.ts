import { didYouMean } from "../../wire/mod.ts";
import {
  fileKinds,
  kinds,
  roles,
  type FormOption,
  type Kind,
  type FileRole,
  type WordPosition,
  type WordShape,
} from "./form.ts";

/** A shape that cannot be read: what is wrong, and what to write. */
export interface ShapeProblem {
  readonly message: string;
  readonly hint: string | undefined;
}

type Read<Part> = Part | ShapeProblem;

/** Is it the problem of a shape? */
export function isProblem(shape: object): shape is ShapeProblem {
  return "message" in shape;
}

/**
 * Reads `reads FILE *`, `NAME ?`, `main | master`, `reads TREE * or .`. The sign says how often the word may occur, and the
 * last part which word counts if nobody writes one.
 */
export function parsePosition(text: string): Read<WordPosition> {
  const parts = text.trim().split(/\s+/);
  const fallback = parts.at(-2) === "or" ? parts.splice(-2)[1] : undefined;
  const sign = /^[?*+]$/.test(parts.at(-1) ?? "") && parts.length > 1 ? (parts.pop() ?? "") : "";
  const shape = parts.join(" ");
  const word = parseShape(shape);
  if (isProblem(word)) return word;
  const isRepeated = sign === "*" || sign === "+";
  if (isRepeated && word.kind === "COMMAND")
    return { message: "`COMMAND` is all words up to the end already", hint: "write it without a sign" };
  return { ...word, isOptional: sign === "?" || sign === "*", isRepeated, fallback };
}

/** Reads the shape of a word: `reads FILE`, `TEXT`, `main | master`. */
export function parseShape(text: string): Read<WordShape> {
  const parts = text.trim().split(/\s+/);
  const [first = "", second] = parts;
  const role = (roles as readonly string[]).includes(first) && second !== undefined ? (first as FileRole) : undefined;
  const [kind, ...rest] = role === undefined ? parts : parts.slice(1);
  if (kind !== undefined && rest.length === 0 && kind in kinds) return shapeOfKind(kind as Kind, role);
  const [beside, texts] = splitKind(text.split("|").map((each) => each.trim()));
  const odd = texts.find((each) => each === "" || /\s/.test(each));
  // One word in capitals is a kind with a slip; `ON | OFF` are texts.
  const isSlip = texts.length === 1 && /^[A-Z]{3,}$/.test(text.trim()) && text.trim() !== "HEAD";
  if (role !== undefined || odd !== undefined || isSlip || texts.some((each) => each in kinds)) {
    return { message: `\`${text.trim()}\` is not a kind of word`, hint: hintForShape(parts, kind ?? "") };
  }
  return { kind: beside, texts, role: undefined };
}

/** `TASK | all`: a kind that names no file, and texts beside it. */
function splitKind(parts: readonly string[]): readonly [kind: Kind | undefined, texts: readonly string[]] {
  const at = parts.findIndex((part) => part in kinds && !fileKinds.has(part as Kind));
  return parts.length < 2 || at < 0 ? [undefined, parts] : [parts[at] as Kind, parts.toSpliced(at, 1)];
}

/** What was probably meant: a comma, texts, a role or a kind. */
function hintForShape(parts: readonly string[], kind: string): string {
  const option = parts.find((each) => each.startsWith("-"));
  if (option !== undefined) return `a comma is missing before \`${option}\``;
  if (parts.length > 1 && parts.every((each) => /^[a-z][a-z0-9-]*$/.test(each)))
    return `write \`${parts.join(" | ")}\` for one of these texts, or \`${parts.join(", ")}\` for one after the other`;
  const known = Object.keys(kinds);
  const all = `kinds are ${known.join(", ")}; texts are written \`a | b\``;
  if (parts.length > 1 && !(roles as readonly string[]).includes(parts[0] ?? ""))
    return didYouMean(parts[0] ?? "", roles, `roles are ${roles.join(", ")}`);
  return didYouMean(kind, known, all);
}

function shapeOfKind(kind: Kind, role: FileRole | undefined): Read<WordShape> {
  const isFile = fileKinds.has(kind);
  if (isFile && role === undefined)
    return { message: `\`${kind}\` needs a role`, hint: `write \`reads ${kind}\` or \`writes ${kind}\`` };
  if (!isFile && role !== undefined)
    return { message: `\`${kind}\` names no file, so it has no role`, hint: `write \`${kind}\`` };
  if (role === "enters" && kind !== "FOLDER")
    return { message: "only a `FOLDER` is entered", hint: "write `enters FOLDER`" };
  return { kind, texts: [], role };
}

const name = String.raw`(?:--?[A-Za-z0-9][A-Za-z0-9_.-]*|-NUMBER|[!(),;]|\{\}|-[?#@])`;
const optionText = new RegExp(String.raw`^(${name}(?:\s*\|\s*${name})*)(?:\s+\((.+)\)|\s+(\S.*))?$`, "s");

/** Reads `-a`, `-m | --message TEXT`, `--color (always | never)`, `-NUMBER`. */
export function parseOption(text: string): Read<FormOption> {
  const [, names, optional, value] = optionText.exec(text.trim()) ?? [];
  if (names === undefined)
    return {
      message: `\`${text}\` is not an option`,
      hint: "write `-a`, `-m | --message TEXT` or `--color (always | never)`",
    };
  const written = optional ?? value;
  const shape = written === undefined ? undefined : parseShape(written);
  if (shape !== undefined && isProblem(shape)) return shape;
  return { names: names.split("|").map((each) => each.trim()), value: shape, isOptional: optional !== undefined };
}
