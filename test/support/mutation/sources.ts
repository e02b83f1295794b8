import { chmodSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { noteMutated } from "../controls/control.ts";
import { faultOf, hasName, mutatedText, type Mutation } from "./mutate.ts";

/** The module that a gate loads first, so that it loads wrong sources. */
export const preload: string = pathToFileURL(join(import.meta.dirname, "preload.ts")).href;

/** Texts by their files. */
type Sources = ReadonlyMap<string, string>;

let known: Sources | undefined;

/** Returns every TypeScript source of the service and its tools, in any folder of the repository. */
function allSources(): Sources {
  if (known !== undefined) return known;
  let root = import.meta.dirname;
  while (!existsSync(join(root, "package-lock.json"))) root = dirname(root);
  const files = ["src", "*/src", "packages/*/src"].flatMap((folder) => globSync(`${folder}/**/*.ts`, { cwd: root }));
  known = new Map(files.map((file) => [join(root, file), readFileSync(join(root, file), "utf8")]));
  return known;
}

/** Finds the one source for a mutation, by the function's name and not by the file's. */
function sourceOf(mutation: Mutation, sources: Sources): string {
  const { within, module } = mutation;
  const [last = within] = within.split(".").slice(-1);
  const isNamed = (file: string): boolean => module === undefined || file.endsWith(`${sep}${join(module)}.ts`);
  const found = [...sources].filter(([file, text]) => isNamed(file) && text.includes(last) && hasName(text, within));
  const [source] = found;
  if (source !== undefined && found.length === 1) return source[0];
  const files = found.map(([file]) => file).join(", ");
  throw faultOf(mutation, found.length === 0 ? `no module has ${within}` : `several modules have ${within}: ${files}`);
}

/** Returns the sources with the mutations, by the URLs from which they are loaded. */
export function mutatedSources(mutations: readonly Mutation[], sources: Sources = allSources()): Sources {
  const byFile = Map.groupBy(mutations, (mutation) => sourceOf(mutation, sources));
  for (const file of byFile.keys()) noteMutated(file);
  return new Map(
    [...byFile].map(([file, own]) => [pathToFileURL(file).href, mutatedText(sources.get(file) ?? "", own)]),
  );
}

let folder: string | undefined;
/** The files of variables, and the sources in them, by the mutations. */
const written = new Map<string, { readonly file: string; readonly sources: readonly string[] }>();

/** Returns variables for a gate that loads `preload`, so that it loads its sources with the mutations. */
export function mutatedEnvironment(mutations: readonly Mutation[]): Readonly<Record<string, string>> {
  if (mutations.length === 0) return {};
  if (folder === undefined) {
    const made = mkdtempSync(join(tmpdir(), "svc-gate-mutated-"));
    chmodSync(made, 0o755); // A test may start the program as another user.
    process.once("exit", () => rmSync(made, { recursive: true, force: true }));
    folder = made;
  }
  const name = JSON.stringify(mutations);
  const made = written.get(name) ?? write(mutations, join(folder, `${written.size}.json`));
  written.set(name, made);
  made.sources.forEach(noteMutated);
  return { MUTATED_SOURCES: made.file };
}

function write(mutations: readonly Mutation[], file: string): { file: string; sources: readonly string[] } {
  const sources = mutatedSources(mutations);
  writeFileSync(file, JSON.stringify([...sources]));
  return { file, sources: [...sources.keys()].map((url) => fileURLToPath(url)) };
}
