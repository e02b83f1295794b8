/**
 * Goal: a page does not say that a feature is missing when it exists. Method: such a sentence has a marker with the feature's id,
 * `<!-- missing: ID -->`. For each id, this file looks for the feature: in routes, commands, settings, the language or the sources.
 * A phrase that always says that something is missing needs a marker. Positive controls: features that exist are found, and the
 * sentences that once denied them are reported.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { programFor } from "../../../packages/svc-gate/src/main.ts";
import { functions } from "../../../packages/readers/src/mod.ts";
import { compileContracts } from "../../../packages/readers/src/contract.ts";
import { settings } from "../../../packages/gate/src/server/start/config.ts";
import { erasableParts } from "../../../packages/core/src/record/entry/erasure.ts";
import { control } from "../../support/controls/control.ts";
import { root, trackedPaths } from "../../support/tracked.ts";

const read = (path: string): string => readFileSync(join(root, path), "utf8");
const sources = trackedPaths()
  .filter((path) => /^(packages|adapters)\/.*\.(?:ts|mjs|py)$/.test(path) && !path.includes("/generated/"))
  .map((path) => ({ path, text: read(path) }));

const { paths } = JSON.parse(read("spec/openapi.json")) as { readonly paths: Readonly<Record<string, object>> };
const routes = Object.entries(paths).flatMap(([path, methods]) =>
  Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
);

const program = await programFor(["--help"]);
const commands = program.commands.flatMap((command) => [
  command.name(),
  ...command.commands.map((inner) => `${command.name()} ${inner.name()}`),
]);

const hasRoute = (pattern: RegExp): boolean => routes.some((route) => pattern.test(route));
const hasCommand = (pattern: RegExp): boolean => commands.some((command) => pattern.test(command));
const hasSetting = (pattern: RegExp): boolean => settings.some(({ variable }) => pattern.test(variable));
function inSources(pathPattern: RegExp, pattern: RegExp): boolean {
  const here = sources.filter(({ path }) => pathPattern.test(path));
  assert.ok(here.length > 0, `no source is at ${String(pathPattern)}: look elsewhere`);
  return here.some(({ text }) => pattern.test(text));
}

/** Whether a contract with this text beside its tool compiles. */
function compiles(more: string, tool = ""): boolean {
  const usd = "required: [usd], properties: { usd: { type: number, minimum: 0 } }";
  const platform = "platform: { type: object, required: [zone], properties: { zone: { type: string } } }";
  const input = `{ type: object, additionalProperties: false, ${usd} }`;
  const text = `contract: c\n${platform}\ntools:\n  t:\n    input: ${input}\n    otherwise: ALLOW\n${tool}${more}\n`;
  return compileContracts([{ name: "c.yaml", text }]).ok;
}

const compilesWithZone = (zone: string): boolean =>
  compiles(`counters:\n  c: { of: t, within: day, timezone: ${zone}, per: key }`);

/** Features by id, each with a look at whether it exists. Some exist, so that this file shows that it can see. */
const features: Readonly<Record<string, () => boolean>> = {
  aliases: () => compiles("", "    aliases: [u]\n"),
  console: () => hasSetting(/^SVC_CONSOLE/),
  notifications: () => hasSetting(/^SVC_NOTIFY$/) && hasRoute(/^GET \/events$/),
  outcomes: () => hasRoute(/^POST \/outcomes$/),
  settles: () =>
    compiles("counters:\n  c: { of: t, sum: input.usd, counting: possible, settles: outcome, within: 1h, per: key }"),

  "authzen-repeat": () => inSources(/src\/server\/.*authzen[^/]*\.ts$/, /call_id/),
  "authzen-search": () => hasRoute(/\/access\/v1\/search/),
  "backup-database": () => !inSources(/src\/cli\/backup\.ts$/, /refuseDatabase/),
  "client-certificates": () => inSources(/^packages\/gate\/src\/server\//, /requestCert/),
  "decide-in-slack": () => hasRoute(/slack/i) || hasSetting(/SLACK/),
  "envoy-facts": () => inSources(/src\/server\/.*envoy\.ts$/, /platform/i),
  "envoy-outcomes": () => inSources(/src\/server\/.*envoy\.ts$/, /outcome/i),
  "erase-comments": () => (erasableParts as readonly string[]).includes("comment"),
  head: () => inSources(/src\/server\//, /exposeHeadRoutes: true/),
  "litellm-route": () => hasRoute(/litellm|guardrail/i),
  "mcp-oauth": () => inSources(/^packages\/agent\/src\/mcp\//, /oauth-protected-resource/),
  "ml-dsa": () => inSources(/src\/ledger\//, /ml-dsa/i),
  "more-clients": () =>
    trackedPaths().some((path) => /^clients\/(?!python\/|javascript\/|conformance\/|[^/]+$)/.test(path)),
  "move-ledger": () => hasCommand(/^(?:move|copy|convert|transfer)|import(?!-tools)/),
  "outgoing-proxy": () => inSources(/^packages\/(?!agent\/|workbench\/)[^/]+\/src\//, /HTTPS?_PROXY|ProxyAgent/i),
  powershell: () => functions.some(({ name }) => /powershell|pwsh/.test(name)),
  push: () => inSources(/^packages\/console\/src\/browser\//, /serviceWorker|new Notification\(/),
  release: () => !/^## \[?1\.0\.0\]? - unreleased/m.test(read("CHANGELOG.md")),
  "reload-endpoints": () => inSources(/src\/server\/(?:service|policy)\//, /endpointsOf/),
  "remove-persons": () =>
    hasCommand(/^persons (?:remove|delete)/) || hasRoute(/^DELETE \/admin\/persons|\/persons\/.*(?:remove|delete)/),
  results: () => hasRoute(/^POST \/results$/),
  "timezone-from-fact": () => compilesWithZone("platform.zone"),
  "verify-asks-witnesses": () => inSources(/^packages\/records\/src\/verify\//, /witness(?:es)?Of|askWitness/i),
  "withdraw-denial": () => hasRoute(/\/approvals\/.*(?:withdraw|undo|reopen)/),
};

interface Page {
  readonly path: string;
  readonly text: string;
}

const marker = /<!--\s*missing:\s*(\S+?)\s*-->/g;
/** Such a phrase says that something is missing, so its paragraph, point or row needs a marker. */
const denials =
  /\bnot supported\b|\b(?:The gate|The console|svc-gate) has (?:no|neither)\b|\bstill missing\b|\bA ledger cannot move\b/;

function problemsIn({ path, text }: Page): readonly string[] {
  const ids = [...text.matchAll(marker)].map(([, id = ""]) => id);
  const wrong = ids.flatMap((id) => {
    const look = features[id];
    if (look === undefined) return [`${path}: no look for the feature ${id}: add one here`];
    return look() ? [`${path} says that ${id} is missing, and it exists: change the sentence`] : [];
  });
  const parts = text.replaceAll(/^(`{3,})[\s\S]*?^\1/gm, "").split(/\n(?=\s*\n|\s*[*|#-] |\|| *\d+\. )/);
  const unmarked = parts.filter(
    (part) => denials.test(part.replaceAll(/\s+/g, " ")) && !part.includes("<!-- missing:"),
  );
  return [...wrong, ...unmarked.map((part) => `${path} needs a marker: ${part.trim().slice(0, 60)}`)];
}

const pages: readonly Page[] = trackedPaths()
  .filter((path) => path.endsWith(".md") && !/^(?:CHANGELOG\.md|docs\/decisions\/|bench\/peers\/)/.test(path))
  .map((path) => ({ path, text: read(path) }));

suite("sentences about missing features", () => {
  test("no page says that a feature is missing that exists", () => {
    assert.deepEqual(pages.flatMap(problemsIn), []);
  });

  test("each look belongs to a sentence, or to a feature that exists", () => {
    const marked = new Set(pages.flatMap(({ text }) => [...text.matchAll(marker)].map(([, id]) => id)));
    const idle = Object.entries(features).filter(([id, look]) => !marked.has(id) && !look());
    assert.deepEqual(
      idle.map(([id]) => id),
      [],
    );
  });

  control("positive control: the looks into the language see what compiles, and no more", () => {
    assert.deepEqual([compilesWithZone("Europe/Berlin"), compiles("", "    wings: 2\n")], [true, false]);
  });

  control(
    "positive control: sentences that once denied a feature, unknown ids and unmarked phrases are reported",
    () => {
      const old = ["aliases", "console", "notifications", "outcomes", "settles"];
      for (const id of old)
        assert.deepEqual(
          problemsIn({ path: "a.md", text: `* It cannot do that. <!-- missing:\n  ${id} -->` }).length,
          1,
          id,
        );
      for (const text of [
        "<!-- missing: wings -->",
        "<!-- missing: wings2 -->",
        "* The gate has no wings.\n* It flies. <!-- missing: results -->",
        "* The gate has no wings.\n  * It flies. <!-- missing: results -->",
        "* The gate has no wings.",
        "Wings are not\nsupported.\n\n<!-- missing: results -->",
      ])
        assert.equal(problemsIn({ path: "a.md", text }).length, 1, text);
      assert.deepEqual(
        problemsIn({ path: "a.md", text: "* The gate has no results. <!-- missing: results -->\n" }),
        [],
      );
    },
  );
});
