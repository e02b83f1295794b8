/**
 * Goal: over HTTP the proxy serves only who has its key and comes from this machine, and the server gets exactly what the
 * gate judged. Method: requests by hand, a server without an SDK, and a real gate. Positive controls: each case fails on
 * a proxy with a planted defect.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { control } from "../../support/controls/control.ts";
import { httpCases } from "../../support/mcp/http-cases.ts";
import type { Mutant } from "../../support/mcp/mutants.ts";
import { controlPatienceMs } from "../../support/patience.ts";

const mutants: readonly Mutant[] = [
  {
    fault: "wants no key",
    mutations: [{ within: "isSame", module: "mcp/front", first: "return true;" }],
    noticed: ["H1:"],
  },
  {
    fault: "takes any Host",
    mutations: [{ within: "refuseStrangers", find: "!hosts.includes(host)", put: "false" }],
    noticed: ["H2:"],
  },
  {
    fault: "takes any Origin",
    mutations: [{ within: "refuseStrangers", find: "origin !== undefined", put: "false" }],
    noticed: ["H3:"],
  },
  {
    fault: "reads any length",
    mutations: [{ within: "bodyBytesMax", module: "mcp/front", value: "1e9" }],
    noticed: ["H5:"],
  },
  {
    fault: "does not compare headers",
    mutations: [{ within: "refuseOtherHeaders", first: "return;" }],
    noticed: ["H7:", "H8:", "H9:", "H18:"],
  },
  {
    fault: "forwards the bytes that it did not judge",
    mutations: [
      {
        within: "ClientRequests.#sendIfAllowed",
        find: "messages.requestText({ id, method, params })",
        put: 'messages.requestText({ id, method, params }).replace(":5", ":5.0")',
      },
    ],
    noticed: ["H10:"],
  },
  {
    fault: "passes all headers on",
    mutations: [{ within: "passedHeaders", module: "mcp/http", value: "/^(?!content-length|host)/" }],
    noticed: ["H10:"],
  },
  {
    fault: "sends refused calls on",
    mutations: [
      { within: "ClientRequests.#sendIfAllowed", find: "if (!judgement.isAllowed) return $refuse;", put: "" },
    ],
    noticed: ["H11:"],
  },
  {
    fault: "shows redirects to the client",
    mutations: [{ within: "problemOf", module: "mcp/http", first: "return undefined;" }],
    noticed: ["H12:"],
  },
  {
    fault: "forgets answered requests",
    mutations: [{ within: "ClientRequests.#markAnswered", find: "!this.#context.keepsAnswered", put: "true" }],
    noticed: ["H13:"],
  },
  {
    fault: "has one session",
    mutations: [{ within: "HttpProxy.#newSession", find: "this.#contextOf(randomUUID())", put: "this.#shared" }],
    noticed: ["H14:"],
  },
  {
    fault: "keeps idle connections",
    mutations: [{ within: "idleMs", module: "mcp/upstream", value: "60_000" }],
    noticed: ["H22:"],
  },
  {
    fault: "does not abort",
    mutations: [{ within: "HttpProxy.answer", find: "stop.abort()", put: "undefined" }],
    noticed: ["H15:", "H16:"],
  },
  {
    fault: "takes an answer with another id for the answer",
    mutations: [{ within: "HttpProxy.#pass", find: "if ($isUnanswered) throw $error;", put: "" }],
    noticed: ["H19:"],
  },
  {
    fault: "takes any message for the answer to its own question",
    mutations: [{ within: "HttpProxy.#ask", find: 'each?.kind === "response"', put: "each !== undefined" }],
    noticed: ["H20:"],
  },
  {
    fault: "permits a round for each repetition",
    mutations: [
      {
        within: "ClientRequests.#refusalOfAnswer",
        find: "refusal === undefined && isFirst",
        put: "refusal === undefined",
      },
    ],
    noticed: ["H21:"],
  },
  {
    fault: "waits in silence",
    mutations: [{ within: "Judge.#waitForDecision", find: "tick?.();", put: "" }],
    noticed: ["H17:"],
  },
];

suite("svc-gate mcp over HTTP", { concurrency: 2 }, () => {
  for (const [title, run] of Object.entries(httpCases)) test(title, (t) => run(t));
});

suite("the cases over HTTP on broken proxies", { concurrency: 2 }, () => {
  for (const { fault, mutations, noticed } of mutants) {
    control(`a proxy that ${fault} is noticed`, async (t) => {
      for (const title of noticed) {
        const found = Object.entries(httpCases).filter(([each]) => each.startsWith(title));
        assert.equal(found.length, 1, title);
        for (const [each, run] of found)
          await assert.rejects(
            run(t, { mutations, patienceMs: controlPatienceMs }),
            assert.AssertionError,
            `${each} passed`,
          );
      }
    });
  }
});
