/**
 * Goal: the pages show commands as a person types them where the gate was started. Method: environments and programs of each way to
 * start a gate.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { typedCommand } from "../../../../packages/console/src/server/page.ts";

const ways: readonly (readonly [how: string, env: NodeJS.ProcessEnv, program: string | undefined, typed: string])[] = [
  ["npm start in a clone", { npm_package_name: "svc-gate-repository" }, "/c/tools/start.mjs", "npm run -s svc-gate --"],
  ["a project's script", { npm_package_name: "shop" }, "/shop/node_modules/.bin/svc-gate", "npx svc-gate"],
  ["npx with an older Node", {}, "/shop/node_modules/svc-gate/bin/svc-gate.mjs", "npx svc-gate"],
  ["npx on Windows", {}, "C:\\shop\\node_modules\\svc-gate\\bin\\svc-gate.mjs", "npx svc-gate"],
  ["the image, or a clone without npm", {}, "/app/bin/svc-gate.mjs", "node bin/svc-gate.mjs"],
  ["a global installation", {}, "/usr/local/bin/svc-gate", "svc-gate"],
  ["a program that starts the gate itself", {}, undefined, "svc-gate"],
];

for (const [how, env, program, typed] of ways)
  test(`after ${how} a command starts with ${typed}`, () => {
    const argv = program === undefined ? ["node"] : ["node", program];
    assert.equal(typedCommand({ env, argv }), typed);
  });
