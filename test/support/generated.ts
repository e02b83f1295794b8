import assert from "node:assert/strict";

/** Returns a page with new contents between `<!-- NAME: ... -->` and `<!-- /NAME -->`. Fails if it has no such section. */
export function withGenerated(page: string, name: string, contents: string): string {
  const region = new RegExp(`(<!-- ${name}: [^>]*-->\n)[^]*?(<!-- /${name} -->)`);
  assert.match(page, region);
  return page.replace(region, (_, open: string, close: string) => `${open}${contents}\n${close}`);
}
