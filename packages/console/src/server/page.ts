import type { Assets } from "./assets.ts";

/** The header fields of the page. The page itself contains no data, so it needs no key. */
export const pageHeaders: Readonly<Record<string, string>> = {
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-store",
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; " +
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

/** How a person types a command of this gate on its machine: as it was started itself. */
export function typedCommand({ env, argv }: Pick<NodeJS.Process, "argv" | "env"> = process): string {
  if (env["npm_package_name"] === "svc-gate-repository") return "npm run -s svc-gate --";
  const program = argv[1] ?? "";
  if (/[\\/]node_modules[\\/]/.test(program)) return "npx svc-gate";
  return program.endsWith("svc-gate.mjs") ? "node bin/svc-gate.mjs" : "svc-gate";
}

/**
 * The console's only page. Its scripts show the rest.
 *
 * @param base the path of the console, such as `/t/acme/console`
 * @param files the path of the files, with their digest
 */
export function pageText(base: string, files: string, { first }: Assets): string {
  const preloads = first.map((name) => `<link rel="modulepreload" href="${files}/${name}">`).join("\n");
  return `<!doctype html>
<html lang="en" data-base="${base}" data-command="${typedCommand()}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>svc-gate</title>
<link rel="icon" href="${files}/console/src/browser/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${files}/console/src/browser/style.css">
${preloads}
<script type="module" src="${files}/console/src/browser/main.js"></script>
</head>
<body>
<div id="app"></div>
<noscript>The console needs JavaScript. Without it, use the command ${typedCommand()} approvals.</noscript>
</body>
</html>
`;
}
