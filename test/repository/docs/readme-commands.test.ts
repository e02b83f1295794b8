/**
 * Goal: every command of README.md works as written, in the reader's order. Method: one table has a step for each
 * command; the commands run in a folder that links to this clone, so that `data` is separate. Only the port differs. A
 * command without a step, or a step without a command, is a failure.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { freePort } from "../../support/free-port.ts";
import { root, temporaryFolder } from "../../support/gate.ts";
import {
  commandsOf,
  hasProgram,
  megabytesIn,
  Shell,
  splitScript,
  strangers,
  type Step,
  type Steps,
} from "../../support/page-commands.ts";
import { reachedPackages } from "../../support/reached-packages.ts";

const page = readFileSync(join(root, "README.md"), "utf8");

const runs: Step = (shell, command) => void shell.run(command);
const serves =
  (mode: string): Step =>
  async (shell, command) =>
    assert.match(await shell.serve(command), new RegExp(`mode +${mode}\\b`));

const reloads =
  (mode: string): Step =>
  (shell, command) =>
    assert.match(shell.run(command), new RegExp(`mode +${mode}\\b`));

/** Runs `curl`, if it is installed. @returns the JSON that it prints */
function curled(shell: Shell, command: string): any {
  return hasProgram("curl") ? JSON.parse(shell.run(command)) : undefined;
}

function contractBlocks(...names: readonly string[]): string {
  return names.map((name) => page.split(`<!-- docs: ${name} -->\n\`\`\`yaml\n`)[1]?.split("```")[0]).join("");
}

const steps: Steps = {
  "npm start": serves("observe"),
  "npm test": (shell, command) =>
    assert.match(shell.run(`${command} -- test/unit/wire/wire.test.ts`), /\n\d+ passed, 0 failed/),
  "SVC_MODE=enforce npm start": serves("enforce"),
  [commandsOf(page).find((command) => command.startsWith("curl -s http://127.0.0.1:8787/check")) ?? ""]: (
    shell,
    command,
  ) => {
    const answer = curled(shell, command);
    if (answer !== undefined) assert.deepEqual([answer.verdict, answer.mode], ["BLOCK", "enforce"]);
  },
  "npm run -s svc-gate -- check mail.yaml": (shell, command) => {
    writeFileSync(join(shell.cwd, "mail.yaml"), contractBlocks("contract mail.yaml"));
    assert.match(shell.run(command), /no errors/);
    writeFileSync(join(shell.cwd, "mail.yaml"), contractBlocks("contract mail.yaml", "rule with errors"));
    assert.match(shell.run(command, 2), /\n1 error/);
  },
  "npm run -s svc-gate -- reload --mode observe": reloads("observe"),
  "npm run -s svc-gate -- report": runs,
  "npm run -s svc-gate -- reload": reloads("observe"),
  "npm run -s svc-gate -- reload --mode assist": reloads("assist"),
  "npm run -s svc-gate -- reload --mode enforce": reloads("enforce"),
  "npm run -s svc-gate -- verify": (shell, command) => assert.match(shell.run(command), /^ok: /),
  [`printf '\\0%s' "$leaf" | sha256sum`]: async (shell, command) => {
    if (!hasProgram("sha256sum")) return;
    const authorization = `Bearer ${readFileSync(join(shell.cwd, "data", "first-key"), "utf8").trim()}`;
    const answer = await fetch(shell.here("http://127.0.0.1:8787/receipts"), { headers: { authorization } });
    const { receipts } = (await answer.json()) as { readonly receipts: readonly { readonly [name: string]: string }[] };
    for (const { leaf = "", hash } of receipts) assert.equal(shell.run(command, 0, { leaf }).split(" ")[0], hash);
  },
};

/** Makes a reader's clone: all files of this one except those that a gate writes. */
function newClone(t: TestContext): string {
  const folder = temporaryFolder(t);
  for (const name of readdirSync(root))
    if (!name.startsWith(".") && name !== "data") symlinkSync(join(root, name), join(folder, name));
  return folder;
}

suite("the commands of README.md in a shell", { tags: ["first-use-11", "first-use-23"] }, () => {
  test("the table has a step for each command of README.md", () => {
    assert.deepEqual(strangers(page, steps), []);
    const doctored = page.replace("npm test    #", "npm testing #");
    assert.deepEqual(strangers(doctored, steps), ["npm testing", "npm test"], "positive control");
    const script = "a 'b # c\nd' \\\n  e # f\n# g\nh#i\n";
    assert.deepEqual(splitScript(script), ["a 'b # c\nd' e", "h#i"]);
  });

  test("each command of README.md runs in order, with the key of the first start", { skip: noShell() }, async (t) => {
    const port = String(await freePort());
    const shell = new Shell(t, newClone(t), [["127.0.0.1:8787", `127.0.0.1:${port}`]], { SVC_PORT: port });
    for (const command of commandsOf(page)) await steps[command]?.(shell, command);
    await shell.stop();
  });

  test("README.md gives the size of node_modules to within 20 percent", (t) => {
    if (process.platform !== "linux") return t.skip("the runtime of another platform has another size");
    const [, withRuntime, without] = /(\d+) MB\b.*\bNode 26\b.*?\b(\d+) MB/.exec(page) ?? [];
    const sizeOf = (isCounted: (name: string) => boolean): number =>
      reachedPackages()
        .filter(({ path, name }) => isCounted(name) && existsSync(join(root, path)))
        .reduce((sum, { path }) => sum + megabytesIn(join(root, path)), 0);
    const runtime = sizeOf((name) => name.startsWith("node-"));
    const others = sizeOf((name) => !name.startsWith("node-"));
    assert.ok(Math.abs(others - Number(without)) < 0.2 * others, `${without} MB said, ${Math.round(others)} MB found`);
    assert.ok(others <= 120, "the bar");
    if (runtime === 0) return t.skip("this Node needs no other one");
    const all = runtime + others;
    assert.ok(Math.abs(all - Number(withRuntime)) < 0.2 * all, `${withRuntime} MB said, ${Math.round(all)} MB found`);
    assert.ok(all <= 340, "the bar");
    return undefined;
  });
});

function noShell(): string | false {
  return process.platform === "win32" ? "its commands are for a POSIX shell" : false;
}
