/**
 * Goal: `svc-gate mcp` lets a call through only after an ALLOW for exactly that call, and passes nothing that nobody
 * allowed. Method: a real gate, a client that writes lines, and a server that writes what it ran to a file. Three
 * ledgers must agree: the server's file, what the client saw, and the gate's receipts.
 */
import { suite, test } from "node:test";
import { attacks } from "../../support/mcp/attack-cases.ts";
import { cases } from "../../support/mcp/cases.ts";

suite("svc-gate mcp over stdio", { concurrency: 2 }, () => {
  for (const [title, run] of Object.entries({ ...cases, ...attacks })) test(title, (t) => run(t));
});
