/**
 * Goal: `svc-gate explain` shows why a call or a receipt got its verdict: each rule with the values of its operands,
 * and each counter with the receipts that it counted. Method: golden texts (UPDATE_GOLDEN=1 writes them and the
 * sentences). The JSON of a receipt is compared with the gate's answer; a doctored receipt is the control.
 */
import assert from "node:assert/strict";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, test, type TestContext } from "node:test";
import { explainCommand, type ExplainOptions } from "../../packages/records/src/explain/command.ts";
import { command } from "../support/command.ts";
import { check, key, root, startGate, temporaryFolder } from "../support/gate.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

/** Compares the message of an error with the sentence of this name. */
const saying =
  (name: string) =>
  (error: Error): true => {
    says(name, error.message);
    return true;
  };

const contract = `contract: shop
limits: { usd: 50, names: [ada, eve] }
platform: { type: object, required: [spent], properties: { spent: { type: number, minimum: 0 }, price: { type: number } } }
let: { total: platform.spent + input.usd }
tools:
  pay:
    input:
      type: object
      additionalProperties: false
      required: [usd, to]
      properties: { usd: { type: number, exclusiveMinimum: 0 }, to: { type: array, items: { type: string }, maxItems: 9 } }
    requires: platform.present
    otherwise: ALLOW
counters:
  tries: { of: pay, per: session, within: 10m }
  paid: { of: pay, per: gate, sum: input.usd, counting: released, within: day, timezone: UTC }
  known: { of: pay, per: session, counting: released, remembers: input.to }
rules:
  - rule: over
    on: pay
    when: total > limits.usd || counters.paid > 90
    verdict: BLOCK
    reason: "{total} USD is over {limits.usd}"
  - rule: strangers
    on: pay
    when: input.to.exists(name, !(name in limits.names) && !(name in counters.known))
    verdict: ESCALATE
    reason: somebody is new
  - { rule: ratio, on: pay, when: input.usd / (platform.spent - 7) > 1, verdict: BLOCK, reason: much at once }
  - { rule: busy, on: pay, when: counters.tries > 1, mode: observe, verdict: BLOCK, reason: "{counters.tries} tries" }
`;

const call = {
  tool_name: "pay",
  tool_input: { usd: 10, to: ["ada", "bob"] },
  session_id: "s",
  platform_state: { spent: 30 },
};
const plain: ExplainOptions = {
  contract: "",
  dataDir: "",
  key: "default",
  mode: "enforce",
  now: "2026-01-15T10:00:00Z",
  json: false,
};

function assertGolden(name: string, text: string): void {
  const file = join(root, "test", "service", "golden", `explain-${name}.golden`);
  if (process.env["UPDATE_GOLDEN"] === "1") {
    mkdirSync(join(root, "test", "service", "golden"), { recursive: true });
    writeFileSync(file, `${text}\n`);
  }
  assert.equal(`${text}\n`, readFileSync(file, "utf8"));
}

function files(t: TestContext, body: unknown): { readonly file: string; readonly options: ExplainOptions } {
  const folder = temporaryFolder(t);
  const [file, shop] = [join(folder, "call.json"), join(folder, "shop.yaml")];
  writeFileSync(file, typeof body === "string" ? body : JSON.stringify(body));
  writeFileSync(shop, contract);
  return { file, options: { ...plain, contract: shop } };
}

async function explainText(t: TestContext, body: unknown, more: Partial<ExplainOptions> = {}): Promise<string> {
  const { file, options } = files(t, body);
  const { text, exitCode } = await explainCommand(file, { ...options, ...more });
  assert.equal(exitCode, 0);
  return text.replaceAll(options.contract, "shop.yaml");
}

suite("a call from a file", () => {
  const variants: readonly (readonly [name: string, change: object, more?: Partial<ExplainOptions>])[] = [
    ["held", {}],
    ["over", { tool_input: { usd: 40, to: [] } }, { mode: "assist", counters: '{"tries": 3, "shop.paid": 12.5}' }],
    ["error", { platform_state: { spent: 7 } }],
    ["schema", { tool_input: { usd: 0, to: [] } }],
    ["no-facts", { platform_state: undefined }],
    ["unknown-tool", { tool_name: "pays" }],
  ];
  for (const [name, change, more] of variants)
    test(`the explanation of the call "${name}" equals its golden text`, async (t) =>
      assertGolden(name, await explainText(t, { ...call, ...change }, more)));

  test(
    "`explain -` reads the call from standard input, and prints the same as for a file",
    { tags: ["first-use-24"] },
    async (t) => {
      const { file, options } = files(t, call);
      const args = ["--contract", options.contract, "--now", "2026-01-15T12:00:00Z"];
      const ran = async (name: string, input: string): Promise<readonly [number, string]> => {
        const { code, stdout } = await command(["explain", name, ...args], { input });
        return [code, stdout];
      };
      const fromFile = await ran(file, "");
      assert.match(fromFile[1], /ESCALATE|BLOCK|ALLOW/);
      assert.deepEqual(await ran("-", readFileSync(file, "utf8")), fromFile);
      assert.notEqual((await ran("-", ""))[0], 0, "positive control: without a call there is nothing to explain");
    },
  );

  test("[issue 12] the error of an absolute path in a mandate shows the relative path", async (t) => {
    const { file, options } = files(t, call);
    const mandate = join(options.contract, "..", "mandate.yaml");
    const named = async (name: string): Promise<string> => {
      writeFileSync(mandate, `mandate: shop\ncontracts: [${JSON.stringify(name)}]\n`);
      return (await explainCommand(file, { ...options, contract: mandate })).text;
    };
    const refused = await named(options.contract);
    const sentences = refused.split("\n").filter((line) => line.includes("`shop.yaml`"));
    assert.equal(sentences.length, 1, refused);
    says("absolute-path-in-a-mandate", sentences[0] ?? "");
    assert.doesNotMatch(await named("shop.yaml"), /cannot be read/, "positive control");
  });

  test("a wrong option or call is one sentence, and a wrong contract shows the compiler's errors", async (t) => {
    const { file, options } = files(t, call);
    const rows: readonly (readonly [Partial<ExplainOptions>, string])[] = [
      [{ counters: "[]" }, "counters-are-a-list"],
      [{ counters: '{"tries": -1}' }, "counter-below-zero"],
      [{ counters: '{"trys": 1}' }, "counter-with-a-slip"],
      [{ now: "noon" }, "now-is-no-moment"],
      [{ mode: "loose" }, "unknown-mode"],
      [{ receipt: "1" }, "file-and-receipt"],
      [{ contract: join(options.contract, "none") }, "no-contract"],
    ];
    for (const [more, name] of rows) await assert.rejects(explainCommand(file, { ...options, ...more }), saying(name));
    await assert.rejects(explainCommand(undefined, options), saying("no-file-and-no-receipt"));
    await assert.rejects(explainCommand(files(t, "{").file, options), saying("file-that-is-not-a-check"));
    writeFileSync(options.contract, contract.replace("total >", "totl >"));
    const broken = await explainCommand(file, options);
    assert.deepEqual([broken.exitCode, broken.text.includes("error[unknown-name]")], [2, true]);
  });
});

suite("a receipt", () => {
  test("explain gives a receipt's verdict, its counters and the receipts that they counted", async (t) => {
    const gate = await startGate(t, { contracts: { "shop.yaml": contract } });
    const bodies = [
      call,
      { ...call, tool_input: { usd: 5, to: ["ada"] } },
      { ...call, tool_input: { usd: 6, to: ["ada", "eve"] } },
      { ...call, tool_input: { usd: 7, to: ["eve"] }, platform_state: { spent: 7 } },
      { tool_name: "lost", tool_input: {} },
    ];
    const data = join(gate.folder, "data");
    const options = { ...plain, dataDir: data, json: true };
    for (const [at, body] of bodies.entries()) {
      const answer = (await check(gate, body)).json;
      const { text, exitCode } = await explainCommand(undefined, { ...options, receipt: String(at + 1) });
      const found = JSON.parse(text);
      assert.deepEqual(
        [exitCode, found.answered, found.reason, found.recorded.agrees],
        [0, answer.verdict, answer.reason, true],
      );
    }
    const fourth = JSON.parse((await explainCommand(undefined, { ...options, receipt: "4" })).text);
    const counted = Object.fromEntries(
      fourth.counters.map(({ name, value, counted: by }: any) => [name, [value, by?.last.map(({ seq }: any) => seq)]]),
    );
    assert.deepEqual(counted["shop.tries"], ["3", [1, 2, 3]]);
    assert.deepEqual(counted["shop.paid"], ["11", [2, 3]]);
    assert.equal(fourth.rules.find(({ id }: any) => id === "shop.busy").kind, "observing");

    const keyFile = join(gate.folder, "key");
    writeFileSync(keyFile, key);
    const question = JSON.parse(
      (await explainCommand(undefined, { ...options, receipt: "4", url: gate.address, keyFile })).text,
    );
    assert.deepEqual([question.verdict, question.rules], [fourth.verdict, fourth.rules]);
    await assert.rejects(explainCommand(undefined, { ...options, receipt: "99" }), saying("no-such-receipt"));
    await assert.rejects(explainCommand(undefined, { ...options, receipt: "x" }), saying("receipt-without-a-number"));

    await gate.stop();
    const copy = join(gate.folder, "copy");
    cpSync(data, copy, { recursive: true });
    const database = new DatabaseSync(join(copy, "ledger.db"));
    database.exec(
      `UPDATE receipts SET leaf = replace(leaf, '"verdict":"ESCALATE"', '"verdict":"ALLOW"') WHERE seq = 1`,
    );
    database.close();
    const doctored = await explainCommand(undefined, { ...options, json: false, receipt: "1", dataDir: copy });
    assert.equal(doctored.exitCode, 1);
    says("receipt-that-was-changed", doctored.text.split("\n")[3] ?? "");
  });
});
