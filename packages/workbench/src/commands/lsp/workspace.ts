import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { TextDocument } from "vscode-languageserver-textdocument";
import { contractOfPack } from "../../../../readers/src/tables.ts";
import {
  compileContracts,
  compileMandate,
  type PolicySet,
  type Diagnostic,
  type SourceFile,
} from "../../../../readers/src/contract.ts";
import { bad, good, type Result } from "../../../../core/src/wire/mod.ts";
import { openReady, readTests } from "../../../../svc-gate/src/contract-files.ts";
import { classifyFile, outlineOf, type Outline } from "./outline.ts";

/** The open documents, their problems, and the last readable text of those that are currently not YAML. */
export class Workspace {
  readonly #open: (uri: string) => TextDocument | undefined;
  readonly #outlines = new Map<string, Outline>();
  readonly #inForce = new Map<string, PolicySet>();

  constructor(open: (uri: string) => TextDocument | undefined) {
    this.#open = open;
  }

  /** The problems of a document, and for a mandate those of the contracts that it names, by URI. */
  check(document: TextDocument): ReadonlyMap<string, readonly Diagnostic[]> {
    const source = sourceOf(document);
    const found = new Map<string, Diagnostic[]>([[document.uri, []]]);
    for (const problem of this.#problems(source, document.uri))
      found.getOrInsertComputed(problem.span.file.name, () => []).push(problem);
    return found;
  }

  #problems(source: SourceFile, uri: string): readonly Diagnostic[] {
    const kind = classifyFile(source);
    if (kind === undefined) return [];
    if (kind === "test") {
      const tests = readTests(source);
      return tests.ok ? [] : tests.problem;
    }
    const compiled =
      kind === "pack"
        ? compileContracts([contractOfPack(source), source])
        : kind === "contract"
          ? compileContracts([source], { open: (name) => openReady(name) ?? this.#beside(uri, name) })
          : compileMandate(source, (name) => openReady(name) ?? this.#beside(uri, name));
    if (!compiled.ok) return compiled.problem;
    this.#inForce.set(uri, compiled.value);
    return [];
  }

  /** A contract of a mandate: the version in the editor, else the version on disk. Files are named by their URIs. */
  #beside(mandate: string, name: string): Result<SourceFile, string> {
    const uri = besideUri(mandate, name);
    if (uri === undefined) return bad("the mandate is not saved yet");
    const open = this.#open(uri);
    if (open !== undefined) return good(sourceOf(open));
    try {
      return good({ name: uri, text: readFileSync(fileURLToPath(uri), "utf8") });
    } catch (error) {
      return bad((error as NodeJS.ErrnoException).code === "ENOENT" ? "there is no such file" : "it cannot be read");
    }
  }

  /** The outline of the document's last text that was YAML. */
  outline(document: TextDocument): Outline | undefined {
    const outline = outlineOf(sourceOf(document));
    if (outline !== undefined) this.#outlines.set(document.uri, outline);
    return outline ?? this.#outlines.get(document.uri);
  }

  /** The result of compiling exactly this text. */
  findPolicySet(document: TextDocument): PolicySet | undefined {
    const compiled = this.#inForce.get(document.uri);
    return compiled?.text.includes(document.getText().trimEnd()) === true ? compiled : undefined;
  }

  forget(uri: string): void {
    this.#outlines.delete(uri);
    this.#inForce.delete(uri);
  }
}

export function sourceOf(document: TextDocument): SourceFile {
  return { name: document.uri, text: document.getText() };
}

/** The URI of a file that another file names; undefined if the other file is not on disk. */
export function besideUri(uri: string, name: string): string | undefined {
  if (name.startsWith("file:")) return name;
  return uri.startsWith("file:") ? pathToFileURL(join(dirname(fileURLToPath(uri)), name)).href : undefined;
}

/** Offsets of a file in the editor's units: lines and UTF-16 units. */
export function rangeOf({ span }: Pick<Diagnostic, "span">): {
  readonly start: EditorPosition;
  readonly end: EditorPosition;
} {
  const document = TextDocument.create(span.file.name, "yaml", 0, span.file.text);
  return { start: document.positionAt(span.from), end: document.positionAt(span.to) };
}

type EditorPosition = ReturnType<TextDocument["positionAt"]>;
