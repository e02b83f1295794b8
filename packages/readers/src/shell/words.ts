import type { SyntaxNode, Word, WordPart } from "unbash";
import { escapePattern } from "../path/name-pattern.ts";
import { documentText } from "./documents.ts";
import { understood, type Shapes } from "./shapes.ts";

/** A word of a command, as far as it is known before the shell runs. */
export interface Arg {
  /** Without its quotes. Anything that the shell fills in at run time stays as written: `$HOME/x`. */
  readonly text: string;
  /** The part of the text that is in the code itself, with `mark` for everything that the shell fills in. */
  readonly fixed: string;
  /** Does the program receive exactly this text? Variables, substitutions, `~` and braces are not known. */
  readonly known: boolean;
  /** Is it a pattern of file names? */
  readonly glob: boolean;
  /** Is it always one word? `$x` without quotes may become several words or none. */
  readonly single: boolean;
  /** Does it name a file that a command writes meanwhile: `<(...)`? */
  readonly process: boolean;
  /** The word as patterns of file names and variables, in order; undefined if another part is known only at run time. */
  readonly pieces: readonly WordPiece[] | undefined;
  /** Where the word is in the whole text; undefined in code, substitutions and here-documents. */
  readonly span?: TextSpan;
}

/** Positions in a text: the first character, and the one after the last. */
export interface TextSpan {
  readonly from: number;
  readonly to: number;
}

/** A pattern of file names, or a variable by its name. */
export type WordPiece =
  | string
  | { readonly variable: string; readonly isQuoted: boolean }
  /** One of these patterns: `{a,b}` is two words in bash and zsh, and one in dash. */
  | { readonly oneOf: readonly string[] };

export function literal(text: string): Arg {
  const pieces = [escapePattern(text)];
  return { text, fixed: text, known: true, glob: false, single: true, process: false, pieces };
}

/** The pattern of file names that the word is, if it has no variables. */
export function patternOf({ pieces }: Arg): string | undefined {
  return pieces?.every((piece) => typeof piece === "string") === true ? pieces.join("") : undefined;
}

/** Replaces everything that the shell fills in. No shell text contains this character. */
export const mark = "\u0000";

/** A word, or a part of one, that is known only when the shell runs. */
export function putIn(text: string): Arg {
  return { text, fixed: mark, known: false, glob: false, single: false, process: false, pieces: undefined };
}

function variable(text: string, name: string): Arg {
  return { ...putIn(text), pieces: [{ variable: name, isQuoted: false }] };
}

export function readWord(word: Word, shapes: Pick<Shapes, "braces"> = understood): Arg {
  const document = documentIn(word);
  if (document !== undefined) return literal(document);
  const home = /(?:^|[=:])~/.test(word.text);
  const bare = word.parts === undefined ? word.text : word.parts.map(bareText).join("");
  const hasNoBraces = shapes.braces(bare.replace(/\\./gs, ""));
  const found = word.parts === undefined ? literal(word.value) : joinParts(word.parts.map(readPart));
  return {
    ...found,
    known: found.known && !home && hasNoBraces,
    pieces: hasNoBraces ? checkedPieces(word, homePieces(word, found)?.map(shellPiece)) : undefined,
  };
}

/** The text of a here-document, if the word is that and nothing else. */
function documentIn({ parts }: Word): string | undefined {
  const [quoted, ...others] = parts ?? [];
  if (quoted?.type !== "DoubleQuoted" || others.length > 0) return undefined;
  const [part, ...rest] = quoted.parts;
  return part?.type === "CommandExpansion" && rest.length === 0 ? documentText(part) : undefined;
}

/** Without the option `globstar`, `**` is `*`. */
function shellPiece(piece: WordPiece): WordPiece {
  return typeof piece === "string" ? piece.replace(/(\\[^])|\*+/g, (_, escaped?: string) => escaped ?? "*") : piece;
}

/** The pieces with `~` for the home folder, and `\~` for a file with that name. */
function homePieces({ text }: Word, { pieces }: Arg): readonly WordPiece[] | undefined {
  const [first, ...rest] = pieces ?? [];
  if (first === undefined) return pieces;
  if (typeof first !== "string") return "variable" in first && first.variable === "HOME" ? ["~", ...rest] : pieces;
  if (/[=:]~|^~[^/]/.test(text)) return undefined;
  return first.startsWith("~") && !text.startsWith("~") ? [`\\${first}`, ...rest] : pieces;
}

/** `{a,b}` with plain names. */
function readBraces(text: string): Arg["pieces"] {
  if (!/^\{[\w./-]*(?:,[\w./-]*)+\}$/.test(text)) return undefined;
  return [{ oneOf: [...text.slice(1, -1).split(","), escapePattern(text)] }];
}

/**
 * Shells read braces before variables and `~`: `$a{b,c}` is `$ab $ac`. zsh reads `$a[1]` and `$a:r` in its own way. The number
 * of processors is one, or nothing where there is no such program.
 */
function checkedPieces({ text, parts = [] }: Word, pieces: Arg["pieces"]): Arg["pieces"] {
  if (/^(?:-j|--(?:jobs|parallel)=)?\$\(nproc\)$/.test(text)) return [text.replace("$(nproc)", "0")];
  const all = parts.flatMap((part): readonly Pick<WordPart, "text" | "type">[] =>
    part.type === "DoubleQuoted" ? part.parts : [part],
  );
  const isJoined = all.some(
    (part, at) => part.type === "SimpleExpansion" && /^(?:[[{]|:[A-Za-z&])/.test(all[at + 1]?.text ?? ""),
  );
  const isHome = all.some(({ type }) => type === "BraceExpansion") && text.includes("~", 1);
  return isJoined || isHome ? undefined : pieces;
}

function joinParts(parts: readonly Arg[]): Arg {
  return {
    text: parts.map(({ text }) => text).join(""),
    fixed: parts.map(({ fixed }) => fixed).join(""),
    known: parts.every(({ known }) => known),
    glob: parts.some(({ glob }) => glob),
    single: parts.every(({ single }) => single),
    process: parts.some(({ process }) => process),
    pieces: joinPieces(parts.map(({ pieces }) => pieces)),
  };
}

function joinPieces(parts: readonly (readonly WordPiece[] | undefined)[]): readonly WordPiece[] | undefined {
  const joined: WordPiece[] = [];
  for (const part of parts) {
    if (part === undefined) return undefined;
    for (const piece of part) {
      const last = joined.at(-1);
      if (typeof piece === "string" && typeof last === "string") joined[joined.length - 1] = last + piece;
      else joined.push(piece);
    }
  }
  return joined;
}

/** The unquoted letters of a part. A brace expansion that the parser sees is not known anyway. */
function bareText(part: WordPart): string {
  return part.type === "Literal" || part.type === "Glob" ? part.text : "_";
}

function readPart(part: WordPart): Arg {
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
      return literal(part.value);
    case "AnsiCQuoted":
      // dash reads a `$` before single quotes.
      return { ...literal(part.value), pieces: undefined };
    case "DoubleQuoted":
    case "LocaleString": {
      const { text, fixed, known, pieces } = joinParts(part.parts.map(readPart));
      const quoted = pieces?.map((piece) =>
        typeof piece === "object" && "variable" in piece ? { ...piece, isQuoted: true } : piece,
      );
      const isList = part.parts.some((inner) => /^\$(?:@|\{.*[@*]\]?)/s.test(inner.text));
      // The locale may translate `$"..."`.
      const isPlain = part.type === "DoubleQuoted";
      return {
        ...literal(text),
        fixed,
        known: known && isPlain,
        single: !isList,
        pieces: isPlain ? quoted : undefined,
      };
    }
    case "Glob":
      return { ...literal(part.text), glob: true, single: false, pieces: [part.text] };
    case "ExtendedGlob":
      return { ...literal(part.text), glob: true, single: false, pieces: ["*"] };
    case "ProcessSubstitution":
      return { ...putIn(part.text), single: true, process: true };
    case "SimpleExpansion":
      // `$?`, `$#` and `$$` are numbers.
      return /^\$[?#$]$/.test(part.text)
        ? { ...putIn(part.text), pieces: ["0"] }
        : variable(part.text, part.text.slice(1));
    case "ParameterExpansion":
      // A number, or nothing.
      if (/^\$\{PIPESTATUS\[\d+\]\}$/.test(part.text)) return { ...putIn(part.text), pieces: [{ oneOf: ["0", ""] }] };
      return part.prefix === undefined && part.index === undefined && part.operation === undefined
        ? variable(part.text, part.parameter)
        : putIn(part.text);
    case "BraceExpansion":
      return { ...putIn(part.text), pieces: readBraces(part.text) };
    case "CommandExpansion":
    case "ArithmeticExpansion":
      return putIn(part.text);
    default:
      return part satisfies never;
  }
}

/**
 * The text that a node other than an argument or a file receives at run time. It can reveal as much as an argument:
 * `cat <<< $KEY`, `[[ $KEY == a* ]] && echo a`.
 */
export function unknownIn(node: SyntaxNode): readonly string[] {
  if (node.type === "ArithmeticWord") return /^\d+$/.test(node.value) ? [] : [node.value];
  // `[[ KEY -gt 5 ]]` reads variables by their bare names, like `((KEY > 5))`.
  if (node.type === "TestBinary" && /^-(?:eq|ne|lt|le|gt|ge)$/.test(node.operator))
    return [node.left, node.right].map((word) => readWord(word).text).filter((text) => !/^[-+]?\d+$/.test(text));
  return wordsBeside(node)
    .map((word) => readWord(word))
    .filter(({ known }) => !known)
    .map(({ text }) => text);
}

function wordsBeside(node: SyntaxNode): readonly Word[] {
  switch (node.type) {
    case "HereString":
      return node.target === undefined ? [] : [node.target];
    case "HereDocBody":
      return [{ type: "Word", text: "", value: "", pos: node.pos, end: node.end, parts: node.parts }];
    case "Case":
      return [node.word];
    case "CaseItem":
      return node.pattern;
    case "TestUnary":
      return [node.operand];
    case "TestBinary":
      return [node.left, node.right];
    default:
      return [];
  }
}

/** The options in a word, each with the text attached to it: `--mode=x` is one, `-rf` is `-r` with `f`, and `-f`. */
export function* optionsIn(text: string): Generator<readonly [option: string, value: string | undefined]> {
  if (text.startsWith("--")) {
    const at = text.indexOf("=");
    yield at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
  } else for (let at = 1; at < text.length; at += 1) yield [`-${text.charAt(at)}`, text.slice(at + 1) || undefined];
}

/** Is the option one of these, which spaces separate? */
export function isIn(options: string | undefined, option: string): boolean {
  return options !== undefined && options.split(" ").includes(option);
}

/**
 * The single options of a command, sorted: `-rf` is `-f` and `-r`, `--mode=x` is `--mode`; none after `--`. Directly
 * after an option, `--` may be its value, as in `git push -o -- --force`: then more options may follow.
 */
export function flagsOf(args: readonly Arg[]): readonly string[] {
  const found = new Set<string>();
  for (const [at, { text, known }] of args.entries()) {
    if (text === "--" && !/^-(?!-[^=]*=)/.test(args[at - 1]?.text ?? "")) break;
    if (/^--[^=]/.test(text)) {
      if (known || /^--[A-Za-z0-9-]+=/.test(text)) found.add(text.split("=", 1)[0] ?? text);
    } else if (known && /^-[^-]/.test(text)) {
      for (const letter of text.slice(1)) found.add(`-${letter}`);
    }
  }
  return [...found].toSorted();
}

/** Options before a subcommand that take the next word as their value. */
const globalValues: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    git: "-C -c --git-dir --work-tree --namespace --config-env --attr-source --exec-path",
    docker: "-c --context -H --host -l --log-level --config",
    podman: "-c --connection --url --log-level --root --runroot",
    kubectl: "-n --namespace --context --kubeconfig --cluster --user -s --server --as --token --request-timeout",
    helm: "-n --namespace --kube-context --kubeconfig",
    aws: "--profile --region --output --endpoint-url --query --ca-bundle --cli-read-timeout --cli-connect-timeout --color",
    gcloud: "--project --account --configuration --format --verbosity",
    az: "--subscription --output -o --query",
    gh: "-R --repo",
    npm: "--prefix -C -w --workspace",
    pnpm: "--dir -C --filter -F",
    yarn: "--cwd",
    cargo: "--manifest-path --config --color -Z -C",
    systemctl: "-H --host -M --machine -t --type",
    nats: "-s --server --creds --nkey --context --user --password",
    rclone: "--config --log-level",
    restic: "-r --repo -p --password-file --cache-dir",
    vault: "-address -namespace",
    doppler: "--token --scope --config-dir",
    velero: "-n --namespace --kubeconfig --kubecontext",
  }).map(([name, options]) => [name, options.split(" ")]),
);

/** The index of the first word that is not an option or its value; the number of arguments if there is none. */
export function subcommandIndex(name: string, args: readonly Arg[]): number {
  const values = globalValues.get(name) ?? [];
  for (let at = 0; at < args.length; at += 1) {
    const { text } = args[at] ?? literal("");
    if (!/^-./.test(text)) return at;
    if (values.includes(text)) at += 1;
  }
  return args.length;
}

/** Words that are not options, in order; without the known values of options before the subcommand. */
export function wordsOf(name: string, args: readonly Arg[]): readonly string[] {
  const values = globalValues.get(name) ?? [];
  const found: string[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const { text } = args[at] ?? literal("");
    if (text === "--") return [...found, ...args.slice(at + 1).map((arg) => arg.text)];
    if (!/^-./.test(text)) found.push(text);
    else if (found.length === 0 && values.includes(text)) at += 1;
  }
  return found;
}
