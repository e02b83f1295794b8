#!/usr/bin/env -S node --max-semi-space-size=8
// The entry point in a clone and in the image. It runs the command line of packages/svc-gate. A clone installs the workbench when one of
// its commands is first called, because a serving gate does not need it. The image has neither tools/ nor the
// workbench.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
process.env["NODE_COMPILE_CACHE"] ??= join(root, "node_modules", ".cache", "svc-gate");

// npm runs a script in the clone's folder, but the user's paths are relative to the user's folder.
const typedIn = process.env["INIT_CWD"];
if (process.env["npm_lifecycle_event"] === "svc-gate" && typedIn !== undefined) process.chdir(typedIn);

const { agent, workbench } = JSON.parse(readFileSync(join(root, "packages", "svc-gate", "package.json"), "utf8"));
const setup = new URL("../tools/setup.mjs", import.meta.url);
if (workbench.includes(process.argv[2]) && existsSync(setup)) await (await import(setup.href)).setUp("workbench");

// A host starts `hook` before each call, so the command line of the server is not loaded for it.
const agentBin = new URL("../packages/agent/bin/svc-gate.mjs", import.meta.url);
const isAgents = agent.includes(process.argv[2]) && Number(process.versions.node.split(".")[0]) >= 26;
await import(isAgents && existsSync(agentBin) ? agentBin.href : "../packages/svc-gate/bin/svc-gate.mjs");
