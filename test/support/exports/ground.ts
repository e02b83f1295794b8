/** The material of the cases: keys, rows, the whole exports, and ways to change one. */
import { readFileSync } from "node:fs";
import { cutPlans } from "./cut-inputs.ts";
import {
  chain,
  exportFiles,
  makeSigner,
  sha256,
  signatureLine,
  type ExportedRow,
  type ExportPlan,
  type Files,
  type RowPlan,
} from "./fixture.ts";

/** A verifier's result: the counts of a valid export, or the first error. */
export type Expected =
  | {
      readonly rows: number;
      readonly contracts: number;
      readonly erased_parts: number;
      readonly signed_by: number;
      readonly cosigned_by: number;
    }
  | { readonly row: number; readonly code: string };

export interface ExportCase {
  readonly name: string;
  readonly files: Files;
  readonly keys: readonly string[];
  readonly witnesses: readonly string[];
  readonly expected: Expected;
}

export const log = "example.org/export";
export const key = makeSigner(log, "log key");
export const newKey = makeSigner(log, "log key after the rotation");
export const foreignKey = makeSigner("example.org/other", "log key");
export const strangerKey = makeSigner(log, "a stranger's key");
export const witness = makeSigner("example.org/witness", "witness key", 4);
export const otherWitness = makeSigner("example.net/witness", "another witness key", 4);

export const contracts = ["contract: notes\n", "contract: notes\nsummary: 目 \u{1f4b3}\n"] as const;
export const [first, second] = contracts.map((text) => `sha256:${sha256(text).toString("hex")}`);

export const eraseBody = (parts: readonly string[], rows: readonly (readonly number[])[]): string =>
  JSON.stringify({ parts, rows });

/** Checks, administrative events, and parts that two rows erased: twelve rows. */
export const actPlans: readonly RowPlan[] = [
  { contract: first ?? null },
  { contract: first ?? null, erased: ["platform", "reason", "outcome"] },
  { contract: first ?? null, erased: ["platform", "reason", "outcome"] },
  {
    act: "keys.create",
    contract: first ?? null,
    values: { input: '{"name":"ci"}', reason: '"a key for the pipeline"' },
  },
  { contract: first ?? null, erased: ["call", "input", "reason", "outcome"] },
  {
    contract: second ?? null,
    members: { tool: '支払い "x\\y"\n\u0001\u007f\u2028', key: "café", at: 1_790_000_000_005 },
  },
  { contract: second ?? null, values: { platform: '{"now_epoch":1790000000}' } },
  {
    act: "erase",
    contract: second ?? null,
    values: { input: eraseBody(["outcome", "platform", "reason"], [[2, 3]]), reason: '"asked for by the person"' },
  },
  { contract: second ?? null, erased: ["input", "reason", "outcome"] },
  {
    act: "erase",
    contract: second ?? null,
    values: {
      input: eraseBody(
        ["call", "input", "outcome", "reason"],
        [
          [5, 5],
          [9, 9],
        ],
      ),
    },
  },
  { contract: null, members: { tool: null, rule: "$route", verdict: "BLOCK", answered: "BLOCK" } },
  { contract: second ?? null, members: { mode: "observe", verdict: "ESCALATE" } },
];

/** A check of a call with three sensitive members. */
const personal: RowPlan = {
  contract: first ?? null,
  values: {
    input: '{"customer":{"email":{"...":"input.customer.email"},"phone":{"...":"input.customer.phone"}},"n":1}',
    platform: '{"now_epoch":1790000000,"person":{"...":"platform.person"}}',
  },
  sensitive: {
    "input.customer.email": '"ada@example.org"',
    "input.customer.phone": '"+32 2 555 12 12"',
    "platform.person": '{"born":1815,"name":"Ad\u00e9la\u00efde \u{1f4b3}"}',
  },
};

const erasing = (parts: readonly string[], rows: readonly (readonly number[])[]): RowPlan => ({
  act: "erase",
  contract: first ?? null,
  values: { input: eraseBody(parts, rows), reason: '"asked for by the person"' },
});

/**
 * Sensitive members, present and erased: alone, with their parents, and first alone and then with them. Twelve rows.
 */
export const memberPlans: readonly RowPlan[] = [
  personal,
  { ...personal, erased: ["input.customer.email", "reason", "outcome"] },
  { ...personal, erased: ["platform", "platform.person", "reason", "outcome"] },
  erasing(["input.customer.email", "outcome", "reason"], [[2, 2]]),
  erasing(["outcome", "platform", "reason"], [[3, 3]]),
  { ...personal, erased: ["input", "input.customer.email", "input.customer.phone", "reason", "outcome"] },
  erasing(["input.customer.email", "outcome", "reason"], [[6, 6]]),
  { ...personal, erased: ["input.customer.email", "reason", "outcome"] },
  {
    ...personal,
    erased: ["call", "input", "input.customer.email", "input.customer.phone", "platform.person", "reason", "outcome"],
  },
  erasing(["call", "input", "outcome", "platform.person", "reason"], [[6, 9]]),
  {
    contract: first ?? null,
    values: {
      input: '{"A":{"b":{"...":"input.A.b"}},"_x1":{"...":"input._x1"},"a":{"...":"input.a"}}',
      platform: '{"z":{"z":{"...":"platform.z.z"}}}',
    },
    sensitive: { "input.a": "null", "platform.z.z": "[1,2.0]", "input.A.b": "1e2", "input._x1": '"\\u0000"' },
  },
  { contract: second ?? null },
];

const digests = (...values: readonly string[]): string =>
  JSON.stringify({ digests: values.map((value) => sha256(value).toString("hex")).toSorted() });

/**
 * Results of tools: of several checks, two of one check, one partly erased, and one of a tool that no contract routes.
 */
export const resultPlans: readonly RowPlan[] = [
  { contract: first ?? null },
  { check: 1, contract: first ?? null, values: { input: digests("a", "b") } },
  { contract: first ?? null, members: { key: "ci", tool: "mail.send" } },
  { contract: first ?? null, members: { tool: null } },
  { check: 3, contract: first ?? null, members: { key: "ci", tool: "mail.send" }, erased: ["input"] },
  { check: 1, contract: second ?? null, members: { mode: "observe" } },
  { check: 4, contract: second ?? null, members: { tool: null }, erased: ["call", "input"] },
  erasing(["call", "input"], [[5, 7]]),
  { contract: second ?? null, members: { key: null, tool: '目 "x"' } },
  { check: 9, contract: second ?? null, members: { key: null, tool: '目 "x"' } },
];

/** A call that waits, two checks that used approvals, the row that says so, and two more checks. */
export const usePlans: readonly RowPlan[] = [
  { contract: first ?? null, members: { verdict: "ESCALATE", answered: "ESCALATE" } },
  { contract: first ?? null, members: { verdict: "ESCALATE", answered: "ALLOW" } },
  { contract: first ?? null },
  {
    act: "approval.use",
    contract: first ?? null,
    values: { input: '{"uses":[{"approval":1,"needed":true,"row":2},{"approval":1,"needed":false,"row":3}]}' },
  },
  { contract: first ?? null },
  { contract: first ?? null },
];

const longPlans: readonly RowPlan[] = Array.from({ length: 300 }, () => ({ contract: first ?? null }));

export const plan = (rows: readonly ExportedRow[], over: Partial<ExportPlan> = {}): ExportPlan => ({
  log,
  rows,
  contracts: [...contracts],
  signers: [key],
  ...over,
});

export const actRows = chain(log, actPlans);
export const longRows = chain(log, longPlans);
export const memberRows = chain(log, memberPlans);
export const memberFiles = exportFiles(plan(memberRows));
export const cutFiles = exportFiles(plan(chain(log, cutPlans(first ?? ""))));
export const resultFiles = exportFiles(plan(chain(log, resultPlans)));
export const useFiles = exportFiles(plan(chain(log, usePlans)));
export const actFiles = exportFiles(plan(actRows));
export const longFiles = exportFiles(plan(longRows, { contracts: [contracts[0]] }));

interface WorkedRows {
  readonly log: string;
  readonly contracts: readonly string[];
  readonly rows: readonly { readonly leaf: string; readonly evidence: readonly string[] }[];
}

/** The eleven rows of spec/vectors/chains, as an export. */
const worked = JSON.parse(
  readFileSync(new URL("../../../spec/vectors/chains/rows.json", import.meta.url), "utf8"),
) as WorkedRows;
export const workedKey = makeSigner(worked.log, "worked log key");
export const workedFiles = exportFiles({
  log: worked.log,
  rows: worked.rows.map(({ leaf, evidence }) => ({ leaf: Buffer.from(leaf), evidence: evidence.join("~") })),
  contracts: worked.contracts,
  signers: [workedKey],
});

/** Exports that are stored whole, as folders; every other case is stored as its difference from one of them. */
export const bases: ReadonlyMap<string, Files> = new Map([
  ["acts", actFiles],
  ["long", longFiles],
  ["members", memberFiles],
  ["worked", workedFiles],
  ["cut", cutFiles],
  ["results", resultFiles],
  ["uses", useFiles],
]);

export const isTrue = (
  rows: number,
  over: Partial<Record<"contracts" | "erased_parts" | "signed_by" | "cosigned_by", number>> = {},
): Expected => ({
  rows,
  contracts: 2,
  erased_parts: 13,
  signed_by: 1,
  cosigned_by: 0,
  ...over,
});

export function oneCase(
  name: string,
  files: Files,
  expected: Expected,
  given: Partial<Pick<ExportCase, "keys" | "witnesses">> = {},
): ExportCase {
  return { name, files, expected, keys: given.keys ?? [key.vkey], witnesses: given.witnesses ?? [] };
}

export const plain = { contracts: 1, erased_parts: 0 };
export const long = (rows: number): Files => exportFiles(plan(longRows.slice(0, rows), { contracts: [contracts[0]] }));
export const signed = (over: Partial<ExportPlan>): Files => exportFiles(plan(actRows, over));

/** Returns the export of administrative events with another note under them, signed in the same way. */
export function resigned(change: (note: string) => string): Files {
  return signed({
    checkpoint: (text) => {
      const note = change(text.slice(0, text.indexOf("\n\n") + 1));
      return `${note}\n${signatureLine(key, note)}`;
    },
  });
}

export const noted = (change: (text: string) => string): Files => signed({ checkpoint: change });

export function without(files: Files, ...paths: readonly string[]): Files {
  return new Map([...files].filter(([path]) => !paths.includes(path)));
}

export function edited(files: Files, path: string, change: (bytes: Buffer) => Buffer): Files {
  const bytes = files.get(path);
  if (bytes === undefined) throw new Error(`there is no ${path}`);
  return new Map([...files, [path, change(bytes)]]);
}

export function flipped(bytes: Buffer, at: number, bit: number): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeUInt8(bytes.readUInt8(at) ^ (1 << bit), at);
  return copy;
}

/** Returns a note with the bytes of its last signature changed. */
export function signatureChanged(text: string, change: (bytes: Buffer) => Buffer): string {
  const at = text.lastIndexOf(" ") + 1;
  return `${text.slice(0, at)}${change(Buffer.from(text.slice(at), "base64")).toString("base64")}\n`;
}

/** The same rows with one row changed; the tree and the signed checkpoint are made from the changed rows. */
export const planned = (row: number, over: RowPlan, plans = actPlans): Files =>
  exportFiles(
    plan(
      chain(
        log,
        plans.map((each, at) =>
          at === row - 1 ? { ...each, ...over, members: { ...each.members, ...over.members } } : each,
        ),
      ),
    ),
  );

/** Returns the bundle of leaves with its entries changed. */
export function entriesChanged(change: (leaves: Buffer[]) => void): Files {
  const list = actRows.map(({ leaf }) => leaf);
  change(list);
  const bytes = Buffer.concat(list.flatMap((leaf) => [Buffer.of(leaf.length >> 8, leaf.length & 255), leaf]));
  return new Map([...actFiles, ["tile/entries/000.p/12", bytes]]);
}

export const bundle = "tile/entries/000.p/12";
export const evidence = "evidence/000.p/12";
export const tile = "tile/0/000.p/12";
export const positionIn = (row: number, text: string): number => {
  const before = actRows.slice(0, row - 1).reduce((sum, { leaf }) => sum + 2 + leaf.length, 0);
  return before + 2 + (actRows[row - 1]?.leaf.indexOf(text) ?? 0);
};
export const lineAt = (row: number): number =>
  actRows.slice(0, row - 1).reduce((sum, each) => sum + each.evidence.length + 1, 0);
export const linesChanged = (change: (lines: string[]) => void): Files =>
  edited(actFiles, evidence, (bytes) => {
    const lines = bytes.toString().split("\n");
    change(lines);
    return Buffer.from(lines.join("\n"));
  });
export const moved = (files: Files, from: string, to: string): Files =>
  new Map([...files].map(([path, bytes]) => [path === from ? to : path, bytes]));
