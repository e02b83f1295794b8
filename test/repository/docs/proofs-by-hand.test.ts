/**
 * Goal: what docs/guides/proofs.md says about verifying a signed head by hand works with openssl alone. Method: the page's own
 * commands, run on the head and the key that the page shows, and on heads that were changed.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { control } from "../../support/controls/control.ts";

const page = readFileSync(new URL("../../../docs/guides/proofs.md", import.meta.url), "utf8");
const commands = /<!-- proofs: by hand -->\n```sh\n(.*?)\n```/s.exec(page)?.[1] ?? "";
const head = /127\.0\.0\.1:8787\/checkpoint\n(.*?)\n```/s.exec(page)?.[1] ?? "";
const key = /--key (\S+)/.exec(page)?.[1] ?? "";
const version = spawnSync("openssl", ["version"], { encoding: "utf8" });
const skip = /^OpenSSL [3-9]/.test(version.stdout ?? "") ? false : "openssl 3 is not installed";

function byHand(t: TestContext, text: string, verifierKey: string): string {
  const folder = mkdtempSync(join(tmpdir(), "by-hand-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "head.txt"), `${text}\n`);
  const env = { ...process.env, KEY: verifierKey };
  const { stdout, stderr } = spawnSync("sh", ["-c", commands], { cwd: folder, env, encoding: "utf8" });
  return `${stdout}${stderr}`;
}

test(
  "the commands of docs/guides/proofs.md verify its signed head with openssl",
  { tags: ["first-use-21"], skip },
  (t) => {
    const said = byHand(t, head, key);
    assert.match(said, /^the key's id is correct\n/);
    assert.match(said, /Signature Verified Successfully/);
  },
);

control("positive control: a changed head, name or key is noticed", { tags: ["first-use-21"], skip }, (t) => {
  const changed = head.replace(/\n20\n/, "\n21\n");
  assert.notEqual(changed, head);
  assert.doesNotMatch(byHand(t, changed, key), /Verified Successfully/);
  assert.doesNotMatch(byHand(t, head, key.replace("payments", "payment")), /is correct|Verified Successfully/);
  assert.doesNotMatch(byHand(t, head, key.replace("+b583aaf3+A", "+b583aaf3+B")), /its own/);
});
