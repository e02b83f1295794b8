/**
 * Goal: `git add .` in a clone never adds a secret that the documents told a person to write there. Method: find the
 * files that documents let commands print keys, passwords and signing keys into, and ask git whether it ignores them.
 * Positive control: a document that writes a key into a file of another name.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { control } from "../support/controls/control.ts";
import { root } from "../support/gate.ts";

const writers = [
  /\bkeys (?:create|rotate)\b[^\n|]*> ?([\w./-]+)/g,
  /\bopenssl gen\w+\b[^\n|]* -out ([\w./-]+)/g,
  /_PASSWORD=[^\n]*> ?([\w./-]+)/g,
  /Write a file `([^`]+)` that only the gate's user can read/g,
];

/** The files in a clone into which a text writes secrets. */
function secretFiles(text: string): readonly string[] {
  const found = writers.flatMap((writer) => [...text.matchAll(writer)].map(([, file = ""]) => file));
  return [...new Set(found)].filter((file) => !file.startsWith("/"));
}

function notIgnored(files: readonly string[]): readonly string[] {
  return files.filter((file) => spawnSync("git", ["check-ignore", "--quiet", file], { cwd: root }).status !== 0);
}

suite("secrets in a clone", () => {
  test("git ignores each file into which a document writes a secret", (t) => {
    if (spawnSync("git", ["rev-parse"], { cwd: root }).status !== 0) return t.skip("git has no clone here");
    const documents = globSync(["*.md", "*.yaml", "docs/**/*.md", "deploy/**/*.yaml", "{clients,adapters}/*.md"], {
      cwd: root,
    });
    const files = [...new Set(documents.flatMap((file) => secretFiles(readFileSync(join(root, file), "utf8"))))];
    for (const known of [".env", "agent.key", "signing.key", "oidc.json", "notify.json"])
      assert.ok(files.includes(known), `${known} is not among ${files.join()}`);
    assert.deepEqual(notIgnored(files), []);
  });

  control("positive control: a document that writes a key into another file is noticed", () => {
    const files = secretFiles("    svc-gate keys create agent --scopes check --quiet > agent.txt\n");
    assert.deepEqual(notIgnored(files), ["agent.txt"]);
  });
});
