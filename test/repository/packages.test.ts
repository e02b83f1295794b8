/**
 * Goal: a reviewer knows what to read, and how much it is. Method: the README of each package names the packages that it
 * imports, its own and those of npm; the sources are compared with it. The lines are counted that a process loads before
 * `decideCall` can answer ALLOW. Controls: a README with one name too few or too many is noticed, and so is an import of
 * the compiler.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { control } from "../support/controls/control.ts";
import { importsOf, loadedWith, packageSources } from "../support/imports.ts";
import { moduleOf, modules } from "../support/modules.ts";
import { root } from "../support/tracked.ts";

const owners = [...new Set(Array.from(modules.keys(), ownerOf))];

/** The package of a module. */
function ownerOf(module: string): string {
  return module.split("/")[0] ?? "";
}

/** The other packages of this repository and those of npm that a package imports, types included. */
function importedBy(owner: string): readonly string[] {
  const found = packageSources
    .filter((path) => path.startsWith(`packages/${owner}/`))
    .flatMap((path) => importsOf(path))
    .map(({ name, to }) => (name.startsWith(".") ? ownerOf(moduleOf(to) ?? "") : npmName(name)));
  return [...new Set(found)].filter((name) => name !== owner && name !== "").toSorted();
}

/** The package of npm; empty for what Node brings, and for a file. */
function npmName(specifier: string): string {
  const [scope = "", name = ""] = specifier.split("/");
  if (scope.startsWith("node:") || scope.endsWith(".ts")) return "";
  return scope.startsWith("@") ? `${scope}/${name}` : scope;
}

/** The names in the paragraph of a README that says what the package may import. */
function namedIn(readme: string): readonly string[] {
  const [, paragraph = ""] = /^\*\*It may import\*\* ([^]*?)\n(?:\n|(?![^]))/m.exec(readme) ?? [];
  const names = Array.from(paragraph.matchAll(/`([^`]+)`/g), ([, name = ""]) => name);
  return names.filter((name) => !name.startsWith("node:")).toSorted();
}

function readmeOf(owner: string): string {
  return readFileSync(join(root, "packages", owner, "README.md"), "utf8");
}

/** The lines of these files, and of all that a process loads with them. */
function linesLoadedWith(...paths: readonly string[]): number {
  const files = new Set(paths.flatMap((path) => [...loadedWith(path)]).filter((path) => path.startsWith("packages/")));
  return [...files].reduce((sum, path) => sum + readFileSync(join(root, path), "utf8").split("\n").length - 1, 0);
}

const decides = "packages/gate/src/server/core/decide-batch.ts";
/** A gate without HTTP, and the threads of its engine. */
const signing = [
  "packages/gate/src/server/service/gate.ts",
  "packages/gate/src/ledger/mod.ts",
  "packages/readers/src/compile.ts",
  "packages/gate/src/ledger/store/sqlite/writer.ts",
  "packages/gate/src/ledger/store/sqlite/reader.ts",
];
const judges = "packages/gate/src/server/approvals/batch-approvals.ts";

suite("what a reviewer of a package reads", () => {
  for (const owner of owners) {
    test(`the README of ${owner} names its readers, its promises and its imports, on one page`, () => {
      const readme = readmeOf(owner);
      for (const words of ["**Who reads it.**", "**It promises**", "**It does not**", "**It may import**"])
        assert.ok(readme.includes(words), words);
      assert.ok(readme.split("\n").length <= 60);
      assert.deepEqual(namedIn(readme), importedBy(owner));
    });
  }

  control("positive control: a README that names one package too few or too many is noticed", () => {
    const readme = readmeOf("core");
    assert.notDeepEqual(namedIn(readme.replace("`re2js` and ", "")), importedBy("core"));
    assert.notDeepEqual(namedIn(readme.replace("`re2js`", "`re2js`, `pg`")), importedBy("core"));
  });

  test("only the record uses Node in core, and only its hashes", () => {
    const used = packageSources
      .filter((path) => path.startsWith("packages/core/"))
      .flatMap((path) => importsOf(path).map(({ to }) => ({ to, module: moduleOf(path) })))
      .filter(({ to }) => to.startsWith("node:"))
      .map(({ to, module }) => `${module} ${to}`);
    assert.deepEqual([...new Set(used)], ["core/record node:crypto"]);
  });

  test("at most 6,000 lines are loaded before decideCall can answer ALLOW, and none of a reader or a store", (t) => {
    const loaded = [...loadedWith(decides)];
    const lines = linesLoadedWith(decides);
    t.diagnostic(`${lines} lines; ${linesLoadedWith(decides, judges)} with the judge of what people decided`);
    assert.ok(lines > 2000 && lines <= 6000, `${lines} lines`);
    assert.ok(linesLoadedWith(decides, judges) <= 8300);
    assert.deepEqual(
      loaded.filter((path) => /^packages\/readers\/|\/ledger\/|\/store\//.test(path)),
      [],
    );
  });

  test("a gate over SQLite that decides and signs loads at most 31,170 lines", (t) => {
    const lines = linesLoadedWith(...signing);
    t.diagnostic(`${lines} lines`);
    assert.ok(lines > 20_000 && lines <= 31_170, `${lines} lines`);
    assert.ok(linesLoadedWith(...signing, "packages/gate/src/server/anchoring/anchors.ts") > lines + 1000);
  });

  control("positive control: an import of the compiler, or of a store, is too much", () => {
    const compiler = "packages/core/src/contract/mod.ts";
    const store = "packages/gate/src/ledger/mod.ts";
    for (const path of [compiler, store]) assert.ok(linesLoadedWith(decides, path) > 6000, path);
    assert.ok([...loadedWith(store)].some((path) => path.includes("/store/")));
  });
});
