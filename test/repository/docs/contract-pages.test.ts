/**
 * Goal: docs/contracts describes the contracts. Method: the tables of rules, limits, facts and tools, and the answer to
 * each page's call, are generated from the contract and compared (UPDATE_GOLDEN=1 writes them); every YAML block
 * compiles. Positive control: a doctored page is noticed.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { suite, test } from "node:test";
import { parse } from "yaml";
import {
  compileContracts,
  compileMandate,
  loadFunctions,
  renderDiagnostic,
  type PolicySet,
} from "../../../packages/readers/src/contract.ts";
import { good } from "../../../packages/core/src/wire/mod.ts";
import { openReady } from "../../../packages/gate/src/server/policy/contracts.ts";
import { compile, judge, openPack } from "../../support/contract-kit.ts";
import { control } from "../../support/controls/control.ts";
import { withGenerated } from "../../support/generated.ts";

const root = new URL("../../../", import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), "utf8");
/** The file of each contract, by its name. */
const files = new Map(
  globSync("contracts/{,hosts/}*.yaml", { cwd: root })
    .filter((path) => !path.endsWith(".test.yaml"))
    .map((path) => [basename(path, ".yaml"), path.replaceAll("\\", "/")] as const),
);
const names = [...files.keys()].toSorted();

/** The names of the limits that each pack gives. */
const packLimits = new Map(
  globSync("contracts/packs/*.yaml", { cwd: root }).map((path) => {
    const { limits = {} } = parse(read(path)) as Shown;
    return [basename(path, ".yaml"), Object.keys(limits)] as const;
  }),
);

/** The part of a contract's YAML that the pages show. */
interface Shown {
  readonly summary: string;
  readonly commands?: { readonly from: string };
  readonly limits?: Readonly<Record<string, unknown>>;
  readonly platform?: Schema;
  readonly tools: Readonly<Record<string, { readonly input: Schema; readonly otherwise: Otherwise }>>;
  readonly rules: readonly {
    readonly rule: string;
    readonly on: readonly string[];
    readonly verdict: string;
    readonly final?: boolean;
    readonly reason: string;
  }[];
}

interface ShownPack {
  readonly pack: string;
  readonly summary: string;
  readonly draft?: boolean;
}

interface Schema {
  readonly type?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
}

type Otherwise = string | { readonly verdict: string; readonly reason: string };

function textOf(name: string): string {
  const file = files.get(name);
  assert.ok(file !== undefined, name);
  return read(file);
}

function shown(name: string): Shown {
  return parse(textOf(name)) as Shown;
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(heads), `|${"---|".repeat(heads.length)}`, ...rows.map(line)].join("\n");
}

function rulesTable({ rules }: Shown): string {
  const rows = rules.map(({ rule, on, verdict, final = false, reason }) => {
    const tools = on.map((tool) => `\`${tool}\``).join(", ");
    return [`\`${rule}\``, tools, final ? `${verdict}, final` : verdict, reason.trim()];
  });
  return table(["rule", "on", "verdict", "what the model reads"], rows);
}

function limitsTable({ limits = {}, commands }: Shown): string {
  const text = (value: unknown): string => (Array.isArray(value) ? value.join(", ") : String(value));
  const own = Object.entries(limits).map(([name, value]) => [`\`${name}\``, `\`${text(value)}\``]);
  const taken = commands?.from.split(/\W+/) ?? [];
  const ofPacks = [...packLimits].flatMap(([pack, limitNames]) =>
    taken.includes(pack)
      ? limitNames.map((name) => [`\`${name}\``, `those of the pack [${pack}](../../contracts/packs/${pack}.yaml)`])
      : [],
  );
  return table(["limit", "as it stands"], [...own, ...ofPacks]);
}

function factsTable({ platform }: Shown): string {
  if (platform === undefined) return "None: the contract reads the call and the counters only.";
  const rows = (schema: Schema, prefix: string): string[][] =>
    Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => [
      [`\`${prefix}${name}\``, inner.type ?? "", schema.required?.includes(name) === true ? "always" : "where known"],
      ...rows(inner, `${prefix}${name}.`),
    ]);
  return table(["fact", "type", "sent"], rows(platform, ""));
}

function toolsTable({ tools }: Shown): string {
  const rows = Object.entries(tools).map(([tool, { input, otherwise }]) => {
    const members = Object.keys(input.properties ?? {}).map((name) =>
      input.required?.includes(name) === true ? `\`${name}\`` : `\`${name}\`?`,
    );
    return [`\`${tool}\``, members.join(", "), typeof otherwise === "string" ? otherwise : otherwise.verdict];
  });
  return table(["tool", "input", "when no rule fires"], rows);
}

/** The body of a check. */
interface Call {
  readonly tool_name: string;
  readonly tool_input: unknown;
  readonly session_id?: string;
  readonly platform_state?: unknown;
}

/** Returns the answer to the page's call, without earlier calls. */
function answer(page: string, policySet: PolicySet): string {
  const call = /^```json\n([^]*?)^```$/m.exec(page)?.[1] ?? "";
  const { tool_name, tool_input, session_id, platform_state } = JSON.parse(call) as Call;
  const { verdict, rule, reason } = judge(policySet, {
    tool: tool_name,
    input: tool_input,
    ...(session_id === undefined ? {} : { session: session_id }),
    ...(platform_state === undefined ? {} : { platform: platform_state }),
  });
  return `\`\`\`text\n${verdict}  ${rule}\n${reason}\n\`\`\``;
}

function generated(page: string, tables: Readonly<Record<string, string>>): string {
  return Object.entries(tables).reduce((text, [name, content]) => withGenerated(text, name, `\n${content}\n`), page);
}

async function compiled(name: string): Promise<PolicySet> {
  const contract = compile(textOf(name));
  await loadFunctions(contract);
  return contract;
}

async function expectedPage(name: string, page: string): Promise<string> {
  const contract = shown(name);
  return generated(page, {
    rules: rulesTable(contract),
    limits: limitsTable(contract),
    facts: factsTable(contract),
    tools: toolsTable(contract),
    answer: answer(page, await compiled(name)),
  });
}

function compileBlock(text: string): ReturnType<typeof compileContracts> {
  if (!text.includes("mandate:")) return compileContracts([{ name: "page", text }], { open: openPack });
  return compileMandate({ name: "mandate.yaml", text }, (name) => openReady(name) ?? good({ name, text: read(name) }));
}

function assertBlocksCompile(page: string): void {
  const blocks = Array.from(page.matchAll(/^```yaml\n([^]*?)^```$/gm), ([, text = ""]) => text);
  assert.ok(blocks.length > 0, "no YAML block");
  for (const text of blocks) {
    const result = compileBlock(text);
    assert.ok(result.ok, result.ok ? "" : `${text}\n${result.problem.map(renderDiagnostic).join("\n\n")}`);
  }
}

suite("the pages of docs/contracts", () => {
  for (const name of names) {
    test(`${name}.md says what ${files.get(name)} says`, async () => {
      const path = `docs/contracts/${name}.md`;
      const expected = await expectedPage(name, read(path));
      if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(new URL(path, root), expected);
      assert.equal(read(path), expected);
      assertBlocksCompile(expected);
      for (const part of ["## Rules", "## Limits", "## Facts", "## In a mandate", "## What it cannot see"])
        assert.ok(expected.includes(`\n${part}\n`), `${path} has no ${part}`);
    });
  }

  test("README.md lists every contract with its summary", () => {
    const path = "docs/contracts/README.md";
    const rows = names.map((name) => [`[${name}](${name}.md)`, shown(name).summary.trim()]);
    const expected = generated(read(path), { contracts: table(["contract", "what the model may read of it"], rows) });
    if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(new URL(path, root), expected);
    assert.equal(read(path), expected);
    assertBlocksCompile(expected);
  });

  test("packs.md lists every pack with its summary", () => {
    const path = "docs/contracts/packs.md";
    const rows = globSync("contracts/packs/*.yaml", { cwd: root })
      .toSorted()
      .map((file) => {
        const { pack, summary, draft = false } = parse(read(file)) as ShownPack;
        return [`[${pack}](../../contracts/packs/${pack}.yaml)`, `${summary.trim()}${draft ? " Draft." : ""}`];
      });
    const expected = generated(read(path), { packs: table(["pack", "what it knows"], rows) });
    if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(new URL(path, root), expected);
    assert.equal(read(path), expected);
  });

  control("positive control: a page that disagrees with its contract is noticed", async () => {
    const page = read("docs/contracts/shell.md");
    const doctored = page.replace("| `never` |", "| `ever` |");
    assert.notEqual(doctored, page);
    assert.equal(await expectedPage("shell", doctored), page);
    assert.throws(() => assertBlocksCompile(page.replace("mandate:", "mandates:")));
  });
});
