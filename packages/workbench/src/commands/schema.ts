import { fileKinds, schemaText, type Outcome } from "../../../gate/src/cli/mod.ts";

/** `svc-gate schema`: prints the JSON Schema (2020-12) of a kind of file, for editors. */
export async function schemaCommand(kind: string): Promise<Outcome> {
  const known = fileKinds.find((name) => name === kind);
  if (known === undefined)
    return {
      exitCode: 2,
      text: `\`${kind}\` has no schema: write ${fileKinds.join(", ").replace(/, (?=\w+$)/, " or ")}`,
    };
  return { exitCode: 0, text: (await schemaText(known)).trimEnd() };
}
