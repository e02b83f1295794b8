import { readFile } from "node:fs/promises";

/** The kinds of files for which editors can get a schema. */
export const fileKinds = ["contract", "mandate", "pack", "test"] as const;
export type FileKind = (typeof fileKinds)[number];

/** The JSON Schema (2020-12) of a kind of file. */
export function schemaText(kind: FileKind): Promise<string> {
  return readFile(new URL(`../../../../spec/schemas/${kind}.schema.json`, import.meta.url), "utf8");
}
