/**
 * Goal: a provider that is slow, broken, hostile or only different does no harm, and the person reads why. Method: gates
 * whose provider on this machine misbehaves. Positive controls: each scenario fails against a gate with a planted defect.
 */
import assert from "node:assert/strict";
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { text as bodyOf } from "node:stream/consumers";
import { test } from "node:test";
import { readOidc } from "../../packages/console/src/server/oidc/settings.ts";
import { readPrivateJson } from "../../packages/gate/src/server/settings/private-file.ts";
import type { Desk } from "../support/approvals.ts";
import { sendAsPage, type ConsoleAnswer } from "../support/console.ts";
import { finish, startGate, temporaryFolder } from "../support/gate.ts";
import { assertRefused, runOidcRules, signedIn, type OidcRule } from "../support/oidc-desk.ts";
import {
  oidcFile,
  returnToGate,
  signInWith,
  visitProvider,
  type Returned,
  type TestProvider,
} from "../support/oidc.ts";
import { eventually } from "../support/patience.ts";

const rules: readonly OidcRule[] = [
  {
    rule: "the gate sends no secret over plain HTTP to another machine",
    run: async (desk, provider) => {
      provider.intercept = discovering((known) => ({
        ...known,
        token_endpoint: String(known["token_endpoint"]).replace("127.0.0.1", "0.0.0.0"),
      }));
      assertRefused(await signInWith(desk, "subject of anna"), /cannot be reached/, "provider-unavailable");
    },
    defect: { within: "askProvider", find: "isPrivateUrl(target)", put: "true" },
  },
  {
    rule: "a provider that describes itself under another name is refused",
    run: async (desk, provider) => {
      provider.intercept = discovering((known) => ({ ...known, issuer: `${provider.issuer}/` }));
      const started = await sendAsPage(desk, "/oidc", { body: {} });
      assertRefused(started, /the provider calls itself "http:\/\/127\.0\.0\.1:\d+\/"/);
    },
    defect: { within: "Provider.discover", find: "stated !== settings.issuer", put: "false" },
  },
  {
    rule: "the gate waits five seconds for the provider",
    run: async (desk, provider) => {
      const returned = await visitProvider(desk, "subject of anna");
      provider.intercept = ({ url }) => url === "/token";
      assertRefused(await returnToGate(desk, returned), /within 5 s/, "provider-unavailable");
    },
    defect: { within: "askSeconds", value: "6" },
  },
  {
    rule: "failures of the provider are refusals with a sentence, which repeats no text of the provider",
    run: async (desk, provider) => {
      const failures: readonly (readonly [status: number, text: string, detail: RegExp, code?: string])[] = [
        [500, "hidden", /not one of OpenID Connect \(OAUTH_RESPONSE_IS_NOT_CONFORM\)/, "provider-unavailable"],
        [302, "hidden", /not one of OpenID Connect/, "provider-unavailable"],
        [200, "hidden", /not one of OpenID Connect/, "provider-unavailable"],
        [200, '{"access_token":"hidden","token_type":"bearer"}', /cannot be trusted/],
        [400, '{"error":"invalid_client","error_description":"hidden"}', /refused the sign-in \(invalid_client\)/],
        [400, '{"error":"hidden hidden"}', /refused the sign-in \(no code\)/],
        [200, `{"access_token":"${"hidden".repeat(200_000)}"}`, /cannot be reached/, "provider-unavailable"],
      ];
      for (const [status, text, detail, code] of failures) {
        const returned = await visitProvider(desk, "subject of anna");
        provider.intercept = ({ url }, response) => {
          if (url !== "/token") return false;
          response.writeHead(status, { "content-type": "application/json", location: "/hidden" }).end(text);
          return true;
        };
        const answer = await returnToGate(desk, returned);
        assertRefused(answer, detail, code);
        assert.doesNotMatch(answer.text, /hidden/);
        provider.intercept = undefined;
      }
      const { flow, answer } = await visitProvider(desk, "subject of anna");
      const state = new URLSearchParams(answer).get("state");
      const denied = `?error=access_denied&error_description=hidden&state=${state}&iss=${encodeURIComponent(provider.issuer)}`;
      assertRefused(await returnToGate(desk, { flow, answer: denied }), /refused the sign-in \(access_denied\)/);
    },
    defect: {
      within: "catchProviderErrors",
      find: "return bad(problemOf(error as ProviderError));",
      put: "throw error;",
    },
  },
  {
    rule: "the gate asks the provider without a proxy of the environment",
    env: { NODE_USE_ENV_PROXY: "1", HTTP_PROXY: "http://127.0.0.1:9", http_proxy: "http://127.0.0.1:9" },
    run: async (desk) => void (await signedIn(desk)),
    defect: { within: "requestTo", find: "isSecure ? new HttpsAgent() : new HttpAgent()", put: "undefined" },
  },
  {
    rule: "groups that the ID token does not have are read from the address of user information",
    register: { isBare: true },
    run: async (desk) => {
      assert.deepEqual((await signedIn(desk)).signedIn.json.groups, ["finance", "oidc:finance"]);
    },
    defect: { within: "Provider.account", find: "claims[groupsClaim] === undefined && $more", put: "false" },
  },
  {
    rule: "only the listed groups of a person count, under their listed names",
    file: { groups: { "Money Team": "finance", "/law": "legal" } },
    run: async (desk, { groups }) => {
      const many = Array.from({ length: 300 }, (_, index) => `g${index}`);
      groups.set("subject of anna", ["finance", "Money Team", "/law", "legal ", ...many]);
      assert.deepEqual((await signedIn(desk)).signedIn.json.groups, ["finance", "oidc:finance", "oidc:legal"]);
    },
    defect: { within: "groupsIn", find: "groups === undefined", put: "true" },
  },
  {
    rule: "a person with over 16 groups is told that the file must list those that count",
    run: async (desk, { groups }) => {
      const many = Array.from({ length: 16 }, (_, index) => `g${index}`);
      groups.set("subject of anna", many);
      assert.equal((await signedIn(desk)).signedIn.json.groups.length, 17);
      groups.set("subject of anna", [...many, "g16"]);
      assertRefused(await signInWith(desk, "subject of anna"), /over 16 groups: an administrator lists/);
    },
    defect: { within: "groupsMax", module: "oidc/provider", value: "100" },
  },
  {
    rule: "strangers at the address of a person, such as that of a proxy, stop no sign-in",
    run: async (desk) => {
      const many = async (number: number, act: () => Promise<ConsoleAnswer>): Promise<readonly ConsoleAnswer[]> =>
        Promise.all(Array.from({ length: number }, act));
      const started = await many(100, () => sendAsPage(desk, "/oidc", { body: {} }));
      assert.deepEqual(
        started.filter(({ status }) => status !== 200),
        [],
      );
      for (const { json } of started) {
        const { location, flow } = json as { readonly location: string; readonly flow: string };
        const state = new URL(location).searchParams.get("state") ?? "";
        for (const [given, answer] of [
          [flow, `?code=wrong&state=${state}`],
          [flow, "?code=wrong"],
          ["forged", `?code=wrong&state=${state}`],
        ] as const)
          assertRefused(await returnToGate(desk, { flow: given, answer }), /./);
      }
      const strangers = many(100, () => sendAsPage(desk, "/oidc", { body: {} }));
      await signedIn(desk);
      await strangers;
    },
    defect: {
      within: "OidcSignIn.finish",
      first: "if ((this.count = (this.count ?? 0) + 1) > 100) return bad(tooMany);",
    },
  },
  {
    rule: "a sign-in waits while the provider redeems 32 others",
    run: async (desk, provider) => {
      const returned = await Promise.all(Array.from({ length: 40 }, () => visitProvider(desk, "subject of anna")));
      const delayed = delayTokens(provider);
      const strangers = Promise.all(returned.map((each) => returnToGate(desk, each)));
      let most = 0;
      for (let ended = 0; ended < 8; ended += 1) {
        await eventually("32 sign-ins at the provider", () => delayed.length >= 32 + ended);
        most = Math.max(most, delayed.length - ended);
        delayed[ended]?.refuse();
      }
      provider.intercept = undefined;
      for (const { refuse } of delayed) refuse();
      await strangers;
      assert.equal(most, 32);
    },
    defect: { within: "redeemedMax", value: "1000" },
  },
  {
    rule: "strangers of one network do not hold up the sign-in of a person from another",
    run: async (desk, provider) => {
      const own = await visitProvider(desk, "subject of bob");
      assert.ok(await isSoonServed(desk, provider, own, "127.0.0.2"));
    },
    defect: { within: "OidcSignIn.#inTurn", find: "{ id: network, tenant: null }", put: '{ id: "", tenant: null }' },
  },
  {
    rule: "a browser in which a person has signed in before goes before strangers who have its address",
    run: async (desk, provider) => {
      const { known } = (await signedIn(desk, "subject of bob")).signedIn.json;
      const own = await visitProvider(desk, "subject of bob");
      assert.ok(await isSoonServed(desk, provider, { ...own, known }));
      const another = await visitProvider(desk, "subject of bob");
      assert.ok(!(await isSoonServed(desk, provider, { ...another, known: own.flow })));
    },
    defect: {
      within: "OidcSignIn.#inTurn",
      find: "browser !== undefined && this.#now() < browser.until",
      put: "false",
    },
  },
  {
    rule: "what a known browser has opens nothing",
    run: async (desk) => {
      const { known } = (await signedIn(desk)).signedIn.json;
      const { flow, answer } = await visitProvider(desk, "subject of anna");
      assertRefused(await returnToGate(desk, { flow: known, answer }), /started elsewhere/);
      assert.equal((await returnToGate(desk, { flow, answer, known: "forged" })).status, 200);
    },
    defect: [
      { within: "knownIn", first: "return base;" },
      { within: "OidcSignIn.#take", find: "now >= until || this.#taken.has(state)", put: "false" },
      { within: "OidcSignIn.#redeem", find: "read.value.settings.issuer !== flow.issuer", put: "false" },
      {
        within: "Provider.account",
        find: "this.#client.authorizationCodeGrant($config, $at, $checks)",
        put: "({ access_token: '', claims: () => ({ sub: 'subject of anna', iat: 0, groups: [] }) })",
      },
    ],
  },
  {
    rule: "a provider that fails is asked once a second, however many people try",
    run: async (desk, provider) => {
      let requests = 0;
      provider.intercept = (_request, response) => {
        requests += 1;
        response.writeHead(500).end();
        return true;
      };
      const started: ConsoleAnswer[] = [];
      const since = performance.now();
      for (let n = 0; n < 50; n += 1) started.push(await sendAsPage(desk, "/oidc", { body: {} }));
      const seconds = (performance.now() - since) / 1000;
      assert.ok(started.every(({ json }) => json.code === "provider-unavailable"));
      assert.ok(requests >= 1 && requests <= seconds + 1, `${requests} in ${seconds} s`);
      provider.intercept = undefined;
      const canStart = async (): Promise<boolean> => (await sendAsPage(desk, "/oidc", { body: {} })).status === 200;
      await eventually("a provider that answers again", canStart);
      await signedIn(desk);
    },
    defect: { within: "OidcSignIn.#provider", find: "this.#now() + sharedMs", put: "0" },
  },
];

interface DelayedToken {
  readonly code: string | null;
  readonly refuse: () => void;
}

/** Keeps every code that the gate redeems, until the test refuses it. */
function delayTokens(provider: TestProvider): readonly DelayedToken[] {
  const delayed: DelayedToken[] = [];
  provider.intercept = (request, response) => {
    if (request.url !== "/token") return false;
    const refuse = (): void => {
      if (!response.headersSent) response.writeHead(400).end('{"error":"invalid_grant"}');
    };
    void bodyOf(request).then((body) => delayed.push({ code: new URLSearchParams(body).get("code"), refuse }));
    return true;
  };
  return delayed;
}

/** Asks whether a person goes before most of 72 strangers, who came earlier and wait for the provider. */
async function isSoonServed(desk: Desk, provider: TestProvider, own: Returned, from?: string): Promise<boolean> {
  const returned = await Promise.all(Array.from({ length: 72 }, () => visitProvider(desk, "subject of anna")));
  const code = new URLSearchParams(own.answer).get("code");
  const delayed = delayTokens(provider);
  const strangers = Promise.all(returned.map((each) => returnToGate(desk, each)));
  await eventually("32 sign-ins at the provider", () => delayed.length >= 32);
  const person = sendAsPage(desk, "/session", { body: { oidc: own }, ...(from !== undefined && { from }) });
  // Forty strangers came before, and each end of another lets one of those that wait go on.
  for (let ended = 0; ended < 12; ended += 1) {
    delayed[ended]?.refuse();
    await eventually("the next in the line", () => delayed.length > 32 + ended);
  }
  const isServed = delayed.some((each) => each.code === code);
  provider.intercept = undefined;
  for (const { refuse } of delayed) refuse();
  await Promise.all([strangers, person]);
  return isServed;
}

/** Changes what the provider says about itself. */
function discovering(change: (known: Readonly<Record<string, unknown>>) => object): TestProvider["intercept"] {
  return ({ url, headers }, response) => {
    if (url !== "/.well-known/openid-configuration" || headers["x-test"] !== undefined) return false;
    void fetch(`http://${headers.host}${url}`, { headers: { "x-test": "1" } }).then(async (answer) => {
      const known = (await answer.json()) as Readonly<Record<string, unknown>>;
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(change(known)));
    });
    return true;
  };
}

runOidcRules("providers of OpenID Connect", rules);

test("a gate without SVC_OIDC has no sign-in with a provider, and one with it names the provider", async (t) => {
  const without = await startGate(t);
  const none = await sendAsPage(without, "/methods");
  assert.deepEqual([none.status, none.json], [200, { oidc: null }]);
  for (const [path, body] of [
    ["/oidc", {}],
    ["/session", { oidc: { flow: "", answer: "" } }],
  ] as const)
    assertRefused(await sendAsPage(without, path, { body }), /no sign-in with a provider/, "not-found");
  const file = oidcFile(temporaryFolder(t), { issuer: "https://login.example" });
  const gate = await startGate(t, { flags: { oidc: file } });
  assert.deepEqual((await sendAsPage(gate, "/methods")).json, { oidc: { name: "the test" } });
  assert.equal((await sendAsPage(gate, "/methods", { headers: { "x-svc-console": undefined } })).status, 403);
  assert.equal((await sendAsPage(gate, "/session")).status, 401);
});

const person = { subject: "s1", key: "anna-laptop" };

const wrongFiles: readonly (readonly [changes: object, problem: RegExp])[] = [
  [{ issuer: "http://login.example" }, /`issuer` must be an https address/],
  [{ issuer: "https://hidden@login.example" }, /`issuer` must be/],
  [{ issuer: "https://login.example/?hidden" }, /`issuer` must be/],
  [{ client_id: "" }, /`client_id` must be a text/],
  [{ client_secret: 7 }, /`client_secret` must be a text/],
  [{ scopes: ["groups"] }, /`openid` one of them/],
  [{ groups_claim: "" }, /`groups_claim`/],
  [{ groups: ["finance"] }, /`groups` must be an object/],
  [{ groups: { hidden: "oidc:finance" } }, /`groups` must be an object/],
  [{ name: "two\nlines" }, /`name` must be a text/],
  [{ persons: undefined }, /`persons` must be a list/],
  [{ persons: [{ subject: "hidden", key: "Anna" }] }, /person 1 must have a `subject`, and a `key`/],
  [{ persons: [{ subject: "", key: "anna-laptop" }] }, /person 1 must have/],
  [{ persons: [{ ...person, mail: "hidden" }] }, /"mail" is unknown/],
  [{ persons: [person, { ...person, key: "bob-laptop" }] }, /person 2 has a key or/],
  [{ persons: [person, { ...person, subject: "hidden" }] }, /person 2 has a key or/],
  [{ clientid: "x" }, /"clientid" is unknown; did you mean "client_id"/],
];

test("a mistake in the file of SVC_OIDC is named without any value of the file, and the gate does not start", async (t) => {
  const folder = temporaryFolder(t);
  const issuer = { issuer: "https://login.example" };
  for (const [changes, problem] of wrongFiles) {
    const read = await readOidc(oidcFile(folder, issuer, changes), readPrivateJson);
    assert.ok(!read.ok, JSON.stringify(changes));
    assert.match(read.problem, problem);
    assert.doesNotMatch(read.problem, /hidden|a secret that/);
  }
  assert.ok(
    (
      await readOidc(
        oidcFile(folder, issuer, { persons: [person, { subject: "s1", key: "acme/anna" }] }),
        readPrivateJson,
      )
    ).ok,
  );
  const file = oidcFile(folder, issuer, { scopes: [] });
  for (const mode of [0o640, 0o604]) {
    chmodSync(file, mode);
    const read = await readOidc(file, readPrivateJson);
    assert.ok(!read.ok && /SVC_OIDC: others can read the file/.test(read.problem));
  }
  chmodSync(file, 0o600);
  const starts = (args: readonly string[]): ReturnType<typeof finish> =>
    finish(t, ["serve", "--port", "0", "--data-dir", join(folder, "data"), "--oidc", file, ...args], { cwd: folder });
  const wrong = await starts([]);
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /SVC_OIDC: in the file .*`openid` one of them/);
  const off = await starts(["--console", "off"]);
  assert.equal(off.code, 2);
  assert.match(off.stderr, /SVC_OIDC is set, but the gate does not serve the console/);
});
