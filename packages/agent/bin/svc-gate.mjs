#!/usr/bin/env node
// The entry point on a machine where agents run. `hook` is one module without imports, because a host starts it before each call.
import { existsSync } from "node:fs";

const isClone = existsSync(new URL("../src/mod.ts", import.meta.url));
const file = (name) => (isClone ? `../src/${name}.ts` : `../dist/${name}.js`);
const words = process.argv.slice(2);

if (words[0] === "hook" && words[1] !== "install") {
  const { hook } = await import(file("hook"));
  await hook(words.slice(1));
} else {
  const { runAgentCommand } = await import(file("mod"));
  process.exitCode = await runAgentCommand(words);
}
