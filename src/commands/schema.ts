import { readFile } from "node:fs/promises";
import type { Outcome } from "./outcome.ts";

/** The kinds of file that editors may be told of. */
export const fileKinds = ["contract", "mandate", "test"] as const;
export type FileKind = (typeof fileKinds)[number];

/** `svc-gate schema`: the JSON Schema (2020-12) of a kind of file, for editors. */
export async function schemaCommand(kind: string): Promise<Outcome> {
  const known = fileKinds.find((name) => name === kind);
  if (known === undefined)
    return {
      exitCode: 2,
      text: `there is no schema of \`${kind}\`: say ${fileKinds.join(", ").replace(/, (?=\w+$)/, " or ")}`,
    };
  return { exitCode: 0, text: (await schemaText(known)).trimEnd() };
}

export function schemaText(kind: FileKind): Promise<string> {
  return readFile(new URL(`../../spec/schemas/${kind}.schema.json`, import.meta.url), "utf8");
}
