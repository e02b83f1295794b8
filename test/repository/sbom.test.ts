/**
 * Goal: the bill of materials names every part of the gate and its license. Method: it is made as `npm run sbom` makes
 * it, and compared with the lock file. Positive control: a bill that lacks a package.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { control } from "../support/controls/control.ts";
import { root } from "../support/gate.ts";
import { reachedPackages } from "../support/reached-packages.ts";

interface Bom {
  readonly bomFormat: string;
  readonly specVersion: string;
  readonly metadata: { readonly component: { readonly name: string; readonly version: string; readonly purl: string } };
  readonly components: readonly {
    readonly name: string;
    readonly version: string;
    readonly purl: string;
    readonly hashes: readonly unknown[];
    readonly licenses?: readonly unknown[];
  }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

const gate: { readonly name: string; readonly version: string } = JSON.parse(
  readFileSync(join(root, "packages", "svc-gate", "package.json"), "utf8"),
);
const wanted = reachedPackages().map(({ name, version }) => `${name}@${version}`);

function run(...command: readonly string[]): Bom {
  const [program = "", ...args] = command;
  return JSON.parse(execFileSync(program, args, { cwd: root, encoding: "utf8", maxBuffer: 2 ** 26, stdio: "pipe" }));
}

const missing = ({ components }: Bom): readonly string[] => {
  const found = new Set(components.map(({ name, version }) => `${name}@${version}`));
  return wanted.filter((each) => !found.has(each));
};

test("the bill of materials lists each package of the lock file except development packages", () => {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  assert.equal(scripts.sbom, "node tools/sbom.ts");
  const bom = run(process.execPath, "tools/sbom.ts");
  assert.deepEqual([bom.bomFormat, bom.specVersion], ["CycloneDX", "1.5"]);
  assert.deepEqual([bom.metadata.component.name, bom.metadata.component.version], [gate.name, gate.version]);
  assert.deepEqual(missing(bom), []);
  assert.equal(bom.components.length, new Set(wanted).size);
  for (const { name: each, purl, hashes, licenses } of bom.components) {
    assert.match(purl, /^pkg:npm\//, each);
    assert.ok(hashes.length > 0 && licenses !== undefined && licenses.length > 0, `${each} has no licence or no hash`);
  }
  const refs = new Set(bom.dependencies.map(({ ref }) => ref));
  for (const { dependsOn } of bom.dependencies) for (const each of dependsOn) assert.ok(refs.has(each), each);
});

control("positive control: a bill of materials without one package is noticed", () => {
  const bom = run(process.execPath, "tools/sbom.ts");
  const [first, ...others] = bom.components;
  assert.deepEqual(missing({ ...bom, components: others }), [`${first?.name}@${first?.version}`]);
});
