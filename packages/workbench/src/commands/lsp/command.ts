import { TextDocument } from "vscode-languageserver-textdocument";
import {
  DiagnosticSeverity,
  TextDocuments,
  TextDocumentSyncKind,
  type Diagnostic as EditorDiagnostic,
} from "vscode-languageserver";
import { createConnection, StreamMessageReader, StreamMessageWriter } from "vscode-languageserver/node";
import type { Diagnostic } from "../../../../readers/src/contract.ts";
import { io, version, type Outcome } from "../../../../gate/src/cli/mod.ts";
import { complete, define, format, hover } from "./answers.ts";
import { classifyFile } from "./outline.ts";
import { rangeOf, sourceOf, Workspace } from "./workspace.ts";

/** The time between the last key stroke and the compilation of a document. */
const pauseMs = 150;

/** `svc-gate lsp`: a language server on standard input and output, until the editor ends it. */
export async function lspCommand(): Promise<Outcome> {
  const { stdin, stdout } = io();
  const connection = createConnection(new StreamMessageReader(stdin), new StreamMessageWriter(stdout));
  const documents = new TextDocuments(TextDocument);
  const workspace = new Workspace((uri) => documents.get(uri));
  const put = boardOf((uri, diagnostics) => void connection.sendDiagnostics({ uri, diagnostics }));
  const timers = new Map<string, NodeJS.Timeout>();

  const check = (document: TextDocument): void => put(document.uri, workspace.check(document));
  /** A document, and the mandates that may name it. */
  const checkAll = (uri: string): void => {
    for (const document of documents.all())
      if (document.uri === uri || classifyFile(sourceOf(document)) === "mandate") check(document);
  };
  const later = (uri: string): void => {
    clearTimeout(timers.get(uri));
    timers.set(
      uri,
      setTimeout(() => checkAll(uri), pauseMs),
    );
  };

  connection.onInitialize(() => ({
    serverInfo: { name: "svc-gate", version },
    capabilities: {
      textDocumentSync: TextDocumentSyncKind.Incremental,
      completionProvider: { triggerCharacters: [".", "{", " "] },
      hoverProvider: true,
      definitionProvider: true,
      documentFormattingProvider: true,
    },
  }));
  documents.onDidChangeContent(({ document }) => later(document.uri));
  documents.onDidClose(({ document }) => {
    clearTimeout(timers.get(document.uri));
    workspace.forget(document.uri);
    put(document.uri, new Map());
  });
  connection.onCompletion(async ({ textDocument, position }) => {
    const document = documents.get(textDocument.uri);
    return document === undefined ? [] : complete(workspace, document, document.offsetAt(position));
  });
  connection.onHover(async ({ textDocument, position }) => {
    const document = documents.get(textDocument.uri);
    return document === undefined ? null : hover(workspace, document, document.offsetAt(position));
  });
  connection.onDefinition(({ textDocument, position }) => {
    const document = documents.get(textDocument.uri);
    return document === undefined ? null : define(workspace, document, document.offsetAt(position));
  });
  connection.onDocumentFormatting(({ textDocument }) => {
    const document = documents.get(textDocument.uri);
    return document === undefined ? [] : format(document);
  });
  documents.listen(connection);
  // The library ends the process when the editor sends `exit`. An editor that crashes only closes the stream.
  return new Promise((resolve) => {
    stdin.once("end", () => resolve({ exitCode: 0, text: "" }));
    connection.listen();
  });
}

type DiagnosticsByUri = ReadonlyMap<string, readonly Diagnostic[]>;

/** Shows the problems of each file: its own, and those as a part of mandates, each once. */
function boardOf(
  show: (uri: string, diagnostics: EditorDiagnostic[]) => void,
): (owner: string, found: DiagnosticsByUri) => void {
  const byOwner = new Map<string, DiagnosticsByUri>();
  return (owner, found) => {
    const touched = new Set([...found.keys(), ...(byOwner.get(owner)?.keys() ?? [])]);
    byOwner.set(owner, found);
    for (const uri of touched) {
      const all = [...byOwner.values()].flatMap((each) => each.get(uri) ?? []);
      const distinct = new Map(all.map((problem) => [`${problem.span.from} ${problem.message}`, problem]));
      show(uri, [...distinct.values()].map(toEditorDiagnostic));
    }
  };
}

function toEditorDiagnostic(problem: Diagnostic): EditorDiagnostic {
  const { code, message, hint } = problem;
  const text = hint === undefined ? message : `${message}\nhelp: ${hint}`;
  return { severity: DiagnosticSeverity.Error, source: "svc-gate", code, message: text, range: rangeOf(problem) };
}
