/**
 * Loaded into a gate before it starts: another wall clock, which jumps; shorter bounds, so that a campaign is; another
 * version; or a planted bug, which the campaign must find. What is set is in CAMPAIGN_* variables.
 */
import { registerHooks } from "node:module";
import { planted, type Bug } from "./bugs.ts";

const { CAMPAIGN_CLOCK, CAMPAIGN_BOUNDS, CAMPAIGN_BUG, CAMPAIGN_VERSION } = process.env;

if (CAMPAIGN_CLOCK !== undefined) {
  const offsets = JSON.parse(CAMPAIGN_CLOCK) as readonly number[];
  const real = Date.now;
  const secondsEach = 5;
  Date.now = () => {
    const now = real();
    return now + (offsets[Math.floor(now / (secondsEach * 1000)) % offsets.length] ?? 0);
  };
}

const replacements = [
  ...(CAMPAIGN_BUG === undefined ? [] : planted[CAMPAIGN_BUG as Bug]),
  ...(CAMPAIGN_VERSION === undefined
    ? []
    : [
        {
          file: "src/gate/version.ts",
          from: /version = "[^"]+"/,
          to: `version = "${CAMPAIGN_VERSION}"`,
        },
      ]),
];

if (replacements.length > 0) {
  registerHooks({
    load: (url, context, next) => {
      const loaded = next(url, context);
      const own = replacements.filter(({ file }) => url.endsWith(`/${file}`));
      if (own.length === 0) return loaded;
      let text = textOf(loaded.source);
      for (const { file, from, to } of own) {
        const replaced = text.replace(from, to);
        if (replaced === text) throw new Error(`${file} does not have what the planted bug replaces: ${String(from)}`);
        text = replaced;
      }
      return { ...loaded, source: text };
    },
  });
}

function textOf(source: string | NodeJS.TypedArray | ArrayBuffer | undefined): string {
  return typeof source === "string" ? source : new TextDecoder().decode(source);
}

if (CAMPAIGN_BOUNDS !== undefined) {
  const { bounds } = await import("../../src/ledger/stores/postgres-session.ts");
  Object.assign(bounds, JSON.parse(CAMPAIGN_BOUNDS));
}
