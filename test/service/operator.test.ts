/**
 * Goal: a command reports a gate that does not answer and a missing key. Method: servers that accept a request and
 * never answer it, or never end the answer, instead of a gate at a URL and of the gate that a data folder names.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { findGate } from "../../packages/gate/src/cli/operator.ts";
import { control } from "../support/controls/control.ts";
import { temporaryFolder } from "../support/gate.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

/** @param named the text that must appear in the sentence, by the word that hides it */
function refusedAs(name: string, named: Readonly<Record<string, string>>): (error: Error) => boolean {
  return ({ message }) => {
    for (const value of Object.values(named)) assert.ok(message.includes(value), message);
    says(name, message, named);
    return true;
  };
}

const shortMinutes = 0.002;
const key = "a-key-of-this-test";

/** @returns the port */
async function listen(t: TestContext, server: Server): Promise<number> {
  const open = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    open.add(socket);
    socket.on("error", () => socket.destroy());
  });
  t.after(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

function keyFileOf(t: TestContext, text = `${key}\n`): string {
  const file = join(temporaryFolder(t), "admin.key");
  writeFileSync(file, text);
  return file;
}

function folderThatLeadsTo(t: TestContext, url: string, certificate: string | null): string {
  const dataDir = temporaryFolder(t);
  writeFileSync(join(dataDir, "operator.json"), JSON.stringify({ url, key, certificate }), { mode: 0o600 });
  return dataDir;
}

suite("a gate that does not answer", () => {
  for (const [title, serverOf] of [
    ["never answers", () => createServer()],
    ["starts an answer and never ends it", () => createHttpServer((_, answer) => void answer.write("{"))],
  ] as const)
    test(`a command stops waiting for a gate that ${title}, and says what to do`, async (t) => {
      const url = `http://127.0.0.1:${await listen(t, serverOf())}`;
      const gate = await findGate({ dataDir: "", url, keyFile: keyFileOf(t) }, shortMinutes);
      await assert.rejects(
        async () => gate?.ask("POST", "/admin/erase", {}),
        refusedAs("silent-after-an-act", { url }),
      );
      await assert.rejects(async () => gate?.ask("GET", "/admin/keys"), refusedAs("silent-after-a-question", { url }));
    });

  for (const scheme of ["http", "https"])
    test(`a silent gate that a data folder names by ${scheme} is an error, not an absent gate`, async (t) => {
      const url = `${scheme}://127.0.0.1:${await listen(t, createServer())}`;
      const dataDir = folderThatLeadsTo(t, url, scheme === "https" ? "AA:BB" : null);
      await assert.rejects(findGate({ dataDir }, shortMinutes), refusedAs("silent-after-a-question", { url }));
    });

  control("positive control: a gate that answers is found, and a gate that has stopped is not", async (t) => {
    const server = createHttpServer((_, answer) => void answer.end('{"keys":[]}'));
    const url = `http://127.0.0.1:${await listen(t, server)}`;
    const dataDir = folderThatLeadsTo(t, url, null);
    const gate = await findGate({ dataDir });
    assert.deepEqual(await gate?.ask("GET", "/admin/keys"), { status: 200, body: { keys: [] }, text: '{"keys":[]}' });
    server.closeAllConnections();
    server.close();
    await once(server, "close");
    assert.equal(await findGate({ dataDir }), undefined);
  });
});

test("a file without a key is an error before anything is sent", async (t) => {
  const url = "http://127.0.0.1:1";
  for (const text of ["# A page\n\nwith lines\n", "two words", "\n", "schlüssel-mit-umlaut"]) {
    const keyFile = keyFileOf(t, text);
    await assert.rejects(findGate({ dataDir: "", url, keyFile }), refusedAs("file-without-a-key", { keyFile }));
  }
  assert.ok(await findGate({ dataDir: "", url, keyFile: keyFileOf(t) }), "positive control: a key alone on its line");
});
