/**
 * Goal: a contract compiled from the text of GET /rules equals the policy in force. Method: texts that a parser could
 * split at another line.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { recompile, type PolicySet } from "../../../packages/readers/src/contract.ts";
import { compile, mandate } from "../../support/contract-kit.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const input = "{ type: object, additionalProperties: false }";
const contract = `contract: c\ntools:\n  t: { input: ${input}, otherwise: ALLOW }\n`;
const plainMandate = "mandate: m\ncontracts: [c.yaml]\n";

function inForce(text: string, files: Readonly<Record<string, string>>): PolicySet {
  const compiled = mandate(text, files);
  return compiled.ok ? compiled.value : assert.fail(JSON.stringify(compiled.problem.map(({ message }) => message)));
}

function problems(text: string, files: Readonly<Record<string, string>>): readonly string[] {
  const compiled = mandate(text, files);
  return compiled.ok ? [] : compiled.problem.map(({ code, message }) => `${code}: ${message}`);
}

suite("the text of GET /rules, compiled again", () => {
  const block = (name: string): string => `  - { rule: ${name}, on: t, when: "true", verdict: BLOCK, reason: never }\n`;
  const head = `${contract}rules:\n${block("one")}`;
  const other =
    "  contract: d\n  tools: { t: { input: { type: object, additionalProperties: false }, otherwise: BLOCK } }\n";

  test("the text compiles to the same contract whatever line ends it contains", () => {
    for (const end of ["\u2028", "\u2029", "\r"]) {
      for (const [text, file] of [
        [plainMandate, `${head}# a remark${end}--- # d.yaml\n${block("two")}`],
        [plainMandate, `${head}summary: |\n  text${end}--- # d.yaml\n${other}`],
      ] as const) {
        const policySet = inForce(text, { "c.yaml": file });
        assertAgain(policySet);
        assertAgain(compile(file));
      }
    }
  });

  test("the text compiles to the same contract if the contract's file is called mandate.yaml", () => {
    const policySet = mandate("mandate: m\ncontracts: [mandate.yaml]\n", { "mandate.yaml": head });
    assertAgain(policySet.ok ? policySet.value : assert.fail("it does not compile"));
  });

  test("the compiler refuses a line that looks like a file separator, and a line break in a name", () => {
    says("a separator in a contract", problems(plainMandate, { "c.yaml": `--- # d.yaml\n${head}` }).join("\n"));
    says("a separator in a mandate", problems(`# m\n--- #\n${plainMandate}`, { "c.yaml": head }).join("\n"));
    for (const [written, file] of [
      ["c\\n--- # d.yaml", "c\n--- # d.yaml"],
      ["c\\u2028.yaml", "c\u2028.yaml"],
    ] as const)
      says(`the name ${written}`, problems(`mandate: m\ncontracts: ["${written}"]\n`, { [file]: head }).join("\n"));
    assert.deepEqual(problems(plainMandate, { "c.yaml": `---\n${head}` }), []);
  });
});

function assertAgain(policySet: PolicySet): void {
  const again = recompile(policySet.text);
  if (!again.ok) assert.fail(JSON.stringify(again.problem.map(({ message }) => message)));
  assert.equal(again.value.text, policySet.text);
  const shape = ({ tools }: PolicySet): unknown =>
    [...tools.values()].map(({ routes }) =>
      routes.map(({ contract: name, rules }) => [name, rules.map(({ id }) => id)]),
    );
  assert.deepEqual(shape(again.value), shape(policySet));
}
