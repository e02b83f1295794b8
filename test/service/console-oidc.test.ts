/**
 * Goal: a person who signs in with a provider of OpenID Connect gets the session of their own key, with the groups that
 * the provider states now, and nobody else gets one. Method: gates that sign persons in with `oidc-provider` on this
 * machine. Positive controls: each scenario fails against a gate with a planted defect.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { Seal } from "../../packages/svc-gate/src/gate/console/seal.ts";
import { large, payments, startDesk, type Desk } from "../support/approvals.ts";
import { cookieIn, pageOf, sendAsPage, type ConsoleAnswer, type ConsolePage } from "../support/console.ts";
import { temporaryFolder } from "../support/gate.ts";
import type { Mutation } from "../support/mutation/mutate.ts";
import {
  oidcFile,
  otherKey,
  returnToGate,
  signInWith,
  startProvider,
  visitProvider,
  type RegisterOptions,
  type TestProvider,
} from "../support/oidc.ts";

interface OidcRule {
  readonly rule: string;
  readonly run: (desk: Desk, provider: TestProvider, t: TestContext) => Promise<void>;
  /** Several where two checks back each other. */
  readonly defect: Mutation | readonly Mutation[];
  readonly register?: RegisterOptions;
  /** Changes of the file of SVC_OIDC. */
  readonly file?: object;
  readonly env?: Readonly<Record<string, string>>;
}

const contract = payments.replaceAll("by: [finance]", 'by: ["oidc:finance"]');

async function start(
  t: TestContext,
  { register, file, env }: Partial<OidcRule>,
  defects: readonly Mutation[] = [],
): Promise<readonly [Desk, TestProvider]> {
  const provider = await startProvider(t);
  const folder = temporaryFolder(t);
  const settings = { SVC_OIDC: oidcFile(folder, provider, file), ...env };
  const desk = await startDesk(t, { folder, contract, defects, env: settings });
  provider.register(desk, register);
  provider.groups.set("subject of anna", ["finance"]);
  return [desk, provider];
}

async function signedIn(desk: Desk, subject = "subject of anna"): Promise<ConsolePage> {
  const answer = await signInWith(desk, subject);
  assert.equal(answer.status, 200, answer.text);
  const cookie = cookieIn(answer) ?? assert.fail("the sign-in set no cookie");
  return pageOf(desk, { cookie, secret: answer.json.session, signedIn: answer });
}

function assertRefused(answer: ConsoleAnswer, detail: RegExp, code = "sign-in-refused"): void {
  assert.equal(answer.json.code, code, answer.text);
  assert.match(answer.json.detail, detail);
  assert.equal(cookieIn(answer), undefined);
}

/** A gate that reads the ID token and checks nothing. */
const uncheckedToken: Mutation = {
  within: "Provider.account",
  find: "await this.#client.authorizationCodeGrant($$of)",
  put: `await (async () => {
    const answer = await fetch(this.#config.serverMetadata().token_endpoint, {
      method: "POST",
      headers: {
        authorization: "Basic " + btoa([this.#settings.clientId, this.#settings.clientSecret].map(encodeURIComponent).join(":").replaceAll("%20", "+")),
      },
      body: new URLSearchParams({
        grant_type: "authorization_code", code: url.searchParams.get("code"), redirect_uri: redirect, code_verifier: verifier,
      }),
    });
    const body = await answer.json();
    return { ...body, claims: () => JSON.parse(Buffer.from(body.id_token.split(".")[1], "base64url").toString()) };
  })()`,
};

/** Other checks of an answer. */
function grantWith(checks: string): Mutation {
  return {
    within: "Provider.account",
    find: "this.#client.authorizationCodeGrant($config, $at, $checks)",
    put: `this.#client.authorizationCodeGrant($config, $at, { ...$checks, ${checks} })`,
  };
}

const rules: readonly OidcRule[] = [
  {
    rule: "a person gets the session of the key that is mapped to their own subject, and another subject gets none",
    run: async (desk) => {
      const anna = await signedIn(desk);
      const { json } = await anna("/session");
      assert.equal(json.key, "anna-laptop");
      assert.deepEqual(json.groups, ["finance", "oidc:finance"]);
      assert.equal((await anna("/api/approvals")).status, 200);
      assert.equal((await (await signedIn(desk, "subject of bob"))("/session")).json.key, "bob-laptop");
      const stranger = await signInWith(desk, 'a "stranger"');
      assertRefused(
        stranger,
        /no key is mapped to the subject "a \\"stranger\\"" of http:\/\/127\.0\.0\.1:\d+: an admin/,
      );
    },
    defect: { within: "OidcSignIn.#keyOf", find: "person.subject === subject", put: "true" },
  },
  {
    rule: "a person who was added to the file signs in without a restart of the gate",
    file: { persons: [] },
    run: async (desk, provider) => {
      assertRefused(await signInWith(desk, "subject of anna"), /no key is mapped/);
      oidcFile(desk.folder, provider);
      await signedIn(desk);
    },
    defect: {
      within: "OidcSignIn.#settings",
      find: "await readOidc(this.#parts.file)",
      put: "await (this.once ??= readOidc(this.#parts.file))",
    },
  },
  {
    rule: "a group of the provider counts in a decision, and does not count after a sign-in without it",
    run: async (desk, provider) => {
      const { id } = (await desk.asks(large)).approval;
      assert.equal((await desk.decides("anna", id, "approve")).json.code, "not-an-approver");
      await signedIn(desk);
      assert.equal((await desk.decides("anna", id, "approve")).json.status, "approved");
      provider.groups.set("subject of anna", []);
      await signedIn(desk);
      const again = await desk.asks({ ...large, approval: { id } });
      assert.equal(again.verdict, "ESCALATE");
      const other = (await desk.asks({ ...large, session_id: "s2" })).approval;
      assert.equal((await desk.decides("anna", other.id, "approve")).json.code, "not-an-approver");
    },
    defect: { within: "groupsEvent", find: "stated.length === known.length", put: "known.length > 0 || $found" },
  },
  {
    rule: "a sign-in writes a row only if the groups differ, and the ledger never has the subject",
    run: async (desk, { groups }) => {
      groups.set("subject of anna", ["finance", "Not A Name", "subject of anna"]);
      await signedIn(desk);
      const rows = await desk.rows();
      await signedIn(desk);
      await visitProvider(desk, "subject of anna");
      assert.equal(await desk.rows(), rows);
      await desk.stop();
      const bytes = readFileSync(join(desk.folder, "data", "ledger.db"));
      assert.ok(bytes.includes("oidc:finance"));
      assert.ok(!bytes.includes("subject of"));
    },
    defect: { within: "isGroupName", first: "return true;" },
  },
  {
    rule: "an answer with another state is refused, so a link with somebody else's answer opens nothing",
    run: async (desk) => {
      const { flow } = await visitProvider(desk, "subject of anna");
      const { answer } = await visitProvider(desk, "subject of bob");
      assertRefused(await returnToGate(desk, { flow, answer }), /cannot be trusted \(OAUTH_INVALID_RESPONSE/);
      const stateless = answer.replace(/&?state=[^&]*/, "");
      const fresh = await visitProvider(desk, "subject of anna");
      assertRefused(await returnToGate(desk, { flow: fresh.flow, answer: stateless }), /OAUTH_INVALID_RESPONSE/);
    },
    defect: {
      within: "Provider.account",
      find: "expectedState: state",
      put: "expectedState: this.#client.skipStateCheck",
    },
  },
  {
    rule: "the code of another flow is refused, even with the right state",
    register: { isLax: true },
    run: async (desk) => {
      const { flow, answer } = await visitProvider(desk, "subject of anna");
      const stolen = new URLSearchParams((await visitProvider(desk, "subject of bob")).answer);
      const injected = new URLSearchParams(answer);
      injected.set("code", stolen.get("code") ?? "");
      assertRefused(await returnToGate(desk, { flow, answer: `?${injected}` }), /\(invalid_grant\)/);
    },
    defect: [
      {
        within: "Provider.address",
        find: "this.#client.buildAuthorizationUrl($config, $of)",
        put: "this.#client.buildAuthorizationUrl($config, (({ scope, state, redirect_uri }) => ({ scope, state, redirect_uri }))($of))",
      },
      grantWith("pkceCodeVerifier: undefined, expectedNonce: undefined"),
    ],
  },
  {
    rule: "an ID token with a wrong nonce, audience, issuer, signature or time is refused",
    run: async (desk, provider) => {
      const forgeries: Readonly<Record<string, (claims: Readonly<Record<string, unknown>>) => object>> = {
        nonce: (claims) => ({ ...claims, nonce: "another" }),
        "no nonce": ({ nonce: _nonce, ...claims }) => claims,
        audience: (claims) => ({ ...claims, aud: "another" }),
        issuer: (claims) => ({ ...claims, iss: "https://another.example" }),
        time: (claims) => ({ ...claims, iat: 1, exp: 61 }),
      };
      for (const [name, forge] of Object.entries(forgeries)) {
        provider.forge = (claims) => ({ ...forge(claims) });
        const answer = await signInWith(desk, "subject of anna");
        assert.equal(answer.json.code, "sign-in-refused", `${name}: ${answer.text}`);
        assert.match(answer.json.detail, /cannot be trusted/);
      }
      provider.forge = (claims) => ({ ...claims, sub: "subject of bob" });
      await signedIn(desk); // The forgery itself is not the reason.
      const { signer } = provider;
      provider.signer = otherKey;
      assertRefused(await signInWith(desk, "subject of anna"), /cannot be trusted/);
      provider.signer = signer;
    },
    defect: uncheckedToken,
  },
  {
    rule: "the signature of an ID token is checked, although it comes from the provider itself",
    run: async (desk, provider) => {
      provider.forge = (claims) => claims;
      await signedIn(desk);
      provider.signer = otherKey;
      assertRefused(await signInWith(desk, "subject of anna"), /cannot be trusted/);
    },
    defect: { within: "Provider.discover", find: "client.enableNonRepudiationChecks", put: "() => undefined" },
  },
  {
    rule: "an answer is taken once, even if the provider would take its code again",
    register: { isLax: true },
    run: async (desk) => {
      const returned = await visitProvider(desk, "subject of anna");
      assert.equal((await returnToGate(desk, returned)).status, 200);
      assertRefused(await returnToGate(desk, returned), /was used already/);
    },
    defect: { within: "OidcSignIn.#spend", find: "this.#spent.has(state)", put: "false" },
  },
  {
    rule: "a flow ends after ten minutes",
    run: async (desk) => {
      const returned = await visitProvider(desk, "subject of anna");
      assertRefused(
        await returnToGate(desk, { ...returned, flow: await aged(desk, returned.flow) }),
        /ten minutes ago/,
      );
    },
    defect: { within: "OidcSignIn.finish", find: "this.#now() >= flow.until", put: "false" },
  },
  {
    rule: "a flow that the gate did not seal opens nothing",
    run: async (desk) => {
      const { answer, flow } = await visitProvider(desk, "subject of anna");
      const bare = JSON.stringify(await sealOf(desk).open(flow, "/console"));
      for (const forged of ["", bare, flow.slice(0, -2), flow.split("").toReversed().join("")])
        assertRefused(await returnToGate(desk, { flow: forged, answer }), /began elsewhere/);
    },
    defect: { within: "Seal.open", first: 'if (text.startsWith("{")) return JSON.parse(text);' },
  },
];

function sealOf({ folder }: Desk): Seal {
  const secret = (): Promise<Buffer> => Promise.resolve(readFileSync(join(folder, "data", "console.secret")));
  return new Seal(secret, "svc-gate console oidc 1");
}

/** The same flow, as it is a moment after its end. */
async function aged(desk: Desk, sealed: string): Promise<string> {
  const seal = sealOf(desk);
  const flow = (await seal.open(sealed, "/console")) as object;
  return seal.close({ ...flow, until: Date.now() - 1 }, "/console");
}

suite("sign-in with a provider", { concurrency: 2 }, () => {
  for (const { rule, run, defect, ...options } of rules) {
    test(rule, async (t) => run(...(await start(t, options)), t));
    test(`positive control: a defect is noticed by "${rule}"`, async (t) => {
      const started = await start(t, options, [defect].flat());
      await assert.rejects(async () => run(...started, t));
    });
  }
});
