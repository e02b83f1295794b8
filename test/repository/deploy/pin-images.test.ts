/**
 * Goal: `npm run pin-images` gives each image of others a digest, and `--check` notices one without or with an old one.
 * Method: the real files in a folder, and a program instead of `docker` that makes a digest of each name. Positive
 * controls: `--check` passes after pinning, and a tag that moved is reported.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { test, type TestContext } from "node:test";
import { root, temporaryFolder } from "../../support/gate.ts";

const files = ["Dockerfile", "compose.yaml"];

/** A folder with the real files, and a `docker` whose digests depend on `salt`. */
function workshop(t: TestContext) {
  const folder = temporaryFolder(t);
  for (const file of files) copyFileSync(join(root, file), join(folder, file));
  const docker = (script: string): void => {
    writeFileSync(join(folder, "docker"), `#!${process.execPath}\n${script}\n`);
    chmodSync(join(folder, "docker"), 0o755);
  };
  const digesting = (salt: string): string => `
    const [, , buildx, imagetools, inspect, image] = process.argv;
    if ([buildx, imagetools, inspect].join(" ") !== "buildx imagetools inspect") process.exit(9);
    const digest = require("node:crypto").hash("sha256", ${JSON.stringify(salt)} + image);
    console.log("Name:      " + image + "\\nDigest:    sha256:" + digest + "\\n\\nManifests:\\n  Name: x@sha256:0");`;
  return {
    texts: () => files.map((file) => readFileSync(join(folder, file), "utf8")).join(""),
    docker,
    /** Changes a file at one position; the result undoes it. */
    change: (file: string, find: string, put: string): (() => void) => {
      const text = readFileSync(join(folder, file), "utf8");
      assert.ok(text.includes(find), find);
      writeFileSync(
        join(folder, file),
        text.replace(find, () => put),
      );
      return () => writeFileSync(join(folder, file), text);
    },
    move: (salt: string): void => docker(digesting(salt)),
    run: (...args: readonly string[]) =>
      spawnSync(process.execPath, [join(root, "tools/pin-images.ts"), ...args], {
        cwd: folder,
        encoding: "utf8",
        env: { ...process.env, PATH: [folder, process.env["PATH"]].join(delimiter) },
      }),
  };
}

const pinned = /(?:node|NODE|postgres|prom\/prometheus|grafana\/grafana)[:=][\w.-]+@sha256:[0-9a-f]{64}$/gm;

test("each image of others gets the digest of its tag, and a tag that moved is noticed", (t) => {
  const { texts, move, run } = workshop(t);
  const before = texts();
  move("one");
  assert.equal(run("--check").status, 1);
  assert.equal(texts(), before);
  assert.equal(run().status, 0);
  assert.equal(texts().match(pinned)?.length, 4, texts());
  assert.equal(texts().replaceAll(/@sha256:\w{64}/g, ""), before.replaceAll(/@sha256:\w{64}/g, ""));
  const check = run("--check");
  assert.deepEqual([check.status, check.stdout], [0, "each image has its digest\n"]);
  move("two");
  const moved = run("--check");
  assert.equal(moved.status, 1);
  assert.match(moved.stdout, /compose\.yaml: image: postgres:\S+@sha256/);
  assert.equal(run().status, 0);
  assert.equal(run("--check").status, 0);
});

test("a line that cannot be read is an error, and not an image without a digest", (t) => {
  const { texts, change, move, run } = workshop(t);
  move("one");
  for (const [file, find, put] of [
    ["compose.yaml", "image: postgres:18.4", "image: postgres:18.4 # the store"],
    ["compose.yaml", "image: postgres:18.4", 'image: "postgres:18.4"'],
    ["Dockerfile", "FROM node:${NODE}\n", "FROM alpine:3.22\n"],
    ["Dockerfile", "FROM node:${NODE}\n", "FROM --platform=linux/amd64 node:${NODE}\n"],
    ["Dockerfile", "COPY --from=modules", "COPY --from=busybox:1.37"],
    ["Dockerfile", "ARG NODE=", "ARG OTHER="],
  ] as const) {
    const undo = change(file, find, put);
    const changed = texts();
    for (const args of [[], ["--check"]]) {
      const { status, stderr } = run(...args);
      assert.equal(status, 1, put);
      assert.match(stderr, /^pin-images: (?:Dockerfile|compose\.yaml): this command cannot read /);
      assert.equal(texts(), changed);
    }
    undo();
  }
});

test("if docker gives no digest, no file changes and the error names the image", (t) => {
  const { texts, docker, run } = workshop(t);
  const before = texts();
  for (const [script, why] of [
    ['console.error("no such host"); process.exit(1)', /no digest of node:\S+: no such host/],
    ['console.log("Digest: latest")', /no digest of node:/],
  ] as const) {
    docker(script);
    const { status, stderr } = run();
    assert.equal(status, 1);
    assert.match(stderr, why);
    assert.equal(texts(), before);
  }
});
