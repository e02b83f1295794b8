/**
 * Goal: no file that runs on a user's own Node or Python needs a later one than it promises. Method: the compiler reads the
 * JavaScript with the library of that Node and with the newest one, and must find the same; each file is loaded there; and
 * Python parses its files by the grammar of 3.9. The tests of clients, of the agent's package and of the verifiers run on
 * these versions too. Positive controls: a later function, and a later statement.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import { nodeOf } from "../../clients/conformance/runtimes.ts";
import { control } from "../support/controls/control.ts";
import { root, temporaryFolder } from "../support/gate.ts";

interface Promised {
  readonly node: number;
  /** What the language has on that Node. */
  readonly lib: string;
  readonly files: readonly string[];
}

/** The agent's package is compiled with the library of Node 20 (packages/agent/src/tsconfig.json). */
const promised: readonly Promised[] = [
  { node: 18, lib: "es2022", files: ["clients/javascript/svc-gate.mjs", "verify/svc-verify.mjs"] },
  { node: 20, lib: "es2023", files: globSync("adapters/*.mjs", { cwd: root }) },
];

/** What the compiler finds in files without types, with the language's library of one version. */
function findings(files: readonly string[], lib: string): readonly string[] {
  const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
  const flags = "--ignoreConfig --noEmit --allowJs --checkJs --skipLibCheck --strict false --moduleDetection force";
  const words = [...flags.split(" "), "--module", "nodenext", "--target", "esnext", "--lib", lib, "--types", "node"];
  const { stdout } = spawnSync(process.execPath, [compiler, ...words, ...files], { cwd: root, encoding: "utf8" });
  return stdout.split("\n");
}

/** Lines that only the older library causes. */
function later({ files, lib }: Promised): readonly string[] {
  const newest = new Set(findings(files, "esnext"));
  return findings(files, lib).filter((line) => !newest.has(line));
}

const grammar = `import ast, sys
for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as file:
        ast.parse(file.read(), name, feature_version=(3, 9))`;

function parsed(t: TestContext, files: readonly string[]): string | undefined {
  const { error, stderr } = spawnSync("python3", ["-B", "-c", grammar, ...files], { cwd: root, encoding: "utf8" });
  if (error === undefined) return stderr;
  t.skip("there is no Python on this machine");
  return undefined;
}

suite("promised versions", () => {
  for (const each of promised) {
    test(`the files that promise Node ${each.node} use no later function of the language`, () => {
      assert.ok(each.files.length >= 2, each.files.join());
      assert.deepEqual(later(each), []);
    });

    test(`the files that promise Node ${each.node} can be loaded there`, (t) => {
      const program = nodeOf(each.node);
      if (program === undefined) return t.skip(`npm brings no Node ${each.node} for this platform`);
      const urls = each.files.map((file) => JSON.stringify(pathToFileURL(join(root, file)).href));
      const script = `Promise.all([${urls.join()}].map((url) => import(url))).then((all) => console.log(all.length))`;
      const { stdout, stderr } = spawnSync(program, ["-e", script], { encoding: "utf8" });
      assert.equal(stdout, `${each.files.length}\n`, stderr);
    });
  }

  test("the files that promise Python 3.9 have its grammar", (t) => {
    const files = globSync(["clients/python/svc_gate*.py", "verify/*.py", "adapters/*.py"], { cwd: root });
    assert.ok(files.length >= 12, files.join());
    assert.equal(parsed(t, files) ?? "", "");
  });

  control("positive control: a later function, and a later statement of Python, are noticed", (t) => {
    const folder = temporaryFolder(t);
    const copy = join(folder, "copy.mjs");
    const text = readFileSync(join(root, "adapters/guard.mjs"), "utf8");
    writeFileSync(copy, text);
    assert.deepEqual(later({ node: 20, lib: "es2023", files: [copy] }), []);
    writeFileSync(copy, `${text}Map.groupBy([], String);\n`);
    assert.match(later({ node: 20, lib: "es2023", files: [copy] }).join("\n"), /'groupBy' does not exist/);
    writeFileSync(join(folder, "later.py"), "match 1:\n    case 1: pass\n");
    assert.match(parsed(t, [join(folder, "later.py")]) ?? "SyntaxError", /SyntaxError/);
  });
});
