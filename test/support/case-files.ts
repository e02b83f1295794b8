import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { control } from "./controls/control.ts";
import { root, temporaryFolder } from "./gate.ts";
import type { Mutation } from "./mutation/mutate.ts";
import { mutatedEnvironment, preload } from "./mutation/sources.ts";

/** Payments that a person decides if they are large, within a budget that outcomes settle. */
export const contract = `contract: pay
platform:
  type: object
  required: [wallet]
  properties: { wallet: { type: string }, price: { type: number } }
tools:
  send:
    input:
      type: object
      additionalProperties: false
      required: [usd, to]
      properties: { usd: { type: number, minimum: 0 }, to: { type: string }, note: { type: string } }
    requires: platform.present
    approval: { by: [finance], decide_within: 30m, use_within: 10m, unbound: [input.note] }
    otherwise: ALLOW
counters:
  spent: { of: send, per: platform.wallet, sum: input.usd, counting: possible, within: 24h, settles: outcome }
rules:
  - rule: budget
    on: send
    when: counters.spent + input.usd > 3000
    verdict: BLOCK
    final: true
    reason: "{counters.spent} USD are spent"
  - rule: huge
    on: send
    when: input.usd > 2000
    verdict: ESCALATE
    approval: { by: [finance, legal], of: 2 }
    reason: "{input.usd} USD need two people"
  - { rule: large, on: send, when: input.usd > 1000, verdict: ESCALATE, reason: "{input.usd} USD is large" }
  - rule: dear
    on: send
    when: platform.?price.orValue(0) > 10
    verdict: ESCALATE
    reason: "the price is {platform.?price}"
  - { rule: waits, on: send, when: counters.spent.held > 5000, verdict: BLOCK, reason: "{counters.spent.held} USD wait" }
`;

const head = `contract: pay.yaml
now: "2026-01-15T12:00:00Z"
key: agent
session: s1
persons: { anna: [finance], ben: [legal, finance], cleo: support }
fixtures: { facts: { wallet: w } }
templates:
  large: { tool: send, platform: facts, input: { usd: 1200, to: shop } }
  dear: { tool: send, platform: { wallet: w, price: 20 }, input: { usd: 10, to: shop } }
  dearer: { tool: send, platform: { wallet: w, price: 21 }, input: { usd: 10, to: shop } }
  other: { tool: send, platform: facts, input: { usd: 900, to: x } }
`;

/** A case of a test file. */
export interface Case {
  readonly name: string;
  readonly steps: readonly string[];
  /** Changes of the expectations that the case must notice. */
  readonly wrong: readonly (readonly [from: string, to: string])[];
  /** A defect of the gate that the case must notice: several changes where two checks back each other. */
  readonly defect?: readonly Mutation[];
}

/** The command's report for programs. */
export interface Output {
  readonly ok: boolean;
  readonly errors?: unknown;
  readonly files: readonly {
    readonly cases: readonly {
      readonly case: string;
      readonly ok: boolean;
      readonly calls: number;
      readonly decisions: number;
      readonly outcomes: number;
      readonly ms: number;
      readonly failure: Readonly<Record<string, unknown>> | null;
    }[];
  }[];
}

export function fileText(all: readonly Case[]): string {
  const text = all.map(({ name, steps }) => {
    const lines = steps.map((step) => `      - ${step}\n`).join("");
    return `  - case: ${JSON.stringify(name)}\n    calls:\n${lines}`;
  });
  return `${head}cases:\n${text.join("")}`;
}

/** Runs the command in a process of its own, which may load sources with a defect. */
export function run(folder: string, defect: readonly Mutation[], ...args: readonly string[]): Promise<string> {
  const imports = defect.length === 0 ? [] : ["--import", preload];
  const program = join(root, "packages", "svc-gate", "src", "main.ts");
  const env = { ...process.env, ...mutatedEnvironment(defect) };
  return new Promise((resolve) => {
    execFile(process.execPath, [...imports, program, "test", ...args], { cwd: folder, env }, (_, out, err) =>
      resolve(out === "" ? err : out),
    );
  });
}

async function output(t: TestContext, text: string, defect: readonly Mutation[] = []): Promise<Output> {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, "pay.yaml"), contract);
  writeFileSync(join(folder, "pay.test.yaml"), text);
  const shown = await run(folder, defect, "--json", "pay.test.yaml");
  try {
    return JSON.parse(shown) as Output;
  } catch {
    return assert.fail(shown);
  }
}

function failedIn({ files }: Output): readonly string[] {
  return files.flatMap((file) => file.cases.filter(({ ok }) => !ok).map((each) => each.case));
}

interface CaseOptions {
  readonly tags: readonly string[];
  /** The numbers of calls, decisions and outcomes of the first case. */
  readonly counts: readonly [calls: number, decisions: number, outcomes: number];
}

/** Tests that the cases pass, and that each fails with its defect and with each wrong expectation. */
export function testCases(title: string, cases: readonly Case[], { tags, counts }: CaseOptions): void {
  suite(title, { tags: [...tags] }, () => {
    test("every case passes, and all of them take well under a second", async (t) => {
      const found = await output(t, fileText(cases));
      const all = found.files.flatMap((file) => file.cases);
      assert.deepEqual(failedIn(found), [], JSON.stringify(all.filter(({ ok }) => !ok)));
      assert.equal(all.length, cases.length);
      const [first] = all;
      assert.deepEqual([first?.calls, first?.decisions, first?.outcomes], counts);
    });
  });

  suite("positive control: a defect of the gate fails the case", { concurrency: 2 }, () => {
    for (const { name, defect } of cases) {
      if (defect === undefined) continue;
      control(`the case "${name}" fails if ${defect.map(({ within }) => within).join(" and ")} is wrong`, async (t) => {
        const failed = failedIn(await output(t, fileText(cases), defect));
        assert.ok(failed.includes(name), `failed: ${failed.join("; ")}`);
      });
    }
  });

  suite("positive control: a wrong expectation is noticed", () => {
    control("each changed expectation fails its case and no other", async (t) => {
      const changed = cases.flatMap((one) =>
        one.wrong.map(([from, to], index): Case => {
          const text = one.steps.join("\n");
          assert.equal(text.split(from).length, 2, `${one.name}: ${from}`);
          return { ...one, name: `${one.name} ${index}`, steps: text.replace(from, () => to).split("\n") };
        }),
      );
      const failed = failedIn(await output(t, fileText([...cases, ...changed])));
      assert.deepEqual(
        failed,
        changed.map(({ name }) => name),
      );
    });
  });
}
