/**
 * Goal: a person who signs in with a provider of OpenID Connect gets the session of their own key, with the groups that
 * the provider states now, and nobody else gets one. Method: gates that sign people in with `oidc-provider` on this
 * machine. Positive controls: each scenario fails against a gate with a planted defect.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Seal } from "../../packages/console/src/server/seal.ts";
import { large, type Desk } from "../support/approvals.ts";
import { cookieIn, sendAsPage, type ConsoleAnswer } from "../support/console.ts";
import { ask } from "../support/gate.ts";
import type { Mutation } from "../support/mutation/mutate.ts";
import { assertRefused, runOidcRules, signedIn, type OidcRule } from "../support/oidc-desk.ts";
import { eventually } from "../support/patience.ts";
import { clientId, oidcFile, otherKey, returnToGate, signInWith, visitProvider } from "../support/oidc.ts";

/** A gate that reads the ID token and checks nothing. */
const uncheckedToken: Mutation = {
  within: "Provider.account",
  find: "await this.#client.authorizationCodeGrant($$of)",
  put: `await (async () => {
    const answer = await fetch(this.#config.serverMetadata().token_endpoint, {
      method: "POST",
      headers: {
        authorization: "Basic " + btoa(
          [this.#settings.clientId, this.#settings.clientSecret].map(encodeURIComponent).join(":").replaceAll("%20", "+"),
        ),
      },
      body: new URLSearchParams({
        grant_type: "authorization_code", code: url.searchParams.get("code"), redirect_uri: redirect, code_verifier: verifier,
      }),
    });
    const body = await answer.json();
    return { ...body, claims: () => JSON.parse(Buffer.from(body.id_token.split(".")[1], "base64url").toString()) };
  })()`,
};

/** All rows with their evidence. */
async function ledgerText(desk: Desk, rows: number): Promise<string> {
  const texts: string[] = [];
  for (let seq = 1; seq <= rows; seq += 1) {
    const { text, json } = await ask(desk, `/receipts/${seq}`);
    const parts = json.evidence as readonly string[];
    texts.push(text, ...parts.map((part) => Buffer.from(part, "base64url").toString()));
  }
  return texts.join("\n");
}

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
    defect: { within: "OidcSignIn.#personOf", find: "person.subject === subject", put: "true" },
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
      within: "OidcSignIn.#readSettings",
      find: "await readOidc(this.#parts.file, this.#parts.readJson)",
      put: "await (this.once ??= readOidc(this.#parts.file, this.#parts.readJson))",
    },
  },
  {
    rule: "a person who was removed from the file a moment ago is refused",
    run: async (desk, provider) => {
      const returned = await visitProvider(desk, "subject of anna");
      await signedIn(desk, "subject of bob"); // The gate has just read the file.
      oidcFile(desk.folder, provider, { persons: [] });
      assertRefused(await returnToGate(desk, returned), /no key is mapped/);
    },
    defect: { within: "OidcSignIn.#redeem", find: "this.#readSettings()", put: "this.#settings()" },
  },
  {
    rule: "a person whom one provider confirmed is not looked up in a file that names another one meanwhile",
    run: async (desk, provider) => {
      const during = async (change: object): Promise<ConsoleAnswer> => {
        provider.forge = (claims) => {
          oidcFile(desk.folder, provider, change);
          return claims;
        };
        return signInWith(desk, "subject of anna");
      };
      assertRefused(await during({ issuer: "https://another.example" }), /started elsewhere/);
      oidcFile(desk.folder, provider);
      await eventually(
        "the old file again",
        async () => (await sendAsPage(desk, "/oidc", { body: {} })).status === 200,
      );
      assert.equal((await during({})).status, 200);
    },
    defect: { within: "OidcSignIn.#redeem", find: "now.value.by === read.value.by", put: "true" },
  },
  {
    rule: "a flow whose answer was refused is not used up: the person loads the page again",
    run: async (desk) => {
      const { flow, answer } = await visitProvider(desk, "subject of anna");
      const wrong = answer.replace(/code=[^&]*/, "code=wrong");
      assertRefused(await returnToGate(desk, { flow, answer: wrong }), /\(invalid_grant\)/);
      assert.equal((await returnToGate(desk, { flow, answer })).status, 200);
    },
    defect: { within: "OidcSignIn.finish", find: "this.#taken.delete(flow.state)", put: "0" },
  },
  {
    rule: "an ID token of another client, or from the future, is refused, and the person reads why",
    run: async (desk, provider) => {
      const seconds = Math.floor(Date.now() / 1000);
      const forged = async (claims: object): Promise<ConsoleAnswer> => {
        provider.forge = (known) => ({ ...known, ...claims });
        return signInWith(desk, "subject of anna");
      };
      for (const azp of ["another", "", null, ["the-gate"], 7])
        assertRefused(await forged({ azp }), /made the ID token for another client \(azp\)/);
      for (const iat of [seconds + 120, 9_999_999_999, 1e300])
        assertRefused(await forged({ iat }), /from the future \(iat\): compare the provider's clock/);
      for (const claims of [{ azp: clientId }, { azp: clientId, aud: [clientId, "another"] }, { iat: seconds + 20 }])
        assert.equal((await forged(claims)).status, 200, JSON.stringify(claims));
    },
    defect: { within: "faultInToken", find: "azp !== clientId", put: "false" },
  },
  {
    rule: "a clock of the provider that is far ahead is noticed",
    run: async (desk, provider) => {
      provider.forge = (known) => ({ ...known, iat: 9_999_999_999 });
      assertRefused(await signInWith(desk, "subject of anna"), /from the future/);
    },
    defect: { within: "clockAheadMax", value: "Infinity" },
  },
  {
    rule: "groups that are not texts are refused",
    run: async (desk, provider) => {
      for (const groups of [
        [["finance"]],
        [1, null, true],
        ["finance", { name: "legal" }],
        { finance: true },
        7,
        true,
      ]) {
        provider.forge = (known) => ({ ...known, groups });
        assertRefused(await signInWith(desk, "subject of anna"), /"groups" is not a list of names of groups/);
      }
      for (const [groups, shown] of [
        ["finance", ["finance", "oidc:finance"]],
        [[], ["finance"]],
      ]) {
        provider.forge = (known) => ({ ...known, groups });
        assert.deepEqual((await signInWith(desk, "subject of anna")).json.groups, shown);
      }
    },
    defect: { within: "groupsIn", find: 'typeof each !== "string"', put: "false" },
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
      const text = await ledgerText(desk, rows);
      assert.ok(text.includes('"groups":["oidc:finance"]'));
      assert.ok(!text.includes("subject of"));
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
    defect: grantWith("expectedState: this.#client.skipStateCheck"),
  },
  {
    rule: "the code of another flow is refused, even with the right state",
    register: { isLax: true },
    run: async (desk) => {
      const { flow, answer } = await visitProvider(desk, "subject of anna");
      const stolen = new URLSearchParams((await visitProvider(desk, "subject of bob")).answer);
      const injected = new URLSearchParams(answer);
      injected.set("code", stolen.get("code") ?? "");
      assertRefused(await returnToGate(desk, { flow, answer: `?${injected.toString()}` }), /\(invalid_grant\)/);
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
    defect: { within: "OidcSignIn.#take", find: "this.#taken.has(state)", put: "false" },
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
    defect: { within: "OidcSignIn.#take", find: "now >= until", put: "false" },
  },
  {
    rule: "a flow that the gate did not seal opens nothing",
    run: async (desk) => {
      const { answer, flow } = await visitProvider(desk, "subject of anna");
      const bare = JSON.stringify(await sealOf(desk).open(flow, "/console"));
      for (const forged of ["", bare, flow.slice(0, -2), flow.split("").toReversed().join("")])
        assertRefused(await returnToGate(desk, { flow: forged, answer }), /started elsewhere/);
    },
    defect: { within: "Seal.open", first: 'if (text.startsWith("{")) return JSON.parse(text);' },
  },
  {
    rule: "the console of one tenant takes no flow of another",
    register: { tenants: ["acme"] },
    tenants: ["acme"],
    run: async (desk) => {
      const { flow, answer } = await visitProvider(desk, "subject of anna", { tenant: "acme" });
      assertRefused(await returnToGate(desk, { flow, answer }), /started elsewhere/);
      const own = await signInWith(desk, "subject of anna", { tenant: "acme" });
      assertRefused(own, /no key is mapped/);
    },
    defect: [
      {
        within: "OidcSignIn.start",
        find: "this.#parts.seal.close(flow, address.base)",
        put: 'this.#parts.seal.close(flow, "")',
      },
      {
        within: "OidcSignIn.finish",
        find: "seal.open(returned.flow, address.base)",
        put: 'seal.open(returned.flow, "")',
      },
    ],
  },
  {
    rule: "a person who is mapped in a tenant gets a session there, and not at the root",
    register: { tenants: ["acme"] },
    tenants: ["acme"],
    file: { persons: [{ subject: "subject of anna", key: "acme/anna-phone" }] },
    run: async (desk) => {
      const made = { name: "anna-phone", scopes: ["approve"], person: "anna" };
      assert.equal((await desk.operates("/t/acme/admin/keys", made)).status, 201);
      const answer = await signInWith(desk, "subject of anna", { tenant: "acme" });
      assert.equal(answer.json.tenant, "acme", answer.text);
      assert.match(cookieIn(answer) ?? "", /^svc-\d+-acme=/);
      assertRefused(await signInWith(desk, "subject of anna"), /no key is mapped/);
    },
    defect: { within: "OidcSignIn.#personOf", find: "person.tenant === tenant", put: "true" },
  },
  {
    rule: "a key that cannot decide calls gets no session this way, and no code of the terminal helps",
    file: { persons: [{ subject: "subject of anna", key: "anna-reader" }] },
    run: async (desk) => {
      assertRefused(await signInWith(desk, "subject of anna"), /"anna-reader" does not open a session this way/);
      const made = await desk.operates("/admin/keys", { name: "anna-reader", scopes: ["receipts"], person: "anna" });
      assert.equal(made.status, 201);
      assertRefused(await signInWith(desk, "subject of anna"), /"anna-reader" does not open a session this way/);
      const { answer, flow } = await visitProvider(desk, "subject of anna");
      const withCode = await sendAsPage(desk, "/session", { body: { oidc: { answer, flow }, code: "ABCDEFGH" } });
      assertRefused(withCode, /"oidc" must be alone/, "invalid-request");
    },
    defect: [
      { within: "OidcSignIn.#personOf", find: "keys.known.voter(of, this.#now()) === undefined", put: "false" },
      { within: "OidcSignIn.#personOf", find: "keys.known.voter(of, this.#now()) && $digest", put: "$digest" },
    ],
  },
  {
    rule: "a public client signs in without a secret",
    register: { isPublic: true },
    file: { client_secret: undefined },
    run: async (desk) => void (await signedIn(desk)),
    defect: { within: "authenticationOf", find: "client.None()", put: 'client.ClientSecretBasic("x")' },
  },
  {
    rule: "a revoked key gets no session, and a rotation ends the session",
    run: async (desk) => {
      const anna = await signedIn(desk);
      assert.equal((await desk.operates("/admin/keys/anna-laptop/rotate", { overlap: "0s" })).status, 200);
      assert.equal((await anna("/session")).status, 401);
      const again = await signedIn(desk);
      assert.equal((await desk.operates("/admin/keys/anna-laptop/revoke", {})).status, 200);
      assert.equal((await again("/session")).status, 401);
      assertRefused(await signInWith(desk, "subject of anna"), /does not open a session this way/);
    },
    defect: { within: "KnownKeys.#add", find: "for (const digest of $of) this.#digests.delete(digest);", put: ";" },
  },
  {
    rule: "an administrator cannot set a group of the provider",
    run: async (desk) => {
      const { id } = (await desk.asks(large)).approval;
      const groups = ["oidc:finance"];
      const forged = [
        await desk.operates("/admin/keys/anna-laptop/update", { groups }),
        await desk.operates("/admin/keys", { name: "anna-other", scopes: ["approve"], person: "anna", groups }),
      ];
      for (const { status, json } of forged) {
        assert.equal(status, 400);
        assert.match(json.detail, /^the group "oidc:finance" can only come from the provider of the sign-in/);
      }
      assert.equal((await desk.decides("anna", id, "approve")).json.code, "not-an-approver");
    },
    defect: [
      { within: "readGroups", module: "keys/requests", find: "groups.find(isOidcGroup)", put: "undefined" },
      {
        within: "readGroups",
        module: "keys/requests",
        find: "/^[a-z0-9][a-z0-9._-]{0,63}$/.test(group)",
        put: "true",
      },
    ],
  },
  {
    rule: "only the gate's own page starts a sign-in, and the browser gets nothing that it sends to other ports",
    run: async (desk) => {
      for (const site of ["cross-site", "same-site", "none"]) {
        const started = await sendAsPage(desk, "/oidc", { body: {}, headers: { "sec-fetch-site": site } });
        assertRefused(started, /Sec-Fetch-Site/, "wrong-origin");
      }
      const rebound = await sendAsPage(desk, "/oidc", { body: {}, headers: { host: "evil.example" } });
      assertRefused(rebound, /not a name of this gate/, "wrong-host");
      const started = await sendAsPage(desk, "/oidc", { body: {} });
      assert.equal(started.status, 200, started.text);
      assert.equal(started.headers["set-cookie"], undefined);
      const redirect = new URL(started.json.location).searchParams.get("redirect_uri");
      assert.equal(redirect, `${desk.address}/console/oidc/callback`);
    },
    defect: {
      within: "addConsole",
      find: 'add("POST", $path, "sign-in", startOidc)',
      put: 'add("POST", $path, "page", startOidc)',
    },
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

runOidcRules("sign-in with a provider of OpenID Connect", rules);
