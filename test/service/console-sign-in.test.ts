/**
 * Goal: only a person with a key opens a session, on a new gate only one who sees its terminal, and tenants stay apart.
 * Method: gates as processes, whose standard output is the terminal, and gates with tenants. Positive controls: planted
 * defects.
 */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { startDesk, type Desk } from "../support/approvals.ts";
import { cookieIn, pageOf, sendAsPage, sendPlain, signIn, trySignIn, type ConsoleAnswer } from "../support/console.ts";
import { control } from "../support/controls/control.ts";
import { ask, key, spawnGate, temporaryFolder, writeContracts, type Answer, type Spawned } from "../support/gate.ts";
import type { Mutation } from "../support/mutation/mutate.ts";
import { mutatedEnvironment, preload } from "../support/mutation/sources.ts";
import { eventually } from "../support/patience.ts";

interface Case<Started> {
  readonly rule: string;
  readonly run: (started: Started, t: TestContext) => Promise<void>;
  readonly defect: Mutation | readonly Mutation[];
}

function runCases<Started>(
  name: string,
  start: (t: TestContext, defects: readonly Mutation[]) => Promise<Started>,
  cases: readonly Case<Started>[],
): void {
  suite(name, { concurrency: 2 }, () => {
    for (const { rule, run, defect } of cases) {
      test(rule, async (t) => run(await start(t, []), t));
      control(`positive control: a defect is noticed by "${rule}"`, async (t) => {
        const started = await start(t, [defect].flat());
        await assert.rejects(async () => run(started, t));
      });
    }
  });
}

/** A gate without an approver key, and its terminal. */
interface NewGate extends Pick<Spawned, "address"> {
  /** The codes that the terminal has shown. */
  readonly codes: () => readonly string[];
  readonly operates: (path: string, body: object) => Promise<Answer>;
}

async function startNewGate(t: TestContext, defects: readonly Mutation[]): Promise<NewGate> {
  const folder = temporaryFolder(t);
  const env = {
    ...mutatedEnvironment(defects),
    SVC_API_KEY: key,
    SVC_MANDATE: writeContracts(folder, {}),
    SVC_DATA_DIR: join(folder, "data"),
    SVC_LOG: "silent",
  };
  const gate = await spawnGate(t, [], { cwd: folder, env, preload: defects.length === 0 ? [] : [preload] });
  const operator = JSON.parse(readFileSync(join(folder, "data", "operator.json"), "utf8")).key as string;
  return {
    address: gate.address,
    codes: () => [...gate.stdout().matchAll(/sign in to the console: (\S+)/g)].map(([, code = ""]) => code),
    operates: (path, body) =>
      ask(gate, path, {
        method: "POST",
        headers: { authorization: `Bearer ${operator}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
  };
}

function assertNeedsCode(answer: ConsoleAnswer): void {
  assert.equal(answer.status, 403, answer.text);
  assert.equal(answer.json.code, "code-needed");
  assert.equal(answer.headers["set-cookie"], undefined);
}

/** Asks for a code, and reads it from the terminal. */
async function shownCode(gate: NewGate): Promise<string> {
  assertNeedsCode(await trySignIn(gate, key));
  return eventually("a code on the terminal", () => gate.codes().at(-1));
}

runCases("the first sign-in to a new gate", startNewGate, [
  {
    rule: "the first sign-in needs the code that the terminal shows, and no answer contains it",
    run: async (gate) => {
      const code = await shownCode(gate);
      assert.match(code, /^[A-HJ-NP-TV-Z2-9]{8}$/);
      const refused = await trySignIn(gate, key, { code: code === "ABCDEFGH" ? "ABCDEFGJ" : "ABCDEFGH" });
      assertNeedsCode(refused);
      assert.ok(!JSON.stringify(refused).includes(code));
      await signIn(gate, key, { code: ` ${code.toLowerCase()} ` });
    },
    defect: { within: "ConsoleDoor.signIn", find: "firstCode.redeem(code)", put: 'code !== ""' },
  },
  {
    rule: "the code is good once",
    run: async (gate) => {
      const code = await shownCode(gate);
      await signIn(gate, key, { code });
      assertNeedsCode(await trySignIn(gate, key, { code }));
    },
    defect: { within: "FirstCode.redeem", find: "if (isRight) [this.#until, this.#tries] = [0, 0];", put: ";" },
  },
  {
    rule: "five wrong codes end the code, and the terminal does not fill with others",
    run: async (gate) => {
      const code = await shownCode(gate);
      for (let n = 0; n < 5; n += 1) assertNeedsCode(await trySignIn(gate, key, { code: "WRONGWRO" }));
      assertNeedsCode(await trySignIn(gate, key, { code }));
      for (let n = 0; n < 5; n += 1) await trySignIn(gate, key, { code: "WRONGWRO" });
      assert.deepEqual(gate.codes(), [code]);
    },
    defect: { within: "triesMax", module: "server/first-code", value: "500" },
  },
  {
    rule: "without a code, five wrong codes do not fill the terminal either",
    run: async (gate) => {
      await shownCode(gate);
      for (let n = 0; n < 20; n += 1) await trySignIn(gate, key, { code: "WRONGWRO" });
      await new Promise((resolve) => setTimeout(resolve, 200)); // No other code must come.
      assert.equal(gate.codes().length, 1);
    },
    defect: { within: "showEveryMs", value: "0" },
  },
  {
    rule: "a wrong key is refused before the gate asks for a code",
    run: async (gate) => {
      const answer = await trySignIn(gate, "wrong");
      assert.equal(answer.status, 401);
      await new Promise((resolve) => setTimeout(resolve, 200)); // No code must come.
      assert.deepEqual(gate.codes(), []);
    },
    defect: { within: "ConsoleDoor.signIn", first: "this.#parts.code.show();" },
  },
  {
    rule: "a key that can decide calls ends the need for a code, and its end brings the need back",
    run: async (gate) => {
      await gate.operates("/admin/persons", { name: "anna" });
      await gate.operates("/admin/keys", { name: "reader", scopes: ["receipts"], person: "anna" });
      assertNeedsCode(await trySignIn(gate, key));
      await gate.operates("/admin/keys", { name: "laptop", scopes: ["approve"], person: "anna" });
      await signIn(gate, key);
      await gate.operates("/admin/keys/laptop/revoke", {});
      assertNeedsCode(await trySignIn(gate, key));
    },
    defect: { within: "ConsoleDoor.signIn", find: "!keys.known.hasApprover", put: "true" },
  },
]);

/** A gate with the tenants acme and other, and a key of each. */
interface Tenanted {
  readonly desk: Desk;
  readonly keys: Readonly<Record<"acme" | "other" | "root", string>>;
}

async function startTenants(t: TestContext, defects: readonly Mutation[]): Promise<Tenanted> {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, "own"));
  writeFileSync(
    join(folder, "own", "c.yaml"),
    "contract: c\ntools: { note.add: { input: { type: object, additionalProperties: true }, otherwise: ALLOW } }\n",
  );
  const entries = ["acme", "other"].map((id) => `  ${id}: { mandate: own/c.yaml, mode: enforce }\n`);
  writeFileSync(join(folder, "tenants.yaml"), `tenants:\n${entries.join("")}`);
  const desk = await startDesk(t, { folder, defects, env: { SVC_TENANTS: join(folder, "tenants.yaml") } });
  const made = async (tenant: string): Promise<string> => {
    const answer = await desk.operates(`/t/${tenant}/admin/keys`, { name: "reader", scopes: ["receipts", "rules"] });
    assert.equal(answer.status, 201, answer.text);
    return answer.json.key;
  };
  const keys = { acme: await made("acme"), other: await made("other"), root: desk.keys["anna"] ?? "" };
  return { desk, keys };
}

/** An answer without what differs between any two answers, and with the tenant's id replaced. */
function comparable({ status, headers, text }: ConsoleAnswer, tenant: string): string {
  const kept = Object.entries(headers).filter(([name]) => name !== "x-request-id" && name !== "date");
  return JSON.stringify([status, kept, text]).replaceAll(`/t/${tenant}/`, "/t/TENANT/");
}

runCases("the console of a tenant", startTenants, [
  {
    rule: "a tenant that does not exist gives the same answers as one that does, byte for byte",
    run: async ({ desk, keys }) => {
      const anna = await signIn(desk, keys.root);
      const { host } = new URL(desk.address);
      const answersOf = async (tenant: string): Promise<readonly string[]> => {
        const own = { cookie: anna.cookie, "x-svc-session": anna.secret };
        const answers = [
          await sendPlain(desk, `/t/${tenant}/console`, { headers: { host } }),
          await sendPlain(desk, `/t/${tenant}/console/approvals`, { headers: { host } }),
          await sendAsPage(desk, "/session", {}, { tenant }),
          await sendAsPage(desk, "/session", { headers: own }, { tenant }),
          await sendAsPage(desk, "/session/end", { headers: own, body: {} }, { tenant }),
          await sendAsPage(desk, "/api/receipts", { headers: own }, { tenant }),
          await sendAsPage(desk, "/api/health", {}, { tenant }),
          await sendAsPage(desk, "/api/nothing", {}, { tenant }),
          await trySignIn(desk, "wrong", { tenant }),
          await trySignIn(desk, keys.root, { tenant }),
          await trySignIn(desk, keys.acme, { tenant }),
        ];
        return answers.map((answer) => comparable(answer, tenant));
      };
      const known = await answersOf("other");
      assert.equal(known.filter((text) => text.startsWith("[200,")).length, 2, "only the page needs no session");
      assert.deepEqual(await answersOf("ghost"), known);
    },
    defect: {
      within: "addConsole",
      find: "handle({ ...parts, request, reply })",
      put: "(service.tenants?.has(request.params.tenant) === false ? reply.code(404).send('') : $found)",
    },
  },
  {
    rule: "a session of a tenant opens that tenant, and nothing of the root or of another tenant",
    run: async ({ desk, keys }) => {
      const acme = await signIn(desk, keys.acme, { tenant: "acme" });
      assert.match(acme.cookie, /^svc-\d+-acme=/);
      assert.equal((await acme("/api/receipts")).status, 200);
      assert.equal((await acme("/session")).json.tenant, "acme");
      for (const tenant of ["other", "nobody", undefined]) {
        const name = cookieIn({
          headers: { "set-cookie": [acme.cookie.replace("-acme=", tenant ? `-${tenant}=` : "=")] },
        });
        const elsewhere = pageOf(desk, { ...acme, cookie: name ?? "" }, tenant === undefined ? {} : { tenant });
        for (const path of ["/session", "/api/receipts", "/api/health"])
          assert.equal((await elsewhere(path)).status, 401, `${tenant} ${path}`);
        assert.equal((await trySignIn(desk, keys.acme, tenant === undefined ? {} : { tenant })).status, 401);
      }
    },
    defect: { within: "ConsoleDoor.#scopeOf", first: 'return "/console";' },
  },
  {
    rule: "a path whose tenant is not an id shows no page",
    run: async ({ desk }) => {
      const { host } = new URL(desk.address);
      for (const id of [
        "&quot;",
        "&period;&period;&sol;t&sol;acme",
        "ACME",
        "a_b",
        "-a",
        "a".repeat(64),
        '"><script>',
        "'",
      ]) {
        const { status, text } = await sendPlain(desk, `/t/${id}/console`, { headers: { host } });
        assert.ok(status === 404 && !text.includes("<!doctype"), `${id}: ${status} ${text}`);
      }
    },
    defect: { within: "sendPage", find: "tenant !== undefined && !tenantId.test(tenant)", put: "false" },
  },
]);

runCases("sign-ins with wrong keys", (t, defects) => startDesk(t, { defects }), [
  {
    rule: "no sign-in shows whether a key was wrong, revoked or of another kind, and none shows the key",
    run: async (desk) => {
      const texts = new Set<string>();
      const [anna = ""] = [desk.keys["anna"]];
      await desk.operates("/admin/keys/bob-laptop/revoke", {});
      for (const wrong of [
        "",
        "x",
        anna.slice(0, -1),
        `${anna}x`,
        desk.keys["bob"] ?? "",
        `Bearer ${anna}`,
        ` ${anna}`,
      ]) {
        const answer = await trySignIn(desk, wrong);
        assert.equal(answer.status, 401);
        assert.equal(answer.headers["set-cookie"], undefined);
        assert.ok(wrong === "" || wrong === "x" || !JSON.stringify(answer).includes(wrong));
        texts.add(answer.text);
      }
      assert.equal(texts.size, 1);
      for (const body of [{}, { key: 1 }, { key: anna, code: 1 }, { key: anna, more: 1 }, "[]"]) {
        const { status, json, text } = await sendAsPage(desk, "/session", { body });
        assert.equal(status, 400, text);
        assert.ok(!JSON.stringify(json).includes(anna));
      }
    },
    defect: {
      within: "ConsoleDoor.signIn",
      find: "if (keys.known.findDigest(digest)?.tenant !== tenant) return bad(wrongKey);",
      put: "if (keys.known.findDigest(digest)?.tenant !== tenant) return bad({ ...wrongKey, detail: text });",
    },
  },
]);

/** The bucket for refusals never has a whole token, so every refusal that passes it waits. */
const emptyBucket: Mutation = { within: "makeServer", find: "limits.refusalsPerSecond", put: "1" };

runCases(
  "a gate whose bucket for refusals is empty",
  (t, defects) => startDesk(t, { defects: [emptyBucket, ...defects] }),
  [
    {
      rule: "a wrong key waits in the same bucket as the other refusals, and a right key does not",
      run: async (desk, t) => {
        let answered = 0;
        const wrong = [trySignIn(desk, "wrong"), ask(desk, "/rules", { headers: { authorization: "Bearer wrong" } })];
        for (const each of wrong) each.then(() => (answered += 1)).catch(() => undefined); // The gate stops first.
        await signIn(desk, desk.keys["anna"] ?? "");
        await new Promise((resolve) => setTimeout(resolve, 500)); // No refusal must come.
        t.diagnostic(`${answered} of ${wrong.length} refusals were sent`);
        assert.equal(answered, 0);
      },
      defect: { within: "sendRefusal", find: "const isSent = outlet.valve.pass(send);", put: "const isSent = send();" },
    },
  ],
);
