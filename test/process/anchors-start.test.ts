/**
 * Goal: a start is refused if sinks or witnesses know more than the ledger. Sinks get each head, and after an outage
 * the newest one. Method: histories of one key are truncated or forked, and each way of knowing more is tried. The
 * control asks no sink or witness, and would serve. UPDATE_GOLDEN=1 rewrites the sentences.
 */
import assert from "node:assert/strict";
import { appendFileSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { parsePolicy } from "../../packages/gate/src/server/anchoring/policy.ts";
import { parseSinks } from "../../packages/gate/src/server/anchoring/sinks.ts";
import { LedgerRefused } from "../../packages/gate/src/ledger/errors.ts";
import { readCollected } from "../../packages/gate/src/ledger/mod.ts";
import { makeSigningKey } from "../../packages/gate/src/ledger/signing/signing-key.ts";
import {
  anchorsOf,
  FakeLog,
  grow,
  policyText,
  TestWitness,
  until,
  vouchedBy,
  witnessOf,
  type Given,
} from "../support/anchor-kit.ts";
import { temporaryFolder } from "../support/ledger-fixture.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

/** Compares the message of an error with the sentence of this name. */
const saying =
  (name: string) =>
  (error: Error): true => {
    says(name, error.message);
    return true;
  };

const origin = "example.org/one";
const key = makeSigningKey();

/** Returns the original history, with 60 rows. */
function whole(): FakeLog {
  return new FakeLog(origin, key).grow(60);
}

interface Observer {
  readonly title: string;
  /** Shows a history to a sink or witness, and returns the settings that name it. */
  readonly observe: (t: TestContext, log: FakeLog, folder: string) => Promise<Partial<Given>>;
  /** Whether the head is under a signature. If so, the operator cannot override the refusal. */
  readonly isProven: boolean;
}

async function witnessWith(t: TestContext, log: FakeLog): Promise<TestWitness> {
  const witness = await witnessOf(t, "a", log);
  witness.answer("/add-checkpoint", `old 0\n\n${log.head()}`);
  return witness;
}

async function sinkWith(t: TestContext, log: FakeLog, sinks: string): Promise<Partial<Given>> {
  const { anchors } = anchorsOf(t, { log, sinks, folder: temporaryFolder(t) });
  await anchors.start(true);
  await anchors.close();
  return { sinks };
}

/** Returns the heads of these sizes, and the head of the whole log. */
function notesOf(log: FakeLog, sizes: readonly number[]): readonly string[] {
  return [...sizes.map((size) => new FakeLog(origin, key).grow(size).head()), log.head()];
}

const observers: readonly Observer[] = [
  {
    title: "a witness that shows its checkpoint",
    observe: async (t, log) => ({ witnesses: [await witnessWith(t, log)] }),
    isProven: true,
  },
  {
    title: "a witness that states only a size",
    observe: async (t, log) => {
      const witness = await witnessWith(t, log);
      witness.isOpen = false;
      return { witnesses: [witness] };
    },
    isProven: false,
  },
  {
    title: "a file sink",
    observe: (t, log, folder) => sinkWith(t, log, `file:${join(folder, "anchors", "gate")}`),
    isProven: true,
  },
  {
    title: "a file sink whose last checkpoint is torn",
    observe: async (t, log, folder) => {
      const file = join(folder, "gate");
      const given = await sinkWith(t, log, `file:${file}`);
      appendFileSync(file, `${origin}\n61\nAAAA`);
      return given;
    },
    isProven: true,
  },
  {
    title: "a file sink with a checkpoint of another key",
    observe: async (_t, log, folder) => {
      const file = join(folder, "gate");
      writeFileSync(file, new FakeLog(origin).grow(log.size, log.side).head());
      return { sinks: `file:${file}` };
    },
    isProven: false,
  },
  {
    title: "a file of checkpoints from oldest to newest",
    observe: (_t, log) => Promise.resolve({ collected: { file: "seen", notes: notesOf(log, [20, 40, 45]) } }),
    isProven: true,
  },
  {
    title: "a file of checkpoints from newest to oldest",
    observe: (_t, log) =>
      Promise.resolve({ collected: { file: "seen", notes: notesOf(log, [20, 40, 45]).toReversed() } }),
    isProven: true,
  },
  {
    title: "a file of checkpoints under another key",
    observe: (_t, log) =>
      Promise.resolve({ collected: { file: "seen", notes: [new FakeLog(origin).grow(log.size).head()] } }),
    isProven: false,
  },
  {
    title: "the gate's file checkpoint.cosigned",
    observe: async (t, log, folder) => {
      const witness = await witnessOf(t, "a", log);
      const { anchors } = anchorsOf(t, { log, witnesses: [witness], folder });
      await anchors.start(true);
      await anchors.close();
      witness.instead = () => ({ status: 503 });
      return { witnesses: [witness] };
    },
    isProven: true,
  },
];

/** Starts with a history. @returns the refusal, or undefined if the gate would serve */
async function start(t: TestContext, given: Given): Promise<string | undefined> {
  const { anchors } = anchorsOf(t, given);
  try {
    await anchors.start(true);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof LedgerRefused, String(error));
    assert.doesNotMatch(error.message, /\n/, "one line");
    return error.message;
  } finally {
    await anchors.close();
  }
}

suite("a start with a ledger that lacks rows", () => {
  for (const { title, observe, isProven } of observers) {
    test(`a start is refused if ${title} knows more rows`, async (t) => {
      const folder = temporaryFolder(t);
      const known = await observe(t, whole(), folder);
      const kind = title.replaceAll(/[^a-z]+/g, "-");
      const cut: Given = { folder, ...known, log: new FakeLog(origin, key).grow(50) };
      const forked: Given = { folder, ...known, log: new FakeLog(origin, key).grow(49).grow(31, "fork") };
      says(`rows-missing-by-${kind}`, (await start(t, cut)) ?? "served");
      says(`another-history-by-${kind}`, (await start(t, forked)) ?? "served");
      assert.equal(
        await start(t, { ...cut, sinks: "", witnesses: [], collected: undefined }),
        undefined,
        "who asks nobody would serve",
      );
      const waved = await start(t, { ...cut, acceptClaims: true });
      assert.equal(waved === undefined, !isProven, "what is signed cannot be waved through");
      if (isProven) assert.ok(readFileSync(join(folder, "checkpoint.seen"), "utf8").startsWith(`${origin}\n60\n`));
      assert.equal(await start(t, { folder, ...known, log: whole().grow(3) }), undefined, "the history goes on");
    });
  }

  test("a start accepts a recorded loss of rows, but not a checkpoint seen after the record", async (t) => {
    const folder = temporaryFolder(t);
    const file = join(folder, "gate");
    const witness = await witnessWith(t, whole());
    const known = { ...(await sinkWith(t, whole(), `file:${file}`)), witnesses: [witness] };
    const log = new FakeLog(origin, key).grow(50);
    const resume = (lost: readonly (number | null)[], at: number, more: object = {}): FakeLog => {
      log.changesMade.splice(0, 1, { act: "resume", at, body: JSON.stringify({ lost, ...more }) });
      return log;
    };
    const later = Date.now() + 3_600_000;
    for (const lost of [
      [51, 60],
      [51, null],
      [40, 70],
    ])
      assert.equal(await start(t, { folder, ...known, log: resume(lost, later) }), undefined, JSON.stringify(lost));
    for (const lost of [
      [51, 59],
      [61, 70],
    ])
      says(
        "rows-missing-although-others-are-stated",
        (await start(t, { folder, ...known, log: resume(lost, later) })) ?? "served",
      );
    // By now the sink has the head of the continued ledger. Its old state is put back, with a later time.
    writeFileSync(file, whole().head());
    utimesSync(file, new Date(later + 1000), new Date(later + 1000));
    says(
      "checkpoint-seen-after-the-record",
      (await start(t, { folder, ...known, log: resume([51, 60], later) })) ?? "served",
    );
    const root = whole().head().split("\n")[2];
    const named = resume([51, 60], later, { checkpoints: [[60, root]] });
    assert.equal(
      await start(t, { folder, ...known, log: named }),
      undefined,
      "a row that names it passes it at any time",
    );
  });

  test("if a witness or sink cannot be reached, the gate logs a warning and starts", async (t) => {
    const log = whole();
    const witness = await witnessOf(t, "a", log);
    witness.url = "http://127.0.0.1:1";
    const folder = temporaryFolder(t);
    const sinks = `file:${folder}`;
    const { anchors, lines } = anchorsOf(t, { log, witnesses: [witness], sinks, folder });
    await anchors.start(true);
    assert.equal(lines.length, 2, lines.join("\n"));
    for (const [at, by] of ["file-sink", "witness"].entries())
      says(`warned-${by}-cannot-be-reached`, lines.toSorted()[at] ?? "");
  });

  test("the gate goes on and logs an alarm if a witness reports another history after the start", async (t) => {
    const witness = await witnessWith(t, whole());
    const log = new FakeLog(origin, key).grow(50);
    const opened = anchorsOf(t, { log, witnesses: [witness], folder: temporaryFolder(t) });
    await opened.anchors.start(false);
    await until(() => opened.lines.length > 0);
    says("alarm-another-history-after-the-start", opened.lines[0] ?? "");
    assert.ok(opened.anchors.readings[0]?.isDiverged);
    grow(opened, log, 30);
    await until(() => witness.requests.some((request) => request.endsWith("old 60 -> 200")));
    await until(() => opened.anchors.readings[0]?.isDiverged === false);
  });
});

suite("a file of collected checkpoints", () => {
  const cut = (): FakeLog => new FakeLog(origin, key).grow(50);

  test("the gate finds an older fork in the file even if the newest checkpoint matches", async (t) => {
    const fork = new FakeLog(origin, key).grow(9).grow(20, "fork");
    const folder = temporaryFolder(t);
    const withNotes = (notes: readonly string[]): Given => ({
      folder,
      log: whole(),
      collected: { file: "seen", notes },
    });
    assert.equal(await start(t, withNotes(notesOf(whole(), [9, 30]))), undefined, "positive control");
    for (const notes of [
      [whole().head(), fork.head()],
      [fork.head(), whole().head()],
    ])
      says("older-fork-in-the-file", (await start(t, withNotes(notes))) ?? "served");
  });

  test("the refusal names the furthest checkpoint under the ledger's key before those of other keys", async (t) => {
    const folder = temporaryFolder(t);
    const stranger = new FakeLog(origin).grow(90).head();
    const notes = [...notesOf(whole(), [55, 51]), stranger];
    const given: Given = { folder, log: cut(), collected: { file: "seen", notes }, acceptClaims: true };
    says("furthest-checkpoint-under-the-key", (await start(t, given)) ?? "served");
  });

  test("the gate accepts a loss only if a row names the checkpoint", async (t) => {
    const folder = temporaryFolder(t);
    const log = cut();
    const root = (size: number): string => new FakeLog(origin, key).grow(size).head().split("\n")[2] ?? "";
    const resume = (checkpoints: readonly (readonly [number, string])[]): Given => {
      const body = JSON.stringify({ lost: [51, 60], checkpoints });
      log.changesMade.splice(0, 1, { act: "resume", at: Date.now() + 3_600_000, body });
      return { folder, log, collected: { file: "seen", notes: notesOf(whole(), [55]) } };
    };
    assert.match((await start(t, resume([]))) ?? "served", /through row 60/);
    assert.match((await start(t, resume([[60, root(60)]]))) ?? "served", /through row 55/);
    const both = [[55, root(55)] as const, [60, root(60)] as const];
    assert.equal(await start(t, resume(both)), undefined);
    const again = new FakeLog(origin, key).grow(50).grow(8, "again");
    const second = { ...resume(both), collected: { file: "seen", notes: [again.head()] } };
    assert.match((await start(t, second)) ?? "served", /through row 58/, "the same numbers, lost a second time");
  });

  test("a file without a checkpoint of the root's ledger is refused, but a tenant may be absent", async (t) => {
    const folder = temporaryFolder(t);
    const given: Given = {
      folder,
      log: whole(),
      collected: { file: "seen", notes: [new FakeLog("other").grow(3).head()] },
    };
    says("file-without-this-ledger", (await start(t, given)) ?? "served");
    assert.equal(await start(t, { ...given, acceptClaims: true }), undefined);
    assert.equal(await start(t, { ...given, tenant: "acme" }), undefined);
  });

  test("the reader skips other text in the file, and a file without a checkpoint is an error", async (t) => {
    const file = join(temporaryFolder(t), "seen");
    const [one = "", two = ""] = notesOf(whole(), [20]);
    writeFileSync(file, `${one}${two}\nerror 503\n${origin}\n61\nAAAA\n${one}`);
    assert.deepEqual(await readCollected(file), [one, two]);
    for (const text of ["", "error 503\n", one.slice(0, -20)]) {
      writeFileSync(file, text);
      await assert.rejects(readCollected(file), saying("file-without-a-checkpoint"));
    }
    await assert.rejects(readCollected(`${file}.none`), /cannot be read \(ENOENT\)$/);
    writeFileSync(file, one.padEnd(4 * 1024 * 1024 + 1, "\n"));
    await assert.rejects(readCollected(file), saying("file-too-long"));
  });
});

suite("sinks", () => {
  test("a file sink gets every head, and a tenant's heads go to a file beside it", async (t) => {
    const folder = temporaryFolder(t);
    const file = join(folder, "anchors", "gate");
    const log = new FakeLog(origin, key);
    const opened = anchorsOf(t, { log, sinks: `file:${file}`, folder });
    await opened.anchors.start(true);
    for (let size = 1; size <= 5; size += 1) {
      grow(opened, log, 1);
      await until(() => vouchedBy(opened, "file sink") === size);
    }
    const heads = readFileSync(file, "utf8").match(/^\d+$/gm);
    assert.deepEqual(heads?.map(Number), [1, 2, 3, 4, 5]);
    appendFileSync(file, `${origin}\n6\nAAAA`);
    grow(opened, log, 1);
    await until(() => vouchedBy(opened, "file sink") === 6);
    const again = anchorsOf(t, { log, sinks: `file:${file}`, folder });
    await again.anchors.start(true);
    assert.equal(vouchedBy(again, "file sink"), 6, "a checkpoint after a torn one is read");
    const tenant = anchorsOf(t, { log, sinks: `file:${file}`, folder, tenant: "acme" });
    await tenant.anchors.start(true);
    await until(() => vouchedBy(tenant, "file sink") === 6);
    assert.ok(readFileSync(`${file}.acme`, "utf8").startsWith(`${origin}\n6\n`));
  });

  test("a sink that failed gets the newest head when it recovers, and the log says so once", async (t) => {
    const folder = temporaryFolder(t);
    const folderOfAnchors = join(folder, "anchors");
    writeFileSync(folderOfAnchors, "a file where the sink wants a folder");
    const log = new FakeLog(origin, key).grow(1);
    const opened = anchorsOf(t, { log, sinks: `file:${join(folderOfAnchors, "gate")}`, folder });
    await opened.anchors.start(true);
    grow(opened, log, 3);
    await until(() => opened.failures.length > 3);
    assert.equal(opened.anchors.readings[0]?.lagRows, log.size);
    rmSync(folderOfAnchors);
    await until(() => vouchedBy(opened, "file sink") === log.size);
    await until(() => opened.lines.length === 2);
    const [failed = "", recovered = ""] = opened.lines;
    assert.match(failed, /^40: .*\b(?:ENOTDIR|EEXIST)\b/);
    says("warned-sink-does-not-take-checkpoints", failed);
    says("logged-sink-takes-checkpoints-again", recovered);
    assert.deepEqual(readFileSync(join(folderOfAnchors, "gate"), "utf8").match(/^\d+$/gm), ["4"]);
  });
});

const badSinks: readonly (readonly [string, string])[] = [
  ["https://example.org/heads?token=secret", "sink-with-a-url"],
  ["git:/srv/repository", "sink-in-git"],
  ["file:relative", "sink-without-its-whole-path"],
  ["file:/a,file:/a", "sink-twice"],
  [Array.from({ length: 17 }, (_, at) => `file:/${at}`).join(","), "too-many-sinks"],
];

test("the error for a wrong setting of sinks says what is wrong", () => {
  for (const [text, name] of badSinks) {
    const parsed = parseSinks(text);
    assert.ok(!parsed.ok, text);
    says(name, parsed.problem);
  }
  const parsed = parseSinks("file:/a, file:/b ");
  assert.ok(parsed.ok);
  assert.deepEqual(
    parsed.value.map(({ by }) => by),
    ["file sink", "file sink 2"],
  );
});

suite("a witness policy", () => {
  const [a, b, c] = ["a", "b", "c"].map((name) => new TestWitness(name).key.text) as [string, string, string];
  const log = new FakeLog(origin, key).verifiers[0]?.text ?? "";
  const at = "http://127.0.0.1:1";
  const two = `witness A ${a} ${at}\nwitness B ${b} ${at}/b/\n`;

  test("a policy is met only by the groups of witnesses that it names", () => {
    const text = `log ${log} https://log.example/\n# people\n${two}\twitness C ${c}\n\ngroup X 2 A B\ngroup all any X C \nquorum all\n`;
    const parsed = parsePolicy(text);
    assert.ok(parsed.ok, parsed.ok ? "" : parsed.problem);
    const { isMet, logs, witnesses } = parsed.value;
    assert.deepEqual([logs.length, witnesses.map(({ url }) => url)], [1, [at, `${at}/b`, undefined]]);
    for (const [signed, met] of [
      [[], false],
      [[a], false],
      [[b, a], true],
      [[c], true],
      [["x", log], false],
    ] as const)
      assert.equal(isMet(new Set(signed)), met);
    assert.ok(parsePolicy("quorum none\n").ok);
    assert.ok(parsePolicy(`${two}quorum A`).ok);
  });

  const wrong: readonly (readonly [string, string])[] = [
    ["", "empty"],
    [two, "no-quorum"],
    [`${two}quorum C\n`, "quorum-not-defined"],
    [`quorum A\n${two}`, "quorum-before-its-witness"],
    [`${two}quorum A\nquorum B\n`, "second-quorum"],
    [`${two}group X 3 A B\nquorum X\n`, "group-needs-too-many"],
    [`${two}group X 0 A B\nquorum X\n`, "group-needs-none"],
    [`${two}group X 01 A B\nquorum X\n`, "group-with-a-leading-zero"],
    [`${two}group X any\nquorum X\n`, "group-without-members"],
    [`${two}group X any A A\nquorum X\n`, "member-twice"],
    [`${two}group X any A\ngroup Y any A B\nquorum Y\n`, "member-of-two-groups"],
    [`${two}group A any B\nquorum A\n`, "group-with-a-taken-name"],
    [`witness none ${a} ${at}\nquorum none\n`, "witness-called-none"],
    [`${two}group X any none\nquorum X\n`, "group-of-none"],
    [`witness A ${a} ${at}\nwitness B ${a} ${at}\nquorum A\n`, "key-twice"],
    [`log ${log}\nlog ${log}\nquorum none\n`, "log-twice"],
    [`witness A ${log} ${at}\nquorum A\n`, "key-of-a-log"],
    [`log ${a}\nquorum none\n`, "log-with-a-key-of-a-witness"],
    [`witness A ${a.replace(/[+][0-9a-f]{8}[+]/, "+00000000+")} ${at}\nquorum A\n`, "damaged-key"],
    [`witness A ${a}\nquorum A\n`, "witness-without-a-url"],
    [`witness A ${a} http://example.org\nquorum A\n`, "url-without-tls"],
    [`${two}quorum A\r\n`, "control-characters"],
    [`quorums A\n`, "unknown-word"],
    ["\n".repeat(1001), "too-many-lines"],
  ];
  for (const [text, name] of wrong) {
    test(`the error for a wrong policy says where: ${name}`, () => {
      const parsed = parsePolicy(text);
      assert.ok(!parsed.ok, text);
      says(name, parsed.problem);
    });
  }

  test("the policy that docs/guides/anchors.md shows is valid", () => {
    const shown =
      /```text\n(witness [\s\S]*?)```/.exec(
        readFileSync(join(import.meta.dirname, "..", "..", "docs", "guides", "anchors.md"), "utf8"),
      )?.[1] ?? "";
    const parsed = parsePolicy(shown);
    assert.ok(parsed.ok, parsed.ok ? "" : parsed.problem);
    const [org = "", net = ""] = parsed.value.witnesses.map((witness) => witness.key.text);
    assert.deepEqual([parsed.value.isMet(new Set([org])), parsed.value.isMet(new Set([net, org]))], [false, true]);
  });

  test("the policy that the other tests write is valid", () => {
    const witness = Object.assign(new TestWitness("a"), { url: at });
    assert.ok(parsePolicy(policyText([witness], 1)).ok);
  });
});
