/**
 * Goal: the gate passes the levels Basic, Batch and Discovery of the AuthZEN certification scenario, with a contract as
 * the fixture. Method: a gate over HTTP gets the requests of scenario.json; the contract is records.yaml. Positive
 * controls: each rule fails on a gate with a planted defect.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runScenarios, type Desk } from "../../support/approvals.ts";
import { ask, type Answer } from "../../support/gate.ts";

interface Case {
  /** The section of the scenario. */
  readonly id: string;
  readonly what?: string;
  readonly path: string;
  readonly request: object;
  readonly status?: number;
  readonly decision?: boolean;
  /** Null leaves the decision to the implementer. */
  readonly decisions?: readonly (boolean | null)[];
}

const read = (name: string): string => readFileSync(join(import.meta.dirname, name), "utf8");
const cases: readonly Case[] = JSON.parse(read("scenario.json")).cases;
const options = { contract: read("records.yaml") };
const of = (level: string): readonly Case[] => cases.filter(({ path }) => path.endsWith(level));
const [first] = cases;

function post({ address }: Desk, path: string, body: string, headers: Record<string, string> = {}): Promise<Answer> {
  return ask({ address }, path, { method: "POST", headers: { "content-type": "application/json", ...headers }, body });
}

async function runCase(desk: Desk, { id, what = "", path, request, status, decision, decisions }: Case): Promise<void> {
  const title = `${id} ${what}`;
  const answer = await post(desk, path, JSON.stringify(request), { "x-request-id": `id of ${title}` });
  assert.equal(answer.status, status ?? 200, `${title}: ${answer.text}`);
  assert.equal(answer.headers.get("x-request-id"), `id of ${title}`.trim(), title);
  if (status !== undefined) return;
  assert.match(answer.headers.get("content-type") ?? "", /^application\/json/);
  if (decision !== undefined) assertDecision(answer.json, decision, title);
  if (decisions === undefined) return;
  assert.equal("decision" in answer.json, false);
  assert.equal(answer.json.evaluations.length, decisions.length, title);
  for (const [index, expected] of decisions.entries()) assertDecision(answer.json.evaluations[index], expected, title);
}

function assertDecision({ decision, context }: any, expected: boolean | null, title: string): void {
  assert.equal(typeof decision, "boolean", title);
  assert.equal(typeof context, "object", title);
  if (expected !== null) assert.equal(decision, expected, `${title}: ${JSON.stringify(context)}`);
}

runScenarios("the AuthZEN certification scenario", [
  {
    rule: "Basic: each single request gets its decision, or 400",
    options,
    run: async (desk) => {
      assert.equal(of("/evaluation").length, 21);
      for (const each of of("/evaluation")) await runCase(desk, each);
    },
    defect: {
      within: "toCheck",
      find: 'entity("subject", "type", "id", "properties")',
      put: 'entity("subject", "type", "id")',
    },
  },
  {
    rule: "Batch: each request for several gets its decisions in order",
    options,
    run: async (desk) => {
      assert.equal(of("/evaluations").length, 10);
      for (const each of of("/evaluations")) await runCase(desk, each);
    },
    defect: { within: "batchOf", find: "[...defaults, ...(item as JsonObject)]", put: "item as JsonObject" },
  },
  {
    rule: "Basic 2.4.3: a body of another type is 400",
    options,
    run: async (desk) => {
      for (const type of ["text/plain", "application/xml", ""]) {
        const body = JSON.stringify(first?.request);
        const { status, json } = await post(desk, "/access/v1/evaluation", body, { "content-type": type });
        assert.deepEqual([status, json.code], [400, "invalid-request"], type);
        assert.match(json.detail, /Content-Type/);
      }
    },
    defect: { within: "inDialect", find: 'dialect === "authzen"', put: "false" },
  },
  {
    rule: "Basic 2.4.4 and 2.4.5: a body that is not JSON is 400, and so is an empty one",
    options,
    run: async (desk) => {
      for (const body of ["{", "", "[]", "null", '"a"']) {
        for (const path of ["/access/v1/evaluation", "/access/v1/evaluations"]) {
          const { status, json } = await post(desk, path, body);
          assert.deepEqual([status, json.code], [400, "invalid-json"], body);
        }
      }
    },
    defect: { within: "readBody", module: "http/authzen", find: "readJson(text)", put: 'readJson(text || "{}")' },
  },
  {
    rule: "Basic 2.5: the answer has the X-Request-ID of the request, also if it is long or has spaces",
    options,
    run: async (desk) => {
      const body = JSON.stringify(first?.request);
      for (const id of ["bfe9eb29-ab87-4ca3-be83-a1d5d8305716", "two words", "x".repeat(1000)]) {
        const { headers } = await post(desk, "/access/v1/evaluation", body, { "x-request-id": id });
        assert.equal(headers.get("x-request-id"), id);
        const refused = await post(desk, "/access/v1/evaluation", body, { "x-request-id": id, authorization: "" });
        assert.deepEqual([refused.status, refused.headers.get("x-request-id")], [401, id]);
      }
      for (const id of [{}, { "x-request-id": "" }, { "x-request-id": "\u00e9" }]) {
        const { status, headers } = await post(desk, "/access/v1/evaluation", body, id);
        assert.equal(status, 200);
        assert.match(headers.get("x-request-id") ?? "", /^[\w-]+$/, "the gate's own id");
      }
    },
    defect: { within: "echoId", find: "/^[\\t\\x20-\\x7e]+$/.test(sent)", put: "false" },
  },
  {
    rule: "Basic 2.6: the same request gets the same decision each time, and each time a receipt",
    options,
    run: async (desk) => {
      const before = await desk.rows();
      for (let n = 0; n < 5; n += 1) await runCase(desk, first ?? assert.fail());
      assert.equal(await desk.rows(), before + 5);
    },
    defect: { within: "decide", module: "http/authzen", find: 'verdict === "ALLOW"', put: 'verdict === "allow"' },
  },
  {
    rule: "Discovery: the document has https addresses below the identifier, for the root and for tenants",
    options: { ...options, env: { SVC_PUBLIC_URL: "https://gate.example/base/" } },
    run: async (desk) => {
      const { status, headers, json } = await ask(desk, "/.well-known/authzen-configuration");
      assert.equal(status, 200);
      assert.match(headers.get("content-type") ?? "", /^application\/json/);
      const point = "https://gate.example/base";
      assert.deepEqual(json, {
        policy_decision_point: point,
        access_evaluation_endpoint: `${point}/access/v1/evaluation`,
        access_evaluations_endpoint: `${point}/access/v1/evaluations`,
      });
      for (const path of Object.values(json as Record<string, string>).slice(1)) {
        const answer = await post(desk, path.slice(point.length), JSON.stringify(first?.request));
        assert.equal(answer.json.decision, true, "each address of the document exists");
      }
    },
    defect: { within: "decisionPoint", find: "publicUrl !== undefined", put: "false" },
  },
]);
