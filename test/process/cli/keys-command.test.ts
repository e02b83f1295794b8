/**
 * Goal: `svc-gate keys` and `svc-gate reload` reach the gate that serves a folder, or the ledger itself, and report the
 * result. Method: the program runs with a serving gate, a killed gate, no gate, a gate with an untrusted certificate,
 * and a gate at a URL.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { command } from "../../support/command.ts";
import { check, spawnGate, startGate, temporaryFolder, writeContracts, type Running } from "../../support/gate.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

interface Ran {
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

function commands(data: string, env: Readonly<Record<string, string>> = {}): (...args: string[]) => Promise<Ran> {
  return (...args) => command([...args, "--data-dir", data], { env });
}

function checkWith(gate: Pick<Running, "address">, key: string): Promise<{ readonly status: number }> {
  return check(gate, { tool_name: "note.add", tool_input: {} }, { authorization: `Bearer ${key}` });
}

const keyForm = /svcg_[0-9A-Za-z]{49}/;

function keyIn({ code, stdout, stderr }: Ran): string {
  assert.equal(code, 0, stderr);
  return keyForm.exec(stdout)?.[0] ?? "";
}

test("keys create --kind host makes the key of an agent's host, and says if its agent could be the operator", async (t) => {
  const gate = await startGate(t);
  const data = join(gate.folder, "data");
  const run = commands(data);
  const made = await run("keys", "create", "laptop", "--kind", "host", "--tools", "note.*");
  const [sentence, , , warning, advice] = made.stdout.split("\n");
  says("a host's key", String(sentence));
  says("an agent of the same user", String(warning).replaceAll(data, "DATA"));
  says("what to do about it", String(advice));
  assert.equal((await checkWith(gate, keyIn(made))).status, 200);
  assert.match((await run("keys", "list")).stdout, /\nlaptop +active +check +host +- /);
  const both = await run("keys", "create", "other", "--kind", "host", "--scopes", "check");
  assert.equal(both.code, 2);
  says("scopes beside a kind", both.stderr.trim());
});

test("keys create, list, rotate and revoke reach the gate through a file that only its owner reads", async (t) => {
  const gate = await startGate(t);
  const data = join(gate.folder, "data");
  assert.equal(statSync(join(data, "operator.json")).mode & 0o777, 0o600);
  const run = commands(data);
  const made = await run(
    "keys",
    "create",
    "ci",
    "--owner",
    "Pay",
    "--scopes",
    "check,rules",
    "--tools",
    "note.*",
    "--rate",
    "50/s:90",
  );
  const [sentence, line, remark] = made.stdout.split("\n");
  says("key-made", String(sentence));
  assert.match(String(line), /^ {2}key {2}svcg_\w{49}$/);
  says("key-is-shown-once", String(remark));
  const key = keyIn(made);
  assert.equal((await checkWith(gate, key)).status, 200);
  const quiet = await run("keys", "rotate", "ci", "--overlap", "0s", "--quiet");
  assert.match(quiet.stdout, /^svcg_\w{49}\n$/);
  assert.deepEqual([(await checkWith(gate, key)).status, (await checkWith(gate, keyIn(quiet))).status], [401, 200]);
  const listed = await run("keys", "list");
  says("head-of-list", String(listed.stdout.split("\n")[0]).replaceAll(/ +/g, " "));
  assert.match(listed.stdout, /^.+\nci +active +check,rules +- +- +- +note\.\* +50\/s:90 +never +20\S+Z +Pay\n/);
  const rows = JSON.parse((await run("keys", "list", "--json")).stdout).keys;
  assert.deepEqual(rows[0].rate, { per_second: 50, burst: 90 });
  await run("persons", "add", "anna");
  await run("keys", "create", "anna-phone", "--scopes", "approve", "--person", "anna", "--groups", "legal,finance");
  const table = (await run("keys", "list")).stdout.split("\n");
  const [head = "", row = ""] = [table[0], table.find((each) => each.startsWith("anna-phone "))];
  assert.match(row, /^anna-phone +active +approve +- +anna +finance,legal +all tools /);
  // The cells are below their headings.
  for (const [heading, cell] of [
    ["person", "anna "],
    ["groups", "finance,legal"],
    ["tools", "all tools"],
  ] as const)
    assert.equal(row.indexOf(` ${cell}`), head.indexOf(` ${heading}`), heading);
  const revoked = await run("keys", "revoke", "ci");
  says("key-revoked", revoked.stdout);
  assert.equal((await checkWith(gate, keyIn(quiet))).status, 401);
  await gate.stop();
  assert.ok(!existsSync(join(data, "operator.json")), "the door is gone with the gate");
});

test("keys and reload explain each mistake in one sentence with exit code 2", async (t) => {
  const gate = await startGate(t);
  const run = commands(join(gate.folder, "data"));
  const rows: readonly (readonly [readonly string[], string])[] = [
    [["keys", "create", "ci", "--scopes", "chek"], "scope-mistyped"],
    [["keys", "create", "ci", "--rate", "fast"], "no-rate"],
    [["keys", "create", "default"], "key-is-there"],
    [["keys", "revoke", "nobody"], "no-such-key"],
    [["keys", "list", "--tenant", "acme"], "no-tenants"],
    [["reload", "--tenant", "acme"], "no-tenants"],
    [["keys", "list", "--url", "nonsense", "--key-file", "x"], "no-key-file"],
    [["keys", "list", "--url", "http://127.0.0.1:1"], "url-without-key"],
    [["reload", "--mode", "enfroce"], "mode-mistyped"],
  ];
  for (const [args, name] of rows) {
    const { code, stdout, stderr } = await run(...args);
    assert.deepEqual([code, stdout], [2, ""], args.join(" "));
    says(name, stderr);
  }
  assert.equal(gate.ledger.head.seq, 0);
});

test("without a gate, keys commands write to the ledger directly and never create a new ledger", async (t) => {
  const folder = temporaryFolder(t);
  const gate = await startGate(t, { folder });
  assert.equal((await checkWith(gate, "wrong")).status, 401);
  await gate.stop();
  const data = join(folder, "data");
  const run = commands(data);
  const key = keyIn(await run("keys", "create", "ci", "--expires", "90d"));
  const listed = await run("keys", "list");
  assert.match(listed.stdout, /\nci +active /);
  const { code, stdout } = await command(["verify", data]);
  assert.deepEqual([code, stdout.startsWith("ok: 1 row,")], [0, true]);
  const again = await startGate(t, { folder });
  assert.equal((await checkWith(again, key)).status, 200);
  const nowhere = await commands(join(folder, "dta"))("keys", "create", "ci");
  assert.equal(nowhere.code, 2);
  says("no-ledger-there", nowhere.stderr.trimEnd());
  assert.ok(!existsSync(join(folder, "dta")));
});

test("after a gate is killed, keys commands open the ledger and ignore the old address", async (t) => {
  const folder = temporaryFolder(t);
  const data = join(folder, "data");
  const killed = await spawnGate(t, [], { cwd: folder, env: { SVC_DATA_DIR: data, SVC_LOG: "silent" } });
  killed.kill("SIGKILL");
  await killed.exit;
  const run = commands(data);
  assert.ok(existsSync(join(data, "operator.json")), "positive control: it was left behind");
  keyIn(await run("keys", "create", "one"));
  const stranger = createServer((_request, response) => response.writeHead(404).end("{}"));
  stranger.listen(0, "127.0.0.1");
  t.after(() => stranger.close());
  await new Promise((resolve) => stranger.on("listening", resolve));
  const stale = JSON.parse(readFileSync(join(data, "operator.json"), "utf8"));
  const { port } = stranger.address() as AddressInfo;
  writeFileSync(join(data, "operator.json"), JSON.stringify({ ...stale, url: `http://127.0.0.1:${port}` }));
  keyIn(await run("keys", "create", "two"));
  assert.match((await run("keys", "list")).stdout, /\none [\s\S]*\ntwo /);
  const reload = await run("reload");
  assert.equal(reload.code, 2);
  assert.match(reload.stderr, /^svc-gate: no gate serves /);
});

test("over TLS, keys commands accept only the certificate of the folder's gate", async (t) => {
  const folder = temporaryFolder(t);
  const makeCertificate = (name: string): Readonly<Record<"cert" | "key", string>> => {
    const [key, cert] = [join(folder, `${name}.key`), join(folder, `${name}.pem`)];
    const request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=elsewhere";
    const { status } = spawnSync("openssl", [...request.split(" "), "-keyout", key, "-out", cert]);
    if (status !== 0) t.skip("openssl is not installed here");
    return { cert, key };
  };
  const { cert, key } = makeCertificate("gate");
  if (!existsSync(cert)) return;
  const gate = await startGate(t, { folder, flags: { "tls-cert": cert, "tls-key": key } });
  const data = join(folder, "data");
  const run = commands(data);
  keyIn(await run("keys", "create", "ci"));
  const door = JSON.parse(readFileSync(join(data, "operator.json"), "utf8"));
  assert.match(door.certificate, /^[0-9A-F]{2}(:[0-9A-F]{2}){31}$/);
  writeFileSync(
    join(data, "operator.json"),
    JSON.stringify({ ...door, certificate: door.certificate.replace(/^../, "ZZ") }),
  );
  const other = await run("keys", "create", "more");
  assert.equal(other.code, 2, "positive control: another certificate is not believed, and the gate owns the ledger");
  assert.equal(gate.ledger.head.seq, 1);
});

test("--url reaches a remote gate with a key whose checksum is verified before it is sent", async (t) => {
  const gate = await startGate(t);
  const folder = temporaryFolder(t);
  const admin = keyIn(await commands(join(gate.folder, "data"))("keys", "create", "ops", "--scopes", "admin"));
  const file = join(folder, "admin.key");
  const at = (key: string, ...args: readonly string[]): Promise<Ran> => {
    writeFileSync(file, `${key}\n`);
    return command([...args, "--url", gate.address, "--key-file", file]);
  };
  const made = keyIn(await at(admin, "keys", "create", "ci"));
  assert.equal((await checkWith(gate, made)).status, 200);
  const variable = await command(["keys", "list", "--url", gate.address], { env: { SVC_ADMIN_KEY: admin } });
  assert.match(variable.stdout, /\nops +active +admin /);
  const mistyped = await at(admin.slice(0, -1) + (admin.endsWith("a") ? "b" : "a"), "keys", "list");
  assert.equal(mistyped.code, 2);
  says("key-mistyped", mistyped.stderr);
  const unfit = await at(made, "keys", "list");
  assert.equal(unfit.code, 2);
  says("key-without-scope", unfit.stderr);
  const gone = await command(["keys", "list", "--url", "http://127.0.0.1:1", "--key-file", file]);
  assert.equal(gone.code, 2);
  says("no-gate-at-url", gone.stderr);
});

test("reload applies the changed files or mode, or prints their errors and changes nothing", async (t) => {
  const folder = temporaryFolder(t);
  const mandate = writeContracts(folder, {});
  const gate = await startGate(t, { folder, flags: { mode: "observe" } });
  const run = commands(join(folder, "data"));
  const { contract } = gate.gate.policy;
  says("nothing-to-reload", (await run("reload")).stdout, { CONTRACT: contract });
  const mode = await run("reload", "--mode", "enforce");
  says("mode-put-in-force", mode.stdout, { CONTRACT: contract });
  assert.equal(gate.gate.policy.mode, "enforce");
  const file = join(folder, "contracts", "desk.yaml");
  const text = readFileSync(file, "utf8");
  writeFileSync(file, text.replace("limits.visits, verdict", "limits.vists, verdict"));
  const before = gate.gate.policy.contract;
  const refused = await run("reload");
  assert.deepEqual([refused.code, refused.stdout], [2, ""]);
  assert.match(refused.stderr, /error\[unknown-limit\][\s\S]*contracts\/desk\.yaml:\d+[\s\S]*`visits`/);
  assert.equal(gate.gate.policy.contract, before);
  writeFileSync(file, text.replace("visits: 10", "visits: 11"));
  const { now, changed } = JSON.parse((await run("reload", "--json")).stdout);
  assert.deepEqual([changed, now], [true, { contract: `sha256:${gate.gate.policy.contract}`, mode: "enforce" }]);
  assert.notEqual(gate.gate.policy.contract, before);
  assert.equal(gate.ledger.head.seq, 2);
  assert.ok(existsSync(mandate));
});
