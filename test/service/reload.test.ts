/**
 * Goal: only a reload changes the policy of a serving gate, and only between two batches. A refused change leaves the
 * old policy in force. Each change is a row that names its author, and counters keep their history. Method: gates in
 * this process whose files change under load, with the operator's key; the rows are read back and verified.
 */
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import {
  ask,
  check,
  key,
  spawnGate,
  startGate,
  temporaryFolder,
  writeContracts,
  type Answer,
  type Running,
} from "../support/gate.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const contract = (verdict: string, more = ""): string => `contract: desk
tools:
  door.open: { input: { type: object, additionalProperties: true }, otherwise: ${verdict} }
${more}`;

const limited = contract(
  "ALLOW",
  `counters:
  opened: { of: [door.open], per: session }
rules:
  - { rule: enough, on: [door.open], when: counters.opened >= 3, verdict: BLOCK, reason: "{counters.opened} times is enough" }
`,
);

const open = (session: string): object => ({ tool_name: "door.open", tool_input: {}, session_id: session });

function write(gate: Located, text: string): void {
  writeFileSync(join(gate.folder, "contracts", "desk.yaml"), text);
}

function operatorKey({ folder }: { readonly folder: string }): string {
  return (JSON.parse(readFileSync(join(folder, "data", "operator.json"), "utf8")) as { key: string }).key;
}

function reload(gate: Located, body: object = {}, bearer = operatorKey(gate)): Promise<Answer> {
  return ask(gate, "/admin/reload", {
    method: "POST",
    headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

function start(t: TestContext, text: string, flags: Readonly<Record<string, string>> = {}): Promise<Running> {
  return startGate(t, { contracts: { "desk.yaml": text }, flags });
}

suite("reload", () => {
  test("a reload puts a new contract or mode in force at once, and a row records it", async (t) => {
    const gate = await start(t, contract("ALLOW"));
    assert.equal((await check(gate, open("s"))).json.verdict, "ALLOW");
    const before = (await ask(gate, "/rules")).headers.get("etag");
    write(gate, contract("BLOCK"));
    assert.equal((await check(gate, open("s"))).json.verdict, "ALLOW", "a file that changed is not in force yet");
    const { status, json } = await reload(gate);
    assert.equal(status, 200);
    assert.deepEqual([json.changed, json.now.mode, json.receipt.seq], [true, "enforce", 3]);
    assert.equal((await check(gate, open("s"))).json.verdict, "BLOCK");
    const observing = await reload(gate, { mode: "observe" });
    assert.deepEqual(observing.json.now, { contract: json.now.contract, mode: "observe" });
    const answer = (await check(gate, open("s"))).json;
    assert.deepEqual([answer.verdict, answer.mode], ["ALLOW", "observe"]);
    assert.equal((await reload(gate)).json.changed, false);
    const { json: page } = await ask(gate, "/receipts?kind=all");
    assert.deepEqual(
      page.receipts.map(({ act, key: by, mode, verdict }: Record<string, unknown>) => [act ?? verdict, by, mode]),
      [
        ["BLOCK", "default", "observe"],
        ["reload", "operator", "observe"],
        ["BLOCK", "default", "enforce"],
        ["reload", "operator", "enforce"],
        ["ALLOW", "default", "enforce"],
        ["ALLOW", "default", "enforce"],
      ],
    );
    const [, row] = page.receipts;
    says("the row of a change of mode", row.reason);
    assert.deepEqual(row.tool_input.now, { contract: json.now.contract, mode: "observe" });
    const old = await ask(gate, `/rules?contract=sha256:${before?.replaceAll('"', "")}`);
    assert.match(old.text, /otherwise: ALLOW/, "what earlier receipts were decided under is still there");
    assert.deepEqual((await ask(gate, "/ledger/verify")).json.ok, true);
  });

  test("a contract that does not compile is refused with every error, and the old one stays in force", async (t) => {
    const gate = await start(t, contract("ALLOW"));
    write(gate, contract("PERHAPS", "rules:\n  - { rule: r, on: [door.close], when: x, verdict: BLOCK, reason: r }\n"));
    const { status, json } = await reload(gate);
    assert.deepEqual([status, json.code], [422, "contract-refused"]);
    assert.ok(json.detail.includes(`--> ${join(gate.folder, "contracts", "desk.yaml")}:3:`), "a path to open");
    says("refused: two errors", json.detail.replaceAll(gate.folder, "FOLDER"));
    assert.equal((await check(gate, open("s"))).json.verdict, "ALLOW");
    assert.equal(
      (await ask(gate, "/receipts?kind=all")).json.receipts.length,
      1,
      "a refused change does not write a row",
    );
    assert.equal((await reload(gate, { mode: "enforced" })).status, 400);
    assert.match((await reload(gate, { mod: "enforce" })).json.detail, /did you mean "mode"/);
  });

  test("a reload puts a contract in force only if its configured tests pass", async (t) => {
    const gate = await startWithTests(t);
    write(gate, contract("BLOCK"));
    const refused = await reload(gate);
    assert.deepEqual([refused.status, refused.json.code], [422, "contract-refused"]);
    assert.match(refused.json.detail, /✖ the door opens/);
    assert.doesNotMatch(refused.json.detail, /what is not listed/, "a case that passed");
    says("refused: a test fails", refused.json.detail.replaceAll(/\b[0-9.]+ m?s\b/g, "TIME"));
    assert.equal((await check(gate, open("s"))).json.verdict, "ALLOW");
    write(gate, limited);
    assert.equal((await reload(gate)).status, 200, "positive control: a contract that its tests agree with");
    rmSync(join(gate.folder, "contracts", "desk.test.yaml"));
    write(gate, contract("BLOCK"));
    const unchecked = await reload(gate);
    assert.equal(unchecked.status, 422, "tests that are not there do not pass");
    says("refused: tests are not there", unchecked.json.detail);
  });

  test("a new counter counts earlier calls, and a counter that was in force before goes on", async (t) => {
    const gate = await start(t, contract("ALLOW"));
    for (let n = 0; n < 2; n += 1) await check(gate, open("s"));
    write(gate, limited);
    const { json } = await reload(gate);
    assert.deepEqual(json.counters, [
      { counter: "desk.opened", counts: "from the first receipt", receipts: 2, events: 2, unknown_through: null },
    ]);
    assert.equal((await check(gate, open("s"))).json.verdict, "ALLOW");
    assert.match((await check(gate, open("s"))).json.reason, /3 times is enough/);
    write(gate, contract("ALLOW"));
    await reload(gate);
    await check(gate, open("s"));
    write(gate, limited);
    const back = await reload(gate);
    assert.deepEqual(
      back.json.counters.map(({ receipts, events }: Record<string, number>) => [receipts, events]),
      [[2, 1]],
      "what came while it was not in force is folded: a row of a person and a check",
    );
    assert.match((await check(gate, open("s"))).json.reason, /5 times is enough/);
    assert.equal((await ask(gate, "/ledger/verify")).json.ok, true);
  });

  test("a counter that starts empty says that it counts from now", async (t) => {
    const gate = await start(t, contract("ALLOW"));
    await check(gate, open("s"));
    write(gate, limited);
    const mandate =
      "mandate: test\ncontracts: [contracts/desk.yaml]\ncounters: { desk: { opened: { starts: empty } } }\n";
    writeFileSync(join(gate.folder, "mandate.yaml"), mandate);
    assert.equal((await reload(gate)).json.counters[0].counts, "from now on");
    for (let n = 0; n < 2; n += 1) assert.equal((await check(gate, open("s"))).json.verdict, "ALLOW");
    write(gate, contract("ALLOW"));
    writeFileSync(join(gate.folder, "mandate.yaml"), "mandate: test\ncontracts: [contracts/desk.yaml]\n");
    await reload(gate);
    await check(gate, open("s"));
    write(gate, limited);
    writeFileSync(join(gate.folder, "mandate.yaml"), mandate);
    assert.equal((await reload(gate)).json.counters[0].events, 1, "one that comes back goes on from where it stood");
    assert.match((await check(gate, open("s"))).json.reason, /3 times is enough/);
  });

  test("under load one contract decides each answer, and counters lose nothing", async (t) => {
    const gate = await start(t, limited.replace(">= 3", ">= 40"));
    const texts = [limited.replace(">= 3", ">= 40"), `# again\n${limited.replace(">= 3", ">= 40")}`];
    const reloading = new AbortController();
    const load = Array.from({ length: 8 }, async (_, session) => {
      const verdicts: string[] = [];
      while (!reloading.signal.aborted || verdicts.length < 60)
        verdicts.push((await check(gate, open(`s${session}`))).json.verdict);
      return verdicts;
    });
    for (let n = 1; n <= 8; n += 1) {
      write(gate, texts[n % 2] ?? "");
      assert.equal((await reload(gate, { mode: n % 4 < 2 ? "enforce" : "assist" })).status, 200);
    }
    reloading.abort();
    for (const verdicts of await Promise.all(load)) {
      assert.ok(verdicts.slice(0, 40).every((verdict) => verdict === "ALLOW"));
      assert.ok(verdicts.slice(40).every((verdict) => verdict !== "ALLOW"));
    }
    const rows: Record<string, string>[] = [];
    for (let next: number | null = null; ;) {
      const { json } = await ask(gate, `/receipts?kind=all&limit=1000${next === null ? "" : `&before=${next}`}`);
      rows.push(...json.receipts);
      next = json.next;
      if (next === null) break;
    }
    let standing: unknown;
    for (const row of rows.toReversed()) {
      if (row["act"] === "reload") standing = [row["contract"], row["mode"]];
      else if (standing !== undefined) assert.deepEqual([row["contract"], row["mode"]], standing);
    }
    assert.equal(rows.filter(({ act }) => act === "reload").length, 8);
    assert.equal((await ask(gate, "/ledger/verify")).json.ok, true);
  });

  test("only a key with scope admin can reload, and the new mode survives a restart", async (t) => {
    const gate = await start(t, contract("BLOCK"), { mode: "observe" });
    const mine = await ask(gate, "/admin/reload", { method: "POST", headers: { "content-type": "application/json" } });
    assert.deepEqual([mine.status, mine.json.code], [403, "forbidden"]);
    assert.equal((await reload(gate, { mode: "enforce" }, "nobody")).status, 401);
    await reload(gate, { mode: "enforce" });
    await gate.stop();
    const data = join(gate.folder, "data");
    const args = ["--mandate", join(gate.folder, "mandate.yaml"), "--data-dir", data];
    const again = await spawnGate(t, args, { env: { SVC_API_KEY: "another-key-of-some-length" } });
    assert.match(again.stdout(), /mode {6}enforce/);
    again.kill("SIGTERM");
    await again.exit;
    const said = await spawnGate(t, [...args, "--mode", "observe"], {
      env: { SVC_API_KEY: "another-key-of-some-length" },
    });
    assert.match(said.stdout(), /mode {6}observe/);
    assert.match(said.stdout(), /\benforce\b.*\bobserve\b.*--mode\b.*\brow 3\b/);
  });

  test("the gate reads its files again on SIGHUP", { skip: process.platform === "win32" }, async (t) => {
    const folder = temporaryFolder(t);
    const mandate = writeContracts(folder, { contracts: { "desk.yaml": contract("ALLOW") } });
    const gate = await spawnGate(t, ["--mandate", mandate, "--data-dir", join(folder, "data"), "--mode", "enforce"], {
      env: { SVC_API_KEY: key },
    });
    const until = async (word: string): Promise<void> => {
      while (!gate.stderr().includes(word)) await new Promise((resolve) => setTimeout(resolve, 20));
    };
    assert.equal((await check(gate, open("s"))).json.verdict, "ALLOW");
    writeFileSync(join(folder, "contracts", "desk.yaml"), "contract: [");
    gate.kill("SIGHUP");
    await until('"level":50');
    assert.equal((await check(gate, open("s"))).json.verdict, "ALLOW");
    writeFileSync(join(folder, "contracts", "desk.yaml"), contract("BLOCK"));
    gate.kill("SIGHUP");
    await until('"put in force"');
    assert.equal((await check(gate, open("s"))).json.verdict, "BLOCK");
    const { json } = await ask(gate, "/receipts?kind=all");
    assert.deepEqual([json.receipts[1].act, json.receipts[1].key], ["reload", "SIGHUP"]);
  });
});

type Located = Pick<Running, "address" | "folder">;

async function startWithTests(t: TestContext): Promise<Located> {
  const folder = temporaryFolder(t);
  const mandate = writeContracts(folder, { contracts: { "desk.yaml": contract("ALLOW") } });
  const tests = join(folder, "contracts", "desk.test.yaml");
  writeFileSync(
    tests,
    `tests: desk
contract: desk.yaml
cases:
  - case: the door opens
    calls:
      - { tool: door.open, input: {}, expect: ALLOW }
  - case: what is not listed
    calls:
      - { tool: door.shut, input: {}, expect: BLOCK }
`,
  );
  const args = ["--mandate", mandate, "--data-dir", join(folder, "data"), "--mode", "enforce", "--reload-tests", tests];
  const { address } = await spawnGate(t, args, { env: { SVC_API_KEY: key } });
  return { address, folder };
}
