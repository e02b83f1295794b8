/**
 * `npm run pin-images`: writes the digest of each image into Dockerfile and compose.yaml, so that every build uses the
 * images that were reviewed. `npm run pin-images -- --check` changes nothing, and fails if an image has no digest, or if
 * its tag leads to another one now. The digests come from `docker buildx imagetools`, which needs no engine.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

function main(): void {
  const isCheck = process.argv.includes("--check");
  const files = [
    { file: "Dockerfile", pin: pinDockerfile },
    { file: "compose.yaml", pin: pinCompose },
  ].map(({ file, pin }) => {
    const text = readFileSync(file, "utf8");
    return { file, text, pinned: pin(text) };
  });
  const old = files.filter(({ text, pinned }) => text !== pinned);
  for (const { file, text, pinned } of old) {
    const before = new Set(text.split("\n"));
    for (const line of pinned.split("\n")) if (!before.has(line)) console.log(`${file}: ${line.trim()}`);
    if (!isCheck) writeFileSync(file, pinned);
  }
  if (old.length === 0) console.log("each image has its digest");
  else if (isCheck) fail("the lines above are not in the files: run npm run pin-images, and look at what changed");
}

/** `FROM node:${NODE}` with `ARG NODE=26.10.0-slim` is the image node:26.10.0-slim. */
function pinDockerfile(text: string): string {
  const froms = text.match(/^[ \t]*FROM\b.*$|--from=\S*[:/]\S*/gim) ?? [];
  const images = new Map(
    froms.map((from) => {
      const [, image = "", name = ""] =
        /^FROM ([^\s$-]\S*):\$\{(\w+)\}(?: AS \w+)?$/.exec(from) ?? fail(unread("Dockerfile", from));
      return [name, image];
    }),
  );
  const pinned = text.replaceAll(/^ARG (\w+)=([^\s@]+)(?:@\S+)?$/gm, (line, name: string, tag: string) => {
    const image = images.get(name);
    images.delete(name);
    return image === undefined ? line : `ARG ${name}=${tag}@${digestOf(`${image}:${tag}`)}`;
  });
  const [left] = images.keys();
  return left === undefined ? pinned : fail(unread("Dockerfile", `\${${left}}, because no ARG gives it a value`));
}

/** The gate's own image is built here, so it has no digest yet. */
function pinCompose(text: string): string {
  return text.replaceAll(/^.*\bimage:.*$/gm, (line) => {
    if (/^ +image: svc-gate:\S+$/.test(line)) return line;
    const [, head, image = ""] =
      /^( +image: )([\w./:-]+)(?:@sha256:\w+)?$/.exec(line) ?? fail(unread("compose.yaml", line));
    return `${head}${image}@${digestOf(image)}`;
  });
}

function unread(file: string, text: string): string {
  return `${file}: this command cannot read ${text.trim()}`;
}

function digestOf(image: string): string {
  const inspected = spawnSync("docker", ["buildx", "imagetools", "inspect", image], { encoding: "utf8" });
  const digest = inspected.status === 0 ? /^Digest: +(sha256:[0-9a-f]{64})$/m.exec(inspected.stdout)?.[1] : undefined;
  return digest ?? fail(`docker gives no digest of ${image}: ${inspected.error?.message ?? inspected.stderr.trim()}`);
}

function fail(why: string): never {
  console.error(`pin-images: ${why}`);
  process.exit(1);
}

main();
