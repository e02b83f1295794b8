import { createWriteStream, readFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import {
  policySetTextToParts,
  policyToJson,
  preparsePolicySet,
  statefulIsAuthorized,
  type AuthorizationAnswer,
  type CedarValueJson,
} from "@cedar-policy/cedar-wasm/nodejs";
import type { Verdict } from "../../packages/core/src/wire/mod.ts";
import type { Call } from "./calls.ts";

// Cedar behind node:http: policies are parsed once, and each answer writes one line of decision log. argv: policies,
// port, log.

interface Judged {
  readonly verdict: Verdict;
  readonly reasons: readonly string[];
}

const [policyFile = "", port = "0", logFile = ""] = process.argv.slice(2);
const log = createWriteStream(logFile, { flags: "a" });
prepare(readFileSync(policyFile, "utf8"));

createServer((request, response) => {
  void read(request).then((text) => {
    const call = JSON.parse(text) as Call;
    const judged = judge(call);
    log.write(`${JSON.stringify({ at: new Date().toISOString(), ...call, ...judged })}\n`);
    const answer = JSON.stringify(judged);
    response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(answer) });
    response.end(answer);
  });
}).listen(Number(port), "127.0.0.1");

function judge(call: Call): Judged {
  return judgementOf(
    statefulIsAuthorized({
      principal: { type: "Session", id: call.session_id },
      action: { type: "Action", id: call.tool_name },
      resource: { type: "Wallet", id: "wallet" },
      context: contextOf(call),
      preparsedPolicySetId: "policies",
      entities: [],
    }),
  );
}

/** Cedar skips a policy with an error, so an error is a BLOCK here. */
function judgementOf(answer: AuthorizationAnswer): Judged {
  if (answer.type === "failure") return { verdict: "BLOCK", reasons: answer.errors.map(({ message }) => message) };
  const { decision, diagnostics } = answer.response;
  if (diagnostics.errors.length > 0)
    return { verdict: "BLOCK", reasons: diagnostics.errors.map(({ policyId }) => policyId) };
  if (decision === "allow") return { verdict: "ALLOW", reasons: diagnostics.reason };
  const asks = diagnostics.reason.length > 0 && diagnostics.reason.every((id) => id.startsWith("escalate"));
  return { verdict: asks ? "ESCALATE" : "BLOCK", reasons: diagnostics.reason };
}

/** Cedar knows only whole numbers, so amounts of dollars become cents. */
function contextOf({ tool_input: input, platform_state: platform }: Call): Record<string, CedarValueJson> {
  const given: Record<string, CedarValueJson> = inCents(input, { amount: "amount_cents" });
  if (platform === undefined) return { input: given };
  return {
    input: given,
    platform: inCents(platform, {
      monthly_spend_usd: "monthly_spend_cents",
      historical_price_usd: "historical_price_cents",
    }),
  };
}

function inCents(
  values: Readonly<Record<string, unknown>>,
  renamed: Readonly<Record<string, string>>,
): Record<string, CedarValueJson> {
  const found: Record<string, CedarValueJson> = {};
  for (const [name, value] of Object.entries(values)) {
    const cents = renamed[name];
    if (cents === undefined) found[name] = value as CedarValueJson;
    else found[cents] = Math.round(Number(value) * 100);
  }
  return found;
}

/** Parses the policies under their `@id`, so that a decision's reasons can be read. */
function prepare(text: string): void {
  const parts = policySetTextToParts(text);
  if (parts.type === "failure") throw new Error(parts.errors.map(({ message }) => message).join("\n"));
  const named = Object.fromEntries(
    parts.policies.map((policy, at) => {
      const json = policyToJson(policy);
      return [(json.type === "success" ? json.json.annotations?.["id"] : undefined) ?? `policy${at}`, policy];
    }),
  );
  const parsed = preparsePolicySet("policies", { staticPolicies: named });
  if (parsed.type === "failure") throw new Error(parsed.errors.map(({ message }) => message).join("\n"));
}

function read(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.once("end", () => resolve(Buffer.concat(chunks).toString()));
    request.once("error", reject);
  });
}
