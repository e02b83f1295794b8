/**
 * Goal: a person answers their own agent in a second terminal, with one key for each call: it shows the whole card, takes no key that
 * was pressed before the card, and the call runs as soon as it is asked again. Method: the command runs with a terminal that the test
 * types into. Positive control: a command that takes keys at once.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough, Writable } from "node:stream";
import { suite, test, type TestContext } from "node:test";
import { main } from "../../../packages/svc-gate/src/main.ts";
import { startDesk, type Desk } from "../../support/approvals.ts";
import { formCommands } from "../../support/form-commands.ts";
import { patienceMs } from "../../support/patience.ts";

const contract = formCommands.replace("approval: { grants", "approval: { self: true, grants");

interface Terminal {
  /** Waits for a text, from where the last one was found. */
  readonly shows: (pattern: RegExp) => Promise<string>;
  readonly types: (keys: string) => void;
  readonly ended: Promise<number>;
}

function watch(t: TestContext, desk: Desk, person: string | undefined): Terminal {
  const file = join(desk.folder, `${person}.key`);
  if (person !== undefined) writeFileSync(file, `${desk.keys[person]}\n`, { mode: 0o600 });
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => undefined });
  let shown = "";
  let from = 0;
  const screen = new Writable({
    write: (piece, _encoding, done) => {
      shown += String(piece);
      done();
    },
  });
  // A test that fails ends its terminals too.
  t.after(() => stdin.write("\u0003"));
  const noSignal = (): void => undefined;
  const named = person === undefined ? [] : ["--key-file", file];
  const args = ["approvals", "watch", "--url", desk.address, ...named];
  const ended = main(args, { stdin, stdout: screen, stderr: screen, env: {}, on: noSignal, once: noSignal });
  return {
    ended,
    types: (keys) => void stdin.write(keys),
    shows: async (pattern) => {
      const end = Date.now() + patienceMs;
      for (;;) {
        const [found] = pattern.exec(shown.slice(from)) ?? [];
        if (found !== undefined) {
          from = shown.indexOf(found, from) + found.length;
          return found;
        }
        if (Date.now() > end) throw new Error(`${pattern} was not shown after:\n${shown.slice(from)}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
  };
}

async function agentOf(
  t: TestContext,
): Promise<{ readonly desk: Desk; readonly asks: (command: string) => Promise<any> }> {
  const desk = await startDesk(t, { contract });
  const made = await desk.operates("/admin/keys", { name: "anna-agent", scopes: ["check"], person: "anna" });
  const asks = (text: string): Promise<any> =>
    desk.asks(
      { tool_name: "bash", tool_input: { command: text }, platform_state: { cwd: "/srv/app" }, session_id: "s1" },
      made.json.key,
    );
  return { desk, asks };
}

/** Long enough for a key to count. */
const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 600));

suite("svc-gate approvals watch", { concurrency: true }, () => {
  test("yes, no with words, later, and a grant, each with one key", async (t) => {
    const { desk, asks } = await agentOf(t);
    const terminal = watch(t, desk, "anna");
    await terminal.shows(/nothing waits for you/);
    const { approval } = await asks("restart web");
    await terminal.shows(/"restart web"[^]*\[y\] let it run once/);
    await settle();
    terminal.types("y");
    await terminal.shows(new RegExp(`${approval.id} is approved`));
    assert.equal((await asks("restart web")).approval.status, "approved");
    await asks("unlisted x");
    await terminal.shows(/"unlisted x"[^]*\[n\] refuse it/);
    await settle();
    terminal.types("n");
    await terminal.shows(/why\?/);
    terminal.types("use make instead\r");
    await terminal.shows(/is denied/);
    assert.match((await asks("unlisted x")).reason, /use make instead/);
    await asks("publish -m x a.ts");
    await terminal.shows(/publish -m x a.ts[^]*\[g\] also later calls like it/);
    await settle();
    terminal.types("g");
    await terminal.shows(/\[2\] publish -m TEXT a.ts\n {2}\[3\] publish -m TEXT FILE\n {2}\[s\] back/);
    await settle();
    terminal.types("3");
    await terminal.shows(/is approved/);
    assert.equal((await asks("publish -m y b.ts")).verdict, "ALLOW");
    await asks("restart api");
    await terminal.shows(/"restart api"[^]*\[q\] end/);
    await settle();
    terminal.types("s");
    await terminal.shows(/left for later[^]*nothing waits for you/);
    terminal.types("q");
    await terminal.shows(/what still waits goes on waiting/);
    assert.equal(await terminal.ended, 0);
  });

  test("a key that was pressed before the card does not count", async (t) => {
    const { desk, asks } = await agentOf(t);
    const terminal = watch(t, desk, "anna");
    await terminal.shows(/nothing waits/);
    terminal.types("y");
    await asks("restart web");
    await terminal.shows(/\[y\] let it run once/);
    terminal.types("y");
    await settle();
    assert.equal((await asks("restart web")).approval.status, "pending");
    terminal.types("\u0003");
    assert.equal(await terminal.ended, 0);
  });

  test("the person whose agent asks may only deny a call that destroys, and another person may approve it", async (t) => {
    const { desk, asks } = await agentOf(t);
    const call = await asks("rm a.txt");
    const [anna, bob] = [watch(t, desk, "anna"), watch(t, desk, "bob")];
    await anna.shows(
      /"rm a.txt"[^]*anna asked for this call, so another person must approve it\n.\[n\] refuse it {3}\[s\]/,
    );
    await bob.shows(/"rm a.txt"[^]*\[y\] let it run once/);
    await settle();
    anna.types("y");
    await settle();
    assert.equal((await asks("rm a.txt")).approval.status, "pending");
    bob.types("y");
    for (const terminal of [anna, bob]) await terminal.shows(new RegExp(`${call.approval.id} is approved`));
    for (const terminal of [anna, bob]) terminal.types("\u0003");
    await Promise.all([anna.ended, bob.ended]);
  });

  test("without a file it asks for the key, and does not show it", async (t) => {
    const { desk, asks } = await agentOf(t);
    await asks("restart web");
    const terminal = watch(t, desk, undefined);
    await terminal.shows(/your key, which is not shown > /);
    terminal.types(`${desk.keys["anna"]}x`);
    terminal.types("\u007f");
    terminal.types("\r");
    const shown = await terminal.shows(/^[^]*\[y\] let it run once/);
    assert.ok(!shown.includes(String(desk.keys["anna"])));
    terminal.types("\u0003");
    assert.equal(await terminal.ended, 0);
  });

  test("Ctrl-C at the question for the key is an error, and so is an answer with two words", async (t) => {
    const { desk } = await agentOf(t);
    for (const typed of ["\u0003", "two words\r"]) {
      const terminal = watch(t, desk, undefined);
      await terminal.shows(/not shown/);
      terminal.types(typed);
      assert.equal(await terminal.ended, 2);
      await terminal.shows(/does not contain an API key/);
    }
  });
});
