/** A gate whose people sign in with a provider, and the rules that it keeps. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { control } from "./controls/control.ts";
import { payments, startDesk, type Desk } from "./approvals.ts";
import { cookieIn, pageOf, type ConsoleAnswer, type ConsolePage } from "./console.ts";
import { temporaryFolder } from "./gate.ts";
import type { Mutation } from "./mutation/mutate.ts";
import { oidcFile, signInWith, startProvider, type RegisterOptions, type TestProvider } from "./oidc.ts";

/** A rule, and a defect that it must notice. */
export interface OidcRule {
  readonly rule: string;
  readonly run: (desk: Desk, provider: TestProvider, t: TestContext) => Promise<void>;
  /** Several where two checks back each other. */
  readonly defect: Mutation | readonly Mutation[];
  readonly register?: RegisterOptions;
  readonly tenants?: readonly string[];
  /** Changes of the file of SVC_OIDC. */
  readonly file?: object;
  readonly env?: Readonly<Record<string, string>>;
}

const contract = payments.replaceAll("by: [finance]", 'by: ["oidc:finance"]');

/** Starts a provider, and a gate whose people sign in with it. */
export async function startWithProvider(
  t: TestContext,
  { register, file, env, tenants }: Partial<OidcRule>,
  defects: readonly Mutation[] = [],
): Promise<readonly [Desk, TestProvider]> {
  const provider = await startProvider(t);
  const folder = temporaryFolder(t);
  const settings = {
    SVC_OIDC: oidcFile(folder, provider, file),
    ...(tenants !== undefined && { SVC_TENANTS: tenantsFile(folder, tenants) }),
    ...env,
  };
  const desk = await startDesk(t, { folder, contract, defects, env: settings });
  provider.register(desk, register);
  provider.groups.set("subject of anna", ["finance"]);
  return [desk, provider];
}

function tenantsFile(folder: string, tenants: readonly string[]): string {
  const file = join(folder, "tenants.yaml");
  const entries = tenants.map((id) => `  ${id}: { mandate: contracts/pay.yaml, mode: enforce }\n`);
  writeFileSync(file, `tenants:\n${entries.join("")}`);
  return file;
}

/** Signs a subject in, and returns the page. */
export async function signedIn(desk: Desk, subject = "subject of anna"): Promise<ConsolePage> {
  const answer = await signInWith(desk, subject);
  assert.equal(answer.status, 200, answer.text);
  const cookie = cookieIn(answer) ?? assert.fail("the sign-in set no cookie");
  return pageOf(desk, { cookie, secret: answer.json.session, signedIn: answer });
}

/** Asserts that the gate opened no session, and says why. */
export function assertRefused(answer: ConsoleAnswer, detail: RegExp, code = "sign-in-refused"): void {
  assert.equal(answer.json.code, code, answer.text);
  assert.match(answer.json.detail, detail);
  assert.equal(cookieIn(answer), undefined);
}

/** Runs each rule against a gate, and as a positive control against a gate with its defect. */
export function runOidcRules(name: string, rules: readonly OidcRule[]): void {
  suite(name, { concurrency: 2 }, () => {
    for (const { rule, run, defect, ...options } of rules) {
      test(rule, async (t) => run(...(await startWithProvider(t, options)), t));
      control(`positive control: a defect is noticed by "${rule}"`, async (t) => {
        const started = await startWithProvider(t, options, [defect].flat());
        await assert.rejects(async () => run(...started, t));
      });
    }
  });
}
