import { readdirSync, readFileSync } from "node:fs";
import { isContract } from "../../../packages/core/src/contract/mod.ts";

/** Contracts without a finding. They must not change, because the seeds replace parts of their text. */
export const bases: Readonly<Record<string, string>> = contractsIn(new URL("./", import.meta.url));

/** The contracts of the repository, as they are now. */
export const published: Readonly<Record<string, string>> = contractsIn(new URL("../../../contracts/", import.meta.url));

function contractsIn(folder: URL): Readonly<Record<string, string>> {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
    (file) => file.endsWith(".yaml") && !file.endsWith(".test.yaml"),
  );
  const texts = files.map((file) => [
    file.replaceAll("\\", "/").slice(0, -".yaml".length),
    readFileSync(new URL(file.replaceAll("\\", "/"), folder), "utf8"),
  ]);
  return Object.fromEntries(texts.filter(([, text]) => isContract(text ?? "")));
}
