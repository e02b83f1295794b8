/**
 * Goal: `reload` reports a tenant that was opened again. Method: a fake gate that answers as after such a reload.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { reloadCommand } from "../../../packages/gate/src/cli/reload.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

test("reload does not report a tenant that serves again as unchanged", { tags: ["first-use-20"] }, async (t) => {
  const inForce = { contract: `sha256:${"0".repeat(64)}`, mode: "enforce" };
  const answer = { changed: false, before: inForce, now: inForce, counters: [], receipt: null };
  const server = createServer((_, reply) => {
    reply.setHeader("content-type", "application/json");
    reply.end(JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const folder = mkdtempSync(join(tmpdir(), "reload-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const keyFile = join(folder, "key");
  writeFileSync(keyFile, "a-key-of-the-operator", { mode: 0o600 });
  const target = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, keyFile, dataDir: folder };
  const said = async (tenant?: string): Promise<string> => {
    const options = { ...target, json: false, ...(tenant === undefined ? {} : { tenant }) };
    return (await reloadCommand(options)).text;
  };
  const hidden = { CONTRACT: inForce.contract };
  says("a tenant serves again", await said("blue"), hidden);
  says("positive control: nothing has changed", await said(), hidden);
});
