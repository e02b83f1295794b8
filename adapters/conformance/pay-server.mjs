// An MCP server over stdio with one tool, `pay`. Each payment is a line in the witness file (argv[2]), with its time. It has
// no SDK, so that the kit depends on the host's own MCP client alone.
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [, , witness] = process.argv;

const pay = {
  name: "pay",
  description: "Pays an amount.",
  inputSchema: {
    type: "object",
    additionalProperties: false,
    required: ["amount"],
    properties: { amount: { type: "number" } },
  },
};

const methods = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "kit", version: "1.0.0" },
  }),
  ping: () => ({}),
  "tools/list": () => ({ tools: [pay] }),
  "tools/call": ({ name, arguments: input }) => {
    if (name !== "pay") return { content: [{ type: "text", text: `the tool ${name} does not exist` }], isError: true };
    appendFileSync(witness, `pay ${input.amount} at ${Date.now()} with ${JSON.stringify(input)}\n`);
    return { content: [{ type: "text", text: `paid ${input.amount}` }] };
  },
};

function answer(line) {
  const { id, method, params = {} } = JSON.parse(line);
  if (id === undefined) return;
  const known = Object.hasOwn(methods, method) ? methods[method] : undefined;
  const said = known
    ? { result: known(params) }
    : { error: { code: -32601, message: `the method ${method} does not exist` } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...said })}\n`);
}

createInterface({ input: process.stdin }).on("line", answer);
