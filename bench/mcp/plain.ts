/**
 * A proxy that reads and writes each message and does nothing else: `svc-gate mcp` is compared with it. argv: `stdio` and
 * a command, or `http` and an address.
 */
import { spawn } from "node:child_process";
import { Agent, createServer, request as send, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";

const [transport, ...words] = process.argv.slice(2);
const again = (text: string): string => JSON.stringify(JSON.parse(text));

if (transport === "stdio") {
  const [program = "", ...rest] = words;
  const child = spawn(program, rest, { stdio: ["pipe", "pipe", "inherit"] });
  createInterface({ input: process.stdin })
    .on("line", (line) => child.stdin.write(`${again(line)}\n`))
    .on("close", () => child.stdin.end());
  createInterface({ input: child.stdout }).on("line", (line) => process.stdout.write(`${again(line)}\n`));
} else {
  const [address = ""] = words;
  const agent = new Agent({ keepAlive: true });
  const server = createServer((request, response) => {
    void textOf(request).then((text) => {
      const body = again(text);
      const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
      const forwarded = send(address, { method: "POST", agent, headers }, (answer) => {
        void textOf(answer).then((got) => {
          response.writeHead(answer.statusCode ?? 502, { "content-type": "application/json" });
          response.end(got === "" ? "" : again(got));
        });
      });
      forwarded.end(body);
    });
  });
  server.listen(0, "127.0.0.1", () => {
    console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
  });
}

async function textOf(message: IncomingMessage): Promise<string> {
  let text = "";
  for await (const piece of message) text += String(piece);
  return text;
}
