/**
 * Goal: one command finds a person's receipts by a value and erases them; without `--yes` it changes nothing. Method:
 * the program runs on the same calls in a folder, in PostgreSQL and at a serving gate; then the test reads the
 * receipts. UPDATE_GOLDEN=1 rewrites the sentences.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, suite, test, type TestContext } from "node:test";
import { openPostgres } from "../../packages/gate/src/ledger/in-database.ts";
import { openLedger, type Ledger } from "../../packages/gate/src/ledger/mod.ts";
import { command } from "../support/command.ts";
import { ask, check, key, spawnGate, temporaryFolder, writeContracts } from "../support/gate.ts";
import { append, contracts, engine, entry } from "../support/ledger-fixture.ts";
import { openDatabase } from "../support/databases.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const server = await openDatabase({ after });
const why = ["--reason", "request 4711"] as const;

const inputs = [
  { customer: { email: "anna@example.com" }, amount: 10 },
  { customer: { email: "ANNA@example.com" }, amount: 10 },
  { customer: { email: "ben@example.com" }, amount: 10 },
  { customer: [{ email: "ben@example.com" }, { email: "anna@example.com" }], amount: 20 },
  { customer: "anna@example.com", note: "customer.email is anna@example.com" },
  { "customer.email": "anna@example.com", amount: "10" },
];

async function fill(ledger: Ledger): Promise<void> {
  await ledger.keepContract(contracts[0]);
  const rows = inputs.map((input, index) =>
    entry({ inputText: JSON.stringify(input), platformText: JSON.stringify({ user: { id: index % 2 } }) }),
  );
  await append(ledger, rows.map((row) => [row, []])); // prettier-ignore
}

interface Setup {
  readonly env: Readonly<Record<string, string>>;
  readonly open: () => Promise<Ledger>;
}

async function inFolder(t: TestContext): Promise<Setup> {
  const folder = join(temporaryFolder(t), "data");
  return { env: { SVC_DATA_DIR: folder }, open: () => openLedger({ folder, engine }) };
}

async function inDatabase(t: TestContext): Promise<Setup> {
  assert.ok(typeof server !== "string");
  const url = server.url();
  const folder = join(temporaryFolder(t), "data");
  const database = await openPostgres({ url, mayMigrate: true });
  t.after(() => database.close());
  const shared = { database, ledger: "root" };
  return { env: { SVC_DATA_DIR: folder, SVC_DATABASE_URL: url }, open: () => openLedger({ folder, shared, engine }) };
}

suite("erasure by value", () => {
  for (const [name, setup] of [
    ["a folder", inFolder],
    ["PostgreSQL", inDatabase],
  ] as const) {
    test(
      `erase in ${name} without a gate changes nothing in a preview and erases with --yes`,
      { tags: ["first-use-13"] },
      async (t) => {
        if (name === "PostgreSQL" && typeof server === "string") return t.skip(server);
        const { env, open } = await setup(t);
        const ledger = await open();
        await fill(ledger);
        await ledger.close();
        const cwd = temporaryFolder(t);
        const run = (...args: readonly string[]): ReturnType<typeof command> =>
          command(["erase", ...args], { folder: cwd, env });
        const head = async (): Promise<unknown> => {
          const now = await open();
          const { head: last, verify } = { head: { ...now.head }, verify: await now.verify() };
          await now.close();
          return [last, verify.rows, verify.broken];
        };
        const before = await head();
        const where = ["--where", "input.customer.email=anna@example.com"] as const;
        const shown = await run(...where);
        assert.deepEqual([shown.code, shown.stderr], [0, ""]);
        const [would = "", nothing = ""] = shown.stdout.split("\n");
        says("preview", would);
        says("preview-erases-nothing", nothing);
        assert.deepEqual(await head(), before, "nothing has changed");
        const both = await run(...where, "--where", "platform.user.id=1", "--json");
        assert.deepEqual(JSON.parse(both.stdout).preview.rows, [[4, 4]], "all of them must match");
        assert.deepEqual(JSON.parse((await run("--where", "input.amount=10", "--json")).stdout).preview.rows, [
          [1, 3],
          [6, 6],
        ]);
        const bare = await run(...where, "--yes");
        assert.equal(bare.code, 2);
        says("yes-without-a-reason", bare.stderr.trimEnd());
        assert.deepEqual(await head(), before, "nothing has changed");
        const erased = await run(...where, "--yes", ...why);
        assert.equal(erased.stderr, "", "positive control");
        says("erased", erased.stdout.split("\n")[0] ?? "");
        assert.notDeepEqual(await head(), before, "positive control: a change is seen");
        for (const args of [where, [...where, "--yes", ...why]]) {
          const again = await run(...args);
          assert.equal(again.code, 1);
          const [none = "", members = ""] = again.stderr.split("\n");
          says("nothing-to-erase", none);
          assert.match(members, /^ {2}members/);
        }
        const rest = await open();
        const receipts = (await Array.fromAsync(rest.rows.receipts({ before: 100, limit: 100 }))).flat();
        await rest.close();
        const left = receipts
          .map(({ json }) => JSON.parse(json))
          .filter(({ tool_input: input, act }) => input !== null && !act);
        assert.deepEqual(left.map(({ seq }) => seq), [6, 5, 3, 2]); // prettier-ignore
      },
    );
  }

  test(
    "erase at a running gate changes nothing in a preview and erases a sensitive member with --yes",
    { tags: ["first-use-13"] },
    async (t) => {
      const cwd = temporaryFolder(t);
      const contract = `contract: desk
sensitive: [input.customer.email]
tools:
  order:
    input:
      type: object
      additionalProperties: true
      properties: { customer: { type: object, additionalProperties: true, properties: { email: { type: string } } } }
    otherwise: ALLOW
`;
      writeContracts(cwd, { contracts: { "desk.yaml": contract } });
      const env = { SVC_DATA_DIR: join(cwd, "data"), SVC_LOG: "silent", SVC_API_KEY: key, SVC_MODE: "enforce" };
      const gate = await spawnGate(t, [], { cwd, env });
      for (const email of ["anna@example.com", "ben@example.com", "anna@example.com"])
        await check(gate, { tool_name: "order", tool_input: { customer: { email } } });
      const run = (...args: readonly string[]): ReturnType<typeof command> =>
        command(["erase", ...args], { folder: cwd, env });
      const where = ["--where", "input.customer.email=anna@example.com", "--part", "input.customer.email"] as const;
      const shown = await run(...where);
      assert.equal(shown.code, 0, shown.stderr);
      says("would-erase", shown.stdout.split("\n")[0] ?? "");
      assert.equal((await ask(gate, "/receipts/1")).json.tool_input.customer.email, "anna@example.com");
      assert.equal((await ask(gate, "/receipts?kind=all&limit=1")).json.receipts[0].seq, 3, "no row was added");
      const erased = await run(...where, "--yes", ...why);
      assert.equal(erased.code, 0, erased.stderr);
      says("erased-at-a-running-gate", erased.stdout.trimEnd());
      const emails = [];
      for (const seq of [1, 2, 3]) emails.push((await ask(gate, `/receipts/${seq}`)).json.tool_input.customer.email);
      assert.deepEqual(emails.map((email) => email === "ben@example.com"), [false, true, false]); // prettier-ignore
      const again = await run(...where);
      assert.equal(again.code, 1);
      assert.doesNotMatch(again.stderr, /^ {2}1 receipt /m, "every receipt was searched");
      const long = { customer: { email: "anna@example.com" }, note: "x".repeat(20_000) };
      await check(gate, { tool_name: "unknown", tool_input: long });
      const unsearched = (await run(...where)).stderr.split("\n").filter((line) => line.startsWith("  1 receipt "));
      assert.equal(unsearched.length, 1);
      says("input-not-kept-whole", unsearched[0] ?? "");
      gate.kill("SIGTERM");
      assert.equal(await gate.exit, 0, gate.stderr());
    },
  );

  const refused: readonly (readonly [args: readonly string[], name: string])[] = [
    [["--where", "customer"], "where-without-a-value"],
    [["--where", "customer.email=a"], "where-without-its-part"],
    [["--where", "input=a"], "where-of-a-part"],
    [["--where", "input.a=1", "--where", "input.a=2"], "where-twice"],
    [["--where", "input.a=1", "7"], "where-and-a-row"],
    [["7", "--yes", "--part", "input", ...why], "yes-without-where"],
    [["7", "--reason", "why"], "no-part"],
    [["7"], "no-part-and-no-reason"],
    [["7", "--part", "input"], "no-reason"],
  ];
  test("a wrong value is an error that says what to write", { tags: ["first-use-13"] }, async (t) => {
    const { env, open } = await inFolder(t);
    await (await open()).close();
    for (const [args, name] of refused) {
      const { code, stderr } = await command(["erase", ...args], { env });
      assert.equal(code, 2, args.join(" "));
      says(name, stderr.trimEnd());
    }
  });
});
