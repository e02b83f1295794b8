import { readFile } from "node:fs/promises";
import { readFileSync } from "node:fs";
import { dirname, isAbsolute, join, relative } from "node:path";
import {
  isContract,
  loadFunctions,
  renderDiagnostic,
  type PolicySet,
  type Diagnostic,
  type SourceFile,
} from "../../../../core/src/contract/mod.ts";
import { compileContracts, compileMandate, recompile, type CompileOptions } from "../../../../readers/src/compile.ts";
import { contractOfPack, isPack, readyPack } from "../../../../core/src/contract/function.ts";
import type { Rows } from "../../ledger/mod.ts";
import { bad, good, type Result } from "../../../../core/src/wire/mod.ts";
import { NoSuchFile, whyNot } from "../errors.ts";

/**
 * Reads and compiles a mandate with the contracts that it names, or a single contract.
 *
 * @param called the file's name in the text of GET /rules, and so in its digest, which does not depend on the folder
 * @throws {NoSuchFile} if the file itself cannot be read
 */
export async function loadContracts(
  file: string,
  called: string = file,
  options: CompileOptions = {},
): Promise<ContractsResult> {
  const source = { ...(await readSource(file)), name: called };
  const isMandate = !isPack(source.text) && !isContract(source.text);
  const compiled = await ready(
    isPack(source.text)
      ? compileContracts([contractOfPack(source), source], options)
      : !isMandate
        ? compileContracts([source], {
            ...options,
            open: (name) => openReady(name) ?? openRelative(file, relative(dirname(called), name)),
          })
        : compileMandate(source, (name) => openReady(name) ?? openRelative(file, name), options),
  );
  const problems = compiled.ok ? await wrongExamples(compiled.value) : compiled.problem;
  if (compiled.ok && problems.length === 0) return compiled;
  return bad(isMandate ? problems.map((each) => besideMandate(each, called)) : problems);
}

/** The examples of forms that the tables of commands answer otherwise. */
async function wrongExamples({ tables }: PolicySet): Promise<readonly Diagnostic[]> {
  if (tables.size === 0) return [];
  const { findWrongExamples } = await import("../../../../readers/src/tables.ts");
  const found = await Promise.all([...tables.values()].map(findWrongExamples));
  return found.flat().map(({ form, message }) => ({
    code: "form",
    span: form.span,
    message,
    hint: "correct the example or the form; `svc-gate commands` shows how a text is read",
  }));
}

/** Returns a defect with a path that a person can open. The names in a policy's text are relative to the mandate. */
export function besideMandate<Defect extends Pick<Diagnostic, "span">>(defect: Defect, mandate: string): Defect {
  const { span } = defect;
  const { name } = span.file;
  const path = name === mandate || readyPack(name) !== undefined ? name : join(dirname(mandate), name);
  return { ...defect, span: { ...span, file: { ...span.file, name: path } } };
}

type ContractsResult = Result<PolicySet, readonly Diagnostic[]>;

/** Loads the functions that the contracts call. */
async function ready(compiled: ContractsResult): Promise<ContractsResult> {
  if (compiled.ok) await loadFunctions(compiled.value);
  return compiled;
}

/** Compiles contracts again from the text in the ledger; undefined if that is not possible. */
export async function recompileContracts(
  rows: Pick<Rows, "contractText">,
  digest: string,
): Promise<PolicySet | undefined> {
  const text = await rows.contractText(digest);
  const compiled = text === undefined ? undefined : await ready(recompile(text));
  return compiled?.ok === true ? compiled.value : undefined;
}

/** Returns a policy without contracts: every tool is unknown, so every verdict is BLOCK. */
export function noContracts(): PolicySet {
  const compiled = compileContracts([]);
  if (!compiled.ok) throw new Error("nothing at all did not compile");
  return compiled.value;
}

/** Returns all diagnostics and their number, for a terminal. */
export function renderDiagnostics(diagnostics: readonly Diagnostic[]): string {
  const count = `${diagnostics.length} ${diagnostics.length === 1 ? "error" : "errors"}`;
  return `${diagnostics.map(renderDiagnostic).join("\n\n")}\n\n${count}`;
}

async function readSource(file: string): Promise<SourceFile> {
  try {
    return { name: file, text: decode(await readFile(file)) };
  } catch (error) {
    throw new NoSuchFile(`${file} cannot be read: ${whyNot(error)}`);
  }
}

/**
 * Reads a file of a mandate. Its name is in the text of GET /rules, so in the digest on each receipt: the name must not
 * contain a path of this machine.
 */
function openRelative(mandate: string, name: string): Result<SourceFile, string> {
  if (isAbsolute(name)) {
    const relativePath = relative(dirname(mandate), name).replaceAll("\\", "/");
    return bad(
      `it is an absolute path, but a mandate names files by paths relative to its own folder: write \`${relativePath}\``,
    );
  }
  try {
    return good({ name, text: decode(readFileSync(join(dirname(mandate), name))) });
  } catch (error) {
    return bad(whyNot(error));
  }
}

/** Reads a pack that comes with the gate; undefined if the name is that of another file. */
export function openReady(name: string): Result<SourceFile, string> | undefined {
  const path = readyPack(name);
  if (path === undefined) return undefined;
  try {
    return good({ name, text: decode(readFileSync(new URL(`../../../../../contracts/${path}`, import.meta.url))) });
  } catch {
    return bad("the gate has no pack with this name");
  }
}

function decode(bytes: Buffer): string {
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
}
