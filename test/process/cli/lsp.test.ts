/**
 * Goal: an editor that speaks the Language Server Protocol gets the gate's own errors, and help about the language.
 * Method: the server runs as a process and the test sends the protocol's frames; `|` marks the cursor in texts.
 */
import assert from "node:assert/strict";
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { locationAt } from "../../../packages/workbench/src/commands/lsp/cursor-location.ts";
import { functions } from "../../../packages/readers/src/ir.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const root = fileURLToPath(new URL("../../..", import.meta.url));

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly uri: string; readonly diagnostics: readonly Shown[] };
  readonly result?: unknown;
  readonly error?: unknown;
}

interface Shown {
  readonly code: string;
  readonly message: string;
  readonly range: { readonly start: { readonly line: number; readonly character: number } };
}

interface Item {
  readonly label: string;
  readonly detail?: string;
  readonly documentation?: string;
}

/** The editor's side: frames with `Content-Length`, as in the protocol. */
class Editor {
  readonly child: ChildProcessWithoutNullStreams;
  readonly #answers = new Map<number, (message: Message) => void>();
  readonly #shown = new Map<string, readonly Shown[]>();
  #waiting: (() => void)[] = [];
  #bytes = Buffer.alloc(0);
  #id = 0;

  constructor() {
    this.child = spawn(process.execPath, [join(root, "packages", "svc-gate", "src", "main.ts"), "lsp", "--stdio"]);
    this.child.stdout.on("data", (chunk: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk]);
      for (let message = this.#next(); message !== undefined; message = this.#next()) this.#receive(message);
    });
  }

  #next(): Message | undefined {
    const head = this.#bytes.indexOf("\r\n\r\n");
    if (head === -1) return undefined;
    const length = Number(/Content-Length: (\d+)/.exec(this.#bytes.toString("ascii", 0, head))?.[1]);
    if (this.#bytes.length < head + 4 + length) return undefined;
    const body = this.#bytes.toString("utf8", head + 4, head + 4 + length);
    this.#bytes = this.#bytes.subarray(head + 4 + length);
    return JSON.parse(body) as Message;
  }

  #receive(message: Message): void {
    if (message.id !== undefined && message.method === undefined) this.#answers.get(message.id)?.(message);
    if (message.method !== "textDocument/publishDiagnostics" || message.params === undefined) return;
    this.#shown.set(message.params.uri, message.params.diagnostics);
    for (const wake of this.#waiting.splice(0)) wake();
  }

  send(method: string, params: unknown, id?: number): void {
    const body = JSON.stringify({ jsonrpc: "2.0", ...(id === undefined ? {} : { id }), method, params });
    this.child.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  }

  async ask(method: string, params: unknown): Promise<unknown> {
    this.#id += 1;
    const id = this.#id;
    const answer = new Promise<Message>((resolve) => this.#answers.set(id, resolve));
    this.send(method, params, id);
    const { result, error } = await answer;
    assert.equal(error, undefined);
    return result;
  }

  open(uri: string, text: string): void {
    this.send("textDocument/didOpen", { textDocument: { uri, languageId: "yaml", version: 1, text } });
  }

  change(uri: string, version: number, text: string): void {
    this.send("textDocument/didChange", { textDocument: { uri, version }, contentChanges: [{ text }] });
  }

  /** Returns a file's diagnostics as soon as the condition is true for them. */
  async shown(uri: string, when: (problems: readonly Shown[]) => boolean): Promise<readonly Shown[]> {
    for (;;) {
      const problems = this.#shown.get(uri);
      if (problems !== undefined && when(problems)) return problems;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }
}

const contract = `contract: mail
limits: { recipients: 5 }
platform:
  type: object
  required: [wallet]
  properties:
    wallet: { type: object, required: [owner], properties: { owner: { type: string } } }
let:
  many: size(input.to)
tools:
  mail.send:
    input:
      type: object
      additionalProperties: false
      required: [to, size]
      properties:
        to: { type: array, items: { type: string }, maxItems: 100 }
        size: { type: number }
    requires: platform.present
    otherwise: ALLOW
  mail.read:
    input: { type: object, additionalProperties: false, required: [folder], properties: { folder: { type: string } } }
    otherwise: ALLOW
counters:
  mails: { of: [mail.send], per: session, within: 1h }
rules:
  - rule: many-recipients
    on: [mail.send]
    when: many > limits.recipients && counters.mails > 3 && input.to.exists(x, x.startsWith("a"))
    verdict: ESCALATE
    reason: "{size(input.to)} are many"
  - { rule: folders, on: mail.read, when: input.folder == "x", verdict: BLOCK, reason: never }
`;

suite("svc-gate lsp", () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-lsp-"));
  const uriOf = (name: string): string => pathToFileURL(join(folder, name)).href;
  let editor: Editor;
  let count = 0;

  before(async () => {
    editor = new Editor();
    const { capabilities } = (await editor.ask("initialize", { processId: null, rootUri: null, capabilities: {} })) as {
      capabilities: Record<string, unknown>;
    };
    assert.deepEqual(
      ["completionProvider", "hoverProvider", "definitionProvider", "documentFormattingProvider"].filter(
        (name) => !(name in capabilities),
      ),
      [],
    );
    editor.send("initialized", {});
  });
  after(() => {
    editor.child.kill();
    rmSync(folder, { recursive: true });
  });

  /**
   * Opens a text with the cursor at `|`; if `before` is given, opens that text first and then types the last strokes.
   */
  async function at(marked: string, earlier?: string): Promise<{ textDocument: { uri: string }; position: object }> {
    count += 1;
    const uri = uriOf(`open${count}.yaml`);
    const offset = marked.indexOf("|CURSOR|");
    assert.notEqual(offset, -1);
    const text = marked.replace("|CURSOR|", "");
    editor.open(uri, earlier ?? text);
    if (earlier !== undefined) {
      await editor.ask("textDocument/completion", { textDocument: { uri }, position: { line: 0, character: 0 } });
      editor.change(uri, 2, text);
    }
    const lines = text.slice(0, offset).split("\n");
    return { textDocument: { uri }, position: { line: lines.length - 1, character: lines.at(-1)?.length ?? 0 } };
  }

  async function completed(marked: string, earlier?: string): Promise<readonly Item[]> {
    return (await editor.ask("textDocument/completion", await at(marked, earlier))) as readonly Item[];
  }

  const condition = "many > limits.recipients";

  test("the server shows errors with code, position and hint, and removes them when they are fixed", async () => {
    const uri = uriOf("errors.yaml");
    editor.open(uri, contract.replace("limits.recipients", "limits.recipient"));
    const [problem, ...others] = await editor.shown(uri, (problems) => problems.length > 0);
    assert.deepEqual(others, []);
    assert.equal(problem?.code, "unknown-limit");
    says("error with its hint", problem.message);
    const line = contract.split("\n").findIndex((text) => text.includes("many >"));
    assert.deepEqual(problem.range.start.line, line);
    editor.change(uri, 2, contract);
    assert.deepEqual(await editor.shown(uri, (problems) => problems.length === 0), []);
  });

  test("the server shows the errors of a mandate and of its open contracts in their own files", async () => {
    writeFileSync(join(folder, "mail.yaml"), contract);
    const [mandate, mail] = [uriOf("mandate.yaml"), uriOf("mail.yaml")];
    editor.open(mandate, "mandate: m\ncontracts: [mail.yaml, none.yaml]\nlimits: { mail: { recipients: many } }\n");
    const found = await editor.shown(mandate, (problems) => problems.length > 0);
    assert.deepEqual(
      found.map(({ code }) => code),
      ["no-file", "limit"],
    );
    editor.open(mail, contract.replace("mails > 3", "mail > 3"));
    assert.deepEqual(
      (await editor.shown(mail, (problems) => problems.length > 0)).map(({ code }) => code),
      ["unknown-counter"],
    );
    const location = { textDocument: { uri: mandate }, position: { line: 1, character: 14 } };
    assert.equal(((await editor.ask("textDocument/definition", location)) as { uri: string }).uri, mail);
  });

  // Completion once took minutes here. The bound only detects a hang; it does not measure time.
  test("the server answers in a mandate that is not saved and on a very long line", { timeout: 120_000 }, async () => {
    const uri = "untitled:Untitled-1";
    editor.open(uri, "mandate: m\ncontracts: [a.yaml]\n");
    assert.deepEqual(
      (await editor.shown(uri, (problems) => problems.length > 0)).map(({ code }) => code),
      ["no-file"],
    );
    const location = { textDocument: { uri }, position: { line: 1, character: 14 } };
    assert.equal(await editor.ask("textDocument/definition", location), null);
    const long = `contract: c\nsummary: ${"{ a : [".repeat(60_000)}`;
    editor.change(uri, 2, long);
    const end = { line: 1, character: long.length };
    const offered = await editor.ask("textDocument/completion", { textDocument: { uri }, position: end });
    assert.ok(offered === null || typeof offered === "object");
  });

  test("the server shows the errors of a test file", async () => {
    const uri = uriOf("x.test.yaml");
    editor.open(uri, "cases: [{ case: a, tool: t, expect: MAYBE }]\n");
    assert.deepEqual(
      (await editor.shown(uri, (problems) => problems.length > 0)).map(({ code }) => code),
      ["verdict"],
    );
  });

  test("completion offers what may be written at the cursor", async () => {
    const labels = async (from: string, to: string, earlier?: string): Promise<readonly string[]> =>
      (await completed(contract.replace(from, to), earlier)).map(({ label }) => label);
    const has = async (
      from: string,
      to: string,
      wanted: readonly string[],
      not: readonly string[] = [],
    ): Promise<void> => {
      const found = await labels(from, to);
      assert.deepEqual(
        wanted.filter((name) => !found.includes(name)),
        [],
        `${to} lacks`,
      );
      assert.deepEqual(
        not.filter((name) => found.includes(name)),
        [],
        `${to} has`,
      );
    };
    await has("counters:\n", "|CURSOR|\ncounters:\n", ["rules", "platform", "summary"], ["verdict"]);
    await has("    verdict: ESCALATE\n", "    |CURSOR|\n", ["verdict", "final", "mode"], ["tools"]);
    await has("    verdict: ESCALATE\n", "    verdict: |CURSOR|\n", ["ALLOW", "ESCALATE", "BLOCK"]);
    await has("verdict: BLOCK, reason", "verdict: |CURSOR|, reason", ["ALLOW", "ESCALATE", "BLOCK"]);
    await has("verdict: BLOCK, reason", "|CURSOR|, reason", ["verdict", "final"]);
    await has("type: number", "type: |CURSOR|", ["string", "object"]);
    await has("type: number", "|CURSOR|", ["minimum", "enum", "$ref"], ["verdict"]);
    await has("per: session", "per: session, counting: |CURSOR|", ["attempts", "released"]);
    await has("on: [mail.send]", "on: [|CURSOR|]", ["mail.send", "mail.read"]);
    await has(condition, "|CURSOR|", ["input", "limits", "many", "size", "duration"], ["mails", "folder"]);
    await has(condition, "limits.|CURSOR|", ["recipients"], ["mails", "size"]);
    await has(condition, "counters.|CURSOR|", ["mails"]);
    await has(condition, "counters.mails.|CURSOR|", ["held"]);
    await has(condition, "input.|CURSOR|", ["to", "size"], ["folder"]);
    await has('input.folder == "x"', "input.|CURSOR|", ["folder"], ["to"]);
    await has(condition, "platform.|CURSOR|", ["wallet", "present"]);
    await has(condition, "platform.wallet.|CURSOR|", ["owner"]);
    await has(condition, "session.|CURSOR|", ["present"]);
    await has(condition, "input.to.|CURSOR|", ["exists", "size"], ["startsWith"]);
    await has("{size(input.to)} are", "{input.|CURSOR|} are", ["to"]);
    await has("are many", "are |CURSOR|", [], ["input", "limits"]);
    await has("size(input.to)\n", "input.|CURSOR|\n", ["to", "folder"]);
    await has("per: session", "per: platform.|CURSOR|", ["wallet"]);
    await has("requires: platform.present", "requires: |CURSOR|", ["platform", "session"]);
    await has("    requires: platform.present", "    |CURSOR|\n    requires: platform.present", ["numbers"]);
    await has("requires: platform.present", "numbers: |CURSOR|", ["double"], ["ALLOW"]);
  });

  test("completion, hover and definition work for the members under `sensitive:`", async () => {
    const listing = (list: string): string => contract.replace("let:\n", `sensitive: ${list}\nlet:\n`);
    const offered = async (list: string): Promise<readonly string[]> =>
      (await completed(listing(list))).map(({ label }) => label).toSorted();
    for (const start of ["[", "[input.to, ", "\n  - ", "\n  - input.to\n  - "]) {
      const end = start.startsWith("[") ? "]" : "";
      assert.deepEqual(await offered(`${start}|CURSOR|${end}`), ["input", "platform"], start);
      assert.deepEqual(await offered(`${start}input.|CURSOR|${end}`), ["folder", "size", "to"], start);
      assert.deepEqual(await offered(`${start}platform.|CURSOR|${end}`), ["wallet"], start);
      assert.deepEqual(await offered(`${start}platform.wallet.o|CURSOR|${end}`), ["owner"], start);
      assert.deepEqual(await offered(`${start}limits.|CURSOR|${end}`), [], start);
    }
    const declared = [
      ["[platform.wallet.ow|CURSOR|ner]", "`platform.wallet.owner`: `{ type: string }`", "owner"],
      ["\n  - input.fol|CURSOR|der", "`input.folder`: `{ type: string }`", "folder: {"],
    ] as const;
    for (const [list, shown, line] of declared) {
      const text = listing(list);
      const location = await at(text);
      const { contents } = (await editor.ask("textDocument/hover", location)) as { contents: { value: string } };
      assert.equal(contents.value, shown);
      const { range } = (await editor.ask("textDocument/definition", location)) as {
        range: { start: { line: number } };
      };
      assert.ok(text.split("\n")[range.start.line]?.includes(line));
    }
  });

  test("completion in a text that is not valid YAML uses the last valid text", async () => {
    const marked = contract.replace(`when: ${condition}`, `when: "!(input.|CURSOR|`);
    assert.ok((await completed(marked, contract)).some(({ label }) => label === "to"));
  });

  test("completion describes each key and each function", async () => {
    const keys = await completed(contract.replace("    verdict: ESCALATE\n", "    |CURSOR|\n"));
    says("key final", keys.find(({ label }) => label === "final")?.documentation ?? "");
    const names = await completed(contract.replace(condition, "|CURSOR|"));
    const starts = functions.find(({ name }) => name === "startsWith");
    assert.equal(names.find(({ label }) => label === "startsWith")?.detail, starts?.doc);
  });

  test("a hover shows the declaration, the description of a function and the inferred type", async () => {
    const over = async (from: string, to: string): Promise<string> => {
      const location = await at(contract.replace(from, to));
      // The type is known as soon as the text has compiled.
      await editor.shown(location.textDocument.uri, () => true);
      const found = (await editor.ask("textDocument/hover", location)) as { contents: { value: string } } | null;
      return found?.contents.value ?? "";
    };
    const hovers = [
      ["limit", "limits.recipients", "limits.rec|CURSOR|ipients"],
      ["member", "input.to.exists", "input.t|CURSOR|o.exists"],
      ["counter", "counters.mails >", "counters.mai|CURSOR|ls >"],
      ["function", "x.startsWith", "x.starts|CURSOR|With"],
      ["name", "many > limits", "ma|CURSOR|ny > limits"],
      ["key", "    verdict: ESC", "    verd|CURSOR|ict: ESC"],
    ] as const;
    for (const [what, from, to] of hovers) says(`hover over a ${what}`, await over(from, to));
    assert.equal(await over("reason: never }", "reason: n|CURSOR|ever }"), "");
  });

  test("go to definition finds limits, counters, names, members, facts and tools", async () => {
    const lines = contract.split("\n");
    const goesTo = async (from: string, to: string, declaration: string): Promise<void> => {
      const found = await editor.ask("textDocument/definition", await at(contract.replace(from, to)));
      assert.ok(found !== null, to);
      const { range } = found as { range: { start: { line: number; character: number } } };
      assert.ok(
        lines[range.start.line]?.slice(range.start.character).startsWith(declaration),
        `${to}: ${lines[range.start.line]}`,
      );
    };
    await goesTo("limits.recipients", "limits.rec|CURSOR|ipients", "recipients: 5");
    await goesTo("counters.mails", "counters.m|CURSOR|ails", "mails: {");
    await goesTo("many > limits", "m|CURSOR|any > limits", "many: size");
    await goesTo("input.to.exists", "input.t|CURSOR|o.exists", "to: { type: array");
    await goesTo("input.folder", "input.fol|CURSOR|der", "folder: { type: string");
    await goesTo("on: [mail.send]", "on: [mail.s|CURSOR|end]", "mail.send:");
    await goesTo("on: mail.read", "on: mail|CURSOR|.read", "mail.read:");
    await goesTo("many > limits.recipients", "platform.wallet.own|CURSOR|er == tool", "owner: { type");
  });

  test("formatting does what `svc-gate fmt` does, and leaves text that is not YAML alone", async () => {
    const options = { tabSize: 2, insertSpaces: true };
    const uri = uriOf("format.yaml");
    editor.open(uri, "tools: {}\ncontract:   c # why\n");
    const [edit] = (await editor.ask("textDocument/formatting", { textDocument: { uri }, options })) as {
      newText: string;
    }[];
    assert.equal(edit?.newText, "contract: c # why\ntools: {}\n");
    editor.change(uri, 2, "contract: [");
    assert.deepEqual(await editor.ask("textDocument/formatting", { textDocument: { uri }, options }), []);
  });

  test("the server survives requests at the end of an incomplete contract", async () => {
    const uri = uriOf("half.yaml");
    const text = readFileSync(join(root, "contracts", "session-flow.yaml"), "utf8");
    editor.open(uri, text);
    for (let length = 0; length < text.length; length += 97) {
      editor.change(uri, 2 + length, text.slice(0, length));
      const lines = text.slice(0, length).split("\n");
      const location = {
        textDocument: { uri },
        position: { line: lines.length - 1, character: lines.at(-1)?.length ?? 0 },
      };
      for (const method of ["completion", "hover", "definition"]) await editor.ask(`textDocument/${method}`, location);
    }
    assert.equal(editor.child.exitCode, null);
  });

  test("the server exits when the editor sends `exit`", async () => {
    const other = new Editor();
    await other.ask("initialize", { processId: null, rootUri: null, capabilities: {} });
    await other.ask("shutdown", null);
    const ended = new Promise((resolve) => other.child.once("exit", resolve));
    other.send("exit", null);
    assert.equal(await ended, 0);
  });

  test("the server exits when the editor closes its input", async () => {
    const other = new Editor();
    await other.ask("initialize", { processId: null, rootUri: null, capabilities: {} });
    const ended = new Promise((resolve) => other.child.once("exit", resolve));
    other.child.stdin.end();
    assert.equal(await ended, 0);
  });
});

suite("the position of a cursor", () => {
  const cases: readonly (readonly [marked: string, path: string, key: string | undefined, before: string])[] = [
    ["|", "", undefined, ""],
    ["con|", "", undefined, "con"],
    ["contract: c|", "", "contract", "c"],
    ["tools:\n  a.b:\n    |", "tools.a.b", undefined, ""],
    ["rules:\n  - rule: a\n    when: x.|", "rules.*", "when", "x."],
    ["rules:\n- rule: a\n  when: x|", "rules.*", "when", "x"],
    ["rules:\n  - |", "rules.*", undefined, ""],
    ["rules:\n  - { rule: a, when: 'x.|", "rules.*", "when", "x."],
    ["rules:\n  - { rule: a, on: [b, |", "rules.*.on", "*", ""],
    ["a:\n  on: [b, c|", "a.on", "*", "c"],
    ["a:\n  b: { c: { d: |", "a.b.c", "d", ""],
    ["a:\n  when: >-\n    x\n    && y|", "a", "when", "&& y"],
    ["a:\n  - b: c\n  - d\n  - |e: f", "a.*", undefined, ""],
    ['a: "x: {y|', "", "a", "x: {y"],
  ];
  for (const [marked, path, key, text] of cases) {
    test(`the position of the cursor in ${JSON.stringify(marked)} is found`, () => {
      const offset = marked.indexOf("|");
      const location = locationAt(marked.replace("|", ""), offset);
      assert.deepEqual([location.path.join("."), location.key, location.before], [path, key, text]);
    });
  }
});
