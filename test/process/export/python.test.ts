/**
 * Goal: the Ed25519 code in verify/svc_verify.py, which uses no library, is also right for signatures that are made to
 * deceive. Method: Wycheproof's cases go through that function, in the installed Python.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { control } from "../../support/controls/control.ts";
import { root } from "../../support/gate-process.ts";
import { readVector } from "../../support/third-party/vectors.ts";

const python = ["python3", "python"].find((name) => spawnSync(name, ["--version"]).status === 0);

interface Case {
  readonly tcId: number;
  readonly key: string;
  readonly msg: string;
  readonly sig: string;
  readonly result: string;
}

interface Group {
  readonly publicKey: { readonly pk: string };
  readonly tests: readonly Omit<Case, "key">[];
}

const groups = JSON.parse(readVector("wycheproof/ed25519_test.json")).testGroups as readonly Group[];
const cases: readonly Case[] = groups.flatMap(({ publicKey, tests }) =>
  tests.map((each) => ({ ...each, key: publicKey.pk })),
);

const program = `import json, sys, svc_verify
b = bytes.fromhex
print(json.dumps([svc_verify.is_signed(b(c["key"]), b(c["msg"]), b(c["sig"])) for c in json.load(sys.stdin)]))`;

/** Returns the result of svc_verify.py for each case; undefined, with the test skipped, if Python is not installed. */
function judged(t: TestContext, given: readonly Case[]): readonly boolean[] | undefined {
  if (python === undefined) {
    t.skip("there is no Python on this machine");
    return undefined;
  }
  const { stdout, stderr } = spawnSync(python, ["-B", "-c", program], {
    input: JSON.stringify(given),
    env: { PATH: process.env["PATH"], PYTHONPATH: join(root, "verify") },
    encoding: "utf8",
  });
  assert.equal(stderr, "");
  return JSON.parse(stdout) as readonly boolean[];
}

suite("Wycheproof's Ed25519 in svc_verify.py", () => {
  test("svc_verify.py judges all 151 of Wycheproof's signatures correctly", (t) => {
    const found = judged(t, cases);
    if (found === undefined) return;
    const wrong = cases.filter(({ result }, at) => found[at] !== (result === "valid"));
    assert.deepEqual([found.length, wrong.map(({ tcId }) => tcId)], [151, []]);
  });

  control("positive control: a changed bit in each valid signature is noticed", (t) => {
    const good = cases.filter(({ result }) => result === "valid");
    const changed = good.map((each) => {
      const sig = Buffer.from(each.sig, "hex");
      sig.writeUInt8(sig.readUInt8(each.tcId % 64) ^ 1, each.tcId % 64);
      return { ...each, sig: sig.toString("hex") };
    });
    const found = judged(t, changed);
    if (found === undefined) return;
    assert.deepEqual([found.length, new Set(found)], [88, new Set([false])]);
  });
});
