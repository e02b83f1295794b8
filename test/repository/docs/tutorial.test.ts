/**
 * Goal: docs/tutorial.md works as written, and then so do the commands of docs/faq.md in the same folder.
 * Method: a folder links to this clone. The files of the page are written, its commands run in order, and their output is
 * compared, without moments and hashes. UPDATE_GOLDEN=1 writes the output.
 */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { freePort } from "../../support/free-port.ts";
import { control } from "../../support/controls/control.ts";
import { root, temporaryFolder } from "../../support/gate.ts";
import { hasProgram, Shell, splitScript } from "../../support/page-commands.ts";

const pages = ["tutorial.md", "faq.md"].map((name) => join(root, "docs", name));

/** A fenced block with the marker before it, if there is one. */
interface Block {
  readonly kind: string;
  readonly marker: string;
  readonly text: string;
  /** The offset of the text in the page. */
  readonly from: number;
}

function blocksOf(page: string): readonly Block[] {
  const pattern = /(?:<!-- tutorial: (.*?) -->\n)?^```(\w+)\n([\s\S]*?)^```$/gm;
  return Array.from(page.matchAll(pattern), ({ index, 0: whole, 1: marker = "", 2: kind = "", 3: text = "" }) => ({
    kind,
    marker,
    text,
    from: index + whole.length - "```".length - text.length,
  }));
}

/** Output without parts that differ from run to run. */
function masked(text: string): string {
  return text
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, "MOMENT")
    .replaceAll(/svc-gate\/[0-9a-f]{32}(?:\+\S+)?/g, "NAME")
    .replaceAll(/(?<!sha256:)\b[0-9a-f]{64}\b/g, "HASH") // the digest of a contract is the same in each run
    .trimEnd();
}

/** Returns the output of a program, without the lines of npm and of the log. */
function printed(text: string): string {
  return `${text
    .split("\n")
    .filter((line) => !/^(?:>|npm |\{"level")/.test(line))
    .join("\n")
    .trim()}\n`;
}

function newClone(t: TestContext): string {
  const folder = temporaryFolder(t);
  for (const name of readdirSync(root))
    if (!name.startsWith(".") && !["data", "refunds"].includes(name)) symlinkSync(join(root, name), join(folder, name));
  return folder;
}

async function newShell(t: TestContext): Promise<Shell> {
  const port = String(await freePort());
  return new Shell(t, newClone(t), [["127.0.0.1:8787", `127.0.0.1:${port}`]], { SVC_PORT: port });
}

async function runScript(shell: Shell, script: string, status: number): Promise<string> {
  let output = "";
  for (const command of splitScript(script)) {
    output += command.endsWith("npm start") ? await shell.serve(command) : shell.run(command, status);
  }
  return printed(output).replaceAll(shell.here("127.0.0.1:8787"), "127.0.0.1:8787");
}

/** Walks through a page. @returns the page with this walk's output, where it differs */
async function walk(shell: Shell, page: string): Promise<string> {
  const blocks = blocksOf(page);
  let walked = page;
  let output = "";
  for (const [index, block] of blocks.entries()) {
    const { kind, marker, text, from } = block;
    if (marker.startsWith("file ")) {
      const path = join(shell.cwd, marker.slice("file ".length));
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, shell.here(text));
    } else if (kind === "sh" && marker !== "not run") {
      if (marker === "stop the gate") await shell.stop();
      const status = Number(/exit code (\d)$/.exec(blocks[index + 1]?.marker ?? "")?.[1] ?? 0);
      output = await runScript(shell, text, status);
    } else if (marker.startsWith("output") && masked(text) !== masked(output)) {
      const at = from + walked.length - page.length;
      walked = walked.slice(0, at) + output + walked.slice(at + text.length);
    }
  }
  return walked;
}

const skip = hasProgram("sh") && hasProgram("curl") ? false : "the commands need a POSIX shell and curl";

suite("docs/tutorial.md and docs/faq.md", { skip }, () => {
  test("each command of the two pages works and prints the output shown", async (t) => {
    const shell = await newShell(t);
    for (const file of pages) {
      const page = readFileSync(file, "utf8");
      const walked = await walk(shell, page);
      if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(file, walked);
      else assert.equal(walked, page);
    }
    await shell.stop();
  });

  control("positive control: a wrong output in the page is noticed", async (t) => {
    const page = "```sh\nprintf 'a\\n'\n```\n\n<!-- tutorial: output -->\n```text\nb\n```\n";
    assert.equal(await walk(await newShell(t), page), page.replace("\nb\n", "\na\n"));
  });
});
