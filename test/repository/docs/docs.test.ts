/**
 * Goal: the examples in the documents are true. Method: a fenced block after `<!-- docs: NAME -->` is run: requests go
 * to a gate, contracts are compiled, the integrator's lines run; shown output is compared, without hashes.
 */
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { promisify } from "node:util";
import { compileContracts } from "../../../packages/readers/src/contract.ts";
import { settings } from "../../../packages/gate/src/server/start/config.ts";
import { renderDiagnostics } from "../../../packages/gate/src/server/policy/contracts.ts";
import { openCheckpoint, parseVerifierKey } from "../../../packages/core/src/record/tree/mod.ts";
import { command } from "../../support/command.ts";
import { check, key, root, startGate, temporaryFolder, type Running } from "../../support/gate.ts";
import { eventually } from "../../support/patience.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const read = (path: string): string => readFileSync(join(root, path), "utf8");
const readme = read("README.md");

/** Returns the fenced block or the table that follows its marker. */
function block(name: string): string {
  const start = readme.indexOf(`<!-- docs: ${name} -->\n`);
  assert.notEqual(start, -1, `README.md has no block \`${name}\``);
  const after = readme.slice(readme.indexOf("\n", start) + 1);
  return (/^```\w*\n([\s\S]*?)^```$/m.exec(after)?.[1] ?? "").trimEnd() + "\n";
}

function withoutHashes(text: string): string {
  return text.replaceAll(/[0-9a-f]{64}/g, "HASH").replaceAll(/svc-gate\/[0-9a-f]{32}/g, "NAME");
}

const payments = { contracts: { "payments.yaml": read("contracts/payments.yaml") } };
const request = /-d '(\{[\s\S]*\})'/.exec(block("request"))?.[1] ?? "";

/** Inputs whose call runs, waits or is refused by the lines that an integrator copies. */
const inputs = {
  ran: { amount: 10, currency: "USD", payee_address: "p", offer_expires_epoch: 2 },
  parked: { amount: 20, currency: "USD", payee_address: "p", offer_expires_epoch: 2 },
  refused: { amount: 10, currency: "USD", payee_address: "q", offer_expires_epoch: 2 },
};
const facts = { monthly_spend_usd: 0, approved_payees: ["p"], historical_price_usd: 10, now_epoch: 1 };

const python = ["python3", "python"].find((name) => spawnSync(name, ["--version"]).status === 0);

/** Returns the lines as a program that prints the result of one call. */
function pythonProgram(address: string, input: object): string {
  const names = `name, arguments, facts = "payment.send", json.loads('${JSON.stringify(input)}'), json.loads('${JSON.stringify(facts)}')`;
  const doings = `run_tool = lambda *_: "ran"\npark_for_a_person = lambda *_: "parked"`;
  const lines = block("python").replace("http://127.0.0.1:8787", address);
  return `import json\nkey, run_id = "${key}", "run"\n${names}\n${doings}\n${lines}\nprint(result)\n`;
}

function javascriptProgram(address: string, input: object): string {
  const call = `name = "payment.send", input = ${JSON.stringify(input)}, facts = ${JSON.stringify(facts)}`;
  const names = `const key = "${key}", runId = "run", ${call};`;
  const doings = `const runTool = () => "ran", parkForAPerson = () => "parked";`;
  const client = new URL("../../../clients/javascript/svc-gate.mjs", import.meta.url).href;
  const lines = block("javascript").replace("http://127.0.0.1:8787", address).replace("./svc-gate.mjs", client);
  return `${names}\n${doings}\n${lines}\nconsole.log(result);\n`;
}

async function assertOutcomes(
  gate: Running,
  run: (input: object) => Promise<{ readonly stdout: string }>,
): Promise<void> {
  for (const [outcome, input] of Object.entries(inputs)) {
    const { stdout } = await run(input);
    assert.equal(stdout.trim().replace(/^Svc: .* is not registered .*$/, "refused"), outcome);
  }
  assert.equal(gate.ledger.head.seq, 3);
}

suite("README.md", () => {
  test("the gate gives the refusal that README.md shows", async (t) => {
    const gate = await startGate(t, payments);
    const { status, text } = await check(gate, request);
    assert.equal(status, 200);
    assert.equal(`${withoutHashes(text)}\n`, withoutHashes(block("answer")));
    const shown = JSON.parse(block("answer")) as { readonly receipt: { readonly request: string } };
    assert.equal(JSON.parse(text).receipt.request, shown.receipt.request, "the digest of the request shown");
  });

  test("`verify` prints the text that README.md shows", async (t) => {
    const gate = await startGate(t, { ...payments, flags: { mode: "observe" } });
    await check(gate, request);
    const data = join(gate.folder, "data");
    await eventually("the signed checkpoint", () => existsSync(join(data, "checkpoint")));
    const { stdout } = await command(["verify", data]);
    assert.equal(withoutHashes(stdout), withoutHashes(block("verified")));
  });

  test("the contract in README.md compiles, and one more rule gives the errors that are shown", () => {
    const contract = block("contract mail.yaml");
    assert.ok(compileContracts([{ name: "mail.yaml", text: contract }]).ok);
    const wrong = compileContracts([{ name: "mail.yaml", text: contract + block("rule with errors") }]);
    assert.equal(wrong.ok ? "" : `${renderDiagnostics(wrong.problem)}\n`, block("errors"));
  });

  test("the Python code in README.md runs, parks and refuses calls", async (t) => {
    if (python === undefined) return t.skip("there is no Python on this machine");
    const gate = await startGate(t, payments);
    const env = {
      PATH: process.env["PATH"] ?? "",
      PYTHONPATH: join(root, "clients", "python"),
      PYTHONDONTWRITEBYTECODE: "1",
    };
    await assertOutcomes(gate, (input) =>
      promisify(execFile)(python, ["-c", pythonProgram(gate.address, input)], { env }),
    );
  });

  test(
    "the code in both languages stops if the gate cannot be reached, and gives the model nothing",
    { tags: ["first-use-15"] },
    async (t) => {
      const gate = await startGate(t, payments);
      await gate.stop();
      const file = join(temporaryFolder(t), "lines.mjs");
      writeFileSync(file, javascriptProgram(gate.address, inputs.ran));
      const env = { PATH: process.env["PATH"] ?? "", PYTHONPATH: join(root, "clients", "python") };
      const programs: (readonly [string, readonly string[]])[] = [[process.execPath, [file]]];
      if (python !== undefined) programs.push([python, ["-B", "-c", pythonProgram(gate.address, inputs.ran)]]);
      for (const [program, args] of programs) {
        const ended = spawnSync(program, args, { env, encoding: "utf8" });
        assert.deepEqual([ended.status, ended.stdout], [1, ""], ended.stderr);
        says("no gate answers", /Svc: [^\r\n]*/.exec(ended.stderr)?.[0] ?? ended.stderr);
      }
    },
  );

  test("the JavaScript code in README.md runs, parks and refuses calls", async (t) => {
    const gate = await startGate(t, payments);
    const file = join(temporaryFolder(t), "lines.mjs");
    await assertOutcomes(gate, (input) => {
      writeFileSync(file, javascriptProgram(gate.address, input));
      return promisify(execFile)(process.execPath, [file]);
    });
  });

  test("docs/reference/settings.md lists the gate's settings", () => {
    const rows = settings.map(
      ({ variable, fallback, doc }) => `| ${variable} | ${fallback}${fallback && " "}| ${doc} |`,
    );
    const table = `| variable | default | |\n|---|---|---|\n${rows.join("\n")}\n`;
    const page = join(root, "docs", "reference", "settings.md");
    if (process.env["UPDATE_GOLDEN"] !== undefined)
      writeFileSync(page, readFileSync(page, "utf8").replace(/^\| variable [\s\S]*?\n(?!\|)/m, table));
    assert.ok(readFileSync(page, "utf8").includes(table), table);
  });

  test("README.md changes to enforcing by reload, as docs/guides/rollout.md does", { tags: ["first-use-17"] }, () => {
    const walk = /^## From observing to enforcing\n([\s\S]*?)\n## /m.exec(readme)?.[1] ?? "";
    const rollout = read("docs/guides/rollout.md");
    for (const mode of ["assist", "enforce"])
      for (const text of [walk, rollout]) assert.match(text, new RegExp(`reload --mode ${mode}`));
    for (const text of [walk, rollout]) assert.doesNotMatch(text, /SVC_MODE/);
  });

  test("each row of the comparison has a date", () => {
    const [, table = ""] = /^## Compared with others\n([\s\S]*)/m.exec(readme) ?? [];
    const rows = table.split("\n").filter((line) => /^\| (?!\|)/.test(line));
    assert.ok(rows.length >= 10);
    for (const row of rows) assert.match(row, /\| \d{4}-\d{2}-\d{2} \|$/);
  });

  test("README.md has at most 900 words outside code blocks", () => {
    const words = readme.replaceAll(/^```[\s\S]*?^```$/gm, "").split(/\s+/);
    assert.ok(words.length <= 900, `${words.length} words`);
  });
});

test("docs/README.md links to every page in docs", { tags: ["first-use-17"] }, () => {
  const index = read("docs/README.md");
  const listed = ["", "guides/", "reference/", "evidence/"].flatMap((folder) =>
    readdirSync(join(root, "docs", folder)).map((name) => `${folder}${name}`),
  );
  const pages = listed.filter((name) => name.endsWith(".md") && name !== "README.md");
  assert.deepEqual(
    pages.filter((name) => !index.includes(`(${name})`)),
    [],
  );
});

suite("docs/decisions", () => {
  const namesIn = (folder: string): readonly string[] =>
    readdirSync(join(root, "docs", "decisions", folder)).filter((name) => name !== "README.md" && name !== "archive");
  const archived = namesIn("archive").map((name) => `archive/${name}`);
  const inForce = namesIn(".");
  const numberOf = (name: string): number => Number(/^(?:archive\/)?(\d{4})-[a-z0-9-]+\.md$/.exec(name)?.[1]);

  test("decisions are numbered without a gap and have three parts in at most 40 lines", () => {
    const names = [...inForce, ...archived];
    assert.deepEqual(
      names.map(numberOf).toSorted((a, b) => a - b),
      names.map((_, at) => at + 1),
    );
    for (const name of names) {
      const text = read(`docs/decisions/${name}`);
      const rows = text.match(/^\| `/gm)?.length ?? 0; // 0001 and 0020 have a row for each dependency.
      assert.ok(text.split("\n").length - rows <= 41, name);
      for (const part of ["## Context", "## Decision", "## Consequence"]) assert.ok(text.includes(`\n${part}\n`), name);
    }
  });

  test("docs/decisions/README.md lists each decision where it is, in at most 120 lines", () => {
    const index = read("docs/decisions/README.md");
    assert.ok(index.split("\n").length <= 121);
    const listed = (row: RegExp): readonly string[] => Array.from(index.matchAll(row), ([, name = ""]) => name);
    assert.deepEqual(listed(/^\|[^|]*\| \[\d{4}\]\(([^)]+)\) \|/gm).toSorted(), inForce.toSorted());
    assert.deepEqual(listed(/^\* \[\d{4}\]\(([^)]+)\): /gm), archived.toSorted());
  });

  test("decisions 0001 and 0020 give a reason for each dependency in package.json and for no other", () => {
    const manifests = ["", "packages/svc-gate/", "packages/workbench/", "packages/agent/"].map((folder) =>
      JSON.parse(read(`${folder}package.json`)),
    );
    const named = manifests.flatMap(({ dependencies = {}, devDependencies = {}, optionalDependencies = {} }) =>
      [dependencies, optionalDependencies, devDependencies].flatMap((each) => Object.keys(each)),
    );
    const wanted = [...new Set(named)];
    const listed = ["0001-dependencies", "0020-development-dependencies"].flatMap((name) =>
      Array.from(read(`docs/decisions/${name}.md`).matchAll(/^\| `([^`]+)`/gm), ([, found = ""]) => found),
    );
    assert.deepEqual(listed.toSorted(), wanted.toSorted());
  });
});

test("the key in docs/guides/proofs.md and docs/guides/export.md verifies the signed head in docs/guides/proofs.md", () => {
  const page = read("docs/guides/proofs.md");
  const note = /^example\.org\/payments\n[0-9]+\n\S+\n\n(?:— .+\n)+/m.exec(page)?.[0] ?? "";
  const shown = /--key (example\.org\/payments\+\S+)/.exec(page)?.[1] ?? "";
  const verifier = parseVerifierKey(shown);
  assert.ok(verifier.ok, verifier.ok ? "" : verifier.problem);
  const head = openCheckpoint(note, [verifier.value]);
  assert.ok(head.ok, head.ok ? "" : head.problem);
  assert.equal(head.value.size, 20);
  assert.ok(!openCheckpoint(note.replace("\n20\n", "\n21\n"), [verifier.value]).ok, "positive control");
  assert.ok(read("docs/guides/export.md").includes(shown));
});
