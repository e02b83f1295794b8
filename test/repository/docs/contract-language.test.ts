/**
 * Goal: spec/contract.md describes the code. Method: every YAML block compiles; the tables of functions and of
 * diagnostic codes are generated from the sources and compared (UPDATE_GOLDEN=1 writes them); the limits that it names
 * equal the code's.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { compileContracts, renderDiagnostic } from "../../../packages/readers/src/contract.ts";
import { diagnosticCodes, functions } from "../../../packages/readers/src/ir.ts";
import { mandate } from "../../support/contract-kit.ts";
import { withGenerated } from "../../support/generated.ts";

const page = new URL("../../../spec/contract.md", import.meta.url);

function functionsTable(): string {
  const rows = functions.map(({ name, style, parameters, doc, examples }) => {
    const types = parameters.map((kind) => ({ string: "text", record: "object" })[kind as string] ?? kind);
    const [first = "", ...rest] = types;
    const call = style === "method" ? `${first}.${name}(${rest.join(", ")})` : `${name}(${types.join(", ")})`;
    const shown = examples.map(([text, value]) => `\`${text}\` is \`${value}\``).join("; ");
    return `| \`${call}\` | ${doc} | ${shown.replaceAll("|", "\\|")} |`;
  });
  return ["| function | | example |", "|---|---|---|", ...rows].join("\n");
}

function codesTable(): string {
  const rows = Object.entries(diagnosticCodes).map(([code, meaning]) => `| \`${code}\` | ${meaning} |`);
  return ["| code | |", "|---|---|", ...rows].join("\n");
}

test("the tables of functions and diagnostic codes match the sources", { tags: ["contract.language"] }, () => {
  const text = readFileSync(page, "utf8");
  const expected = withGenerated(withGenerated(text, "functions", functionsTable()), "codes", codesTable());
  if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(page, expected);
  assert.equal(readFileSync(page, "utf8"), expected);
});

test("every YAML block of spec/contract.md compiles, alone or as a mandate of the others", () => {
  const blocks = [...readFileSync(page, "utf8").matchAll(/^```yaml\n([^]*?)^```$/gm)].map(([, text = ""]) => text);
  assert.ok(blocks.length >= 4, `${blocks.length} blocks`);
  const files = new Map(blocks.map((text) => [`${/^contract: (.*)$/m.exec(text)?.[1] ?? ""}.yaml`, text]));
  for (const text of blocks) {
    const isMandate = text.startsWith("mandate:");
    const compiled = isMandate ? mandate(text, Object.fromEntries(files)) : compileContracts([{ name: "page", text }]);
    assert.ok(compiled.ok, compiled.ok ? "" : compiled.problem.map(renderDiagnostic).join("\n\n"));
  }
});
