/** The smallest MCP server over HTTP, for the benchmark of the proxy. It prints its address. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const server = createServer((request, response) => {
  let text = "";
  request.on("data", (piece) => (text += String(piece)));
  request.on("end", () => {
    const { id, method, params } = JSON.parse(text === "" ? "{}" : text);
    const result = resultOf(method, params);
    if (id === undefined) return response.writeHead(202).end();
    response.writeHead(200, { "content-type": "application/json" });
    return response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  });
});

function resultOf(method: string, params: any): object {
  if (method === "tools/list") return { tools: [{ name: "pay", inputSchema: { type: "object" } }] };
  if (method === "tools/call") return { content: [{ type: "text", text: `paid ${params.arguments.amount}` }] };
  return { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "bench", version: "1" } };
}

server.listen(0, "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
