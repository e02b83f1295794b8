/**
 * Goal: no picture in the documents shows a state that a reader would take for a fault. Method: `npm run screenshots`
 * writes what a person reads in a picture into its file; this test reads it. Positive control: a picture of an inbox
 * whose calls are over, and one that another program made.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { control } from "../support/controls/control.ts";
import { root } from "../support/gate.ts";
import { palettePng, textOfPng } from "../support/png.ts";

/** What is wrong with a picture of the console; undefined if nothing is. */
function faultOf(name: string, png: Buffer): string | undefined {
  const text = textOfPng(png);
  if (text === undefined) return `${name}: it has no text: make it with npm run screenshots`;
  for (const wrong of [/time over/, /not live/, /Loading/, /cannot be loaded/, /Invalid Date/, /\bin 0/, /\bNaN\b/])
    if (wrong.test(text)) return `${name}: it shows ${String(wrong)}`;
  return name.startsWith("inbox") && !/\d[dhms]\s+left/.test(text) ? `${name}: no call waits` : undefined;
}

suite("the pictures of the console", () => {
  test("each picture shows calls that still wait, and no fault", () => {
    const names = globSync("docs/images/*.png", { cwd: root });
    assert.ok(names.length >= 11, names.join());
    const faults = names.map((name) => faultOf(name.replace("docs/images/", ""), readFileSync(join(root, name))));
    assert.deepEqual(
      faults.filter((fault) => fault !== undefined),
      [],
    );
  });

  control("positive control: a picture whose calls are over, or without its text, is noticed", () => {
    const picture = { width: 2, height: 1, rgba: new Uint8Array(8) };
    const fault = (text: string): string | undefined => faultOf("inbox.png", palettePng({ ...picture, text }));
    assert.equal(fault("Inbox\n59m 58s left"), undefined);
    assert.match(fault("Inbox\ntime over") ?? "", /time over/);
    assert.match(fault("Inbox") ?? "", /no call waits/);
    const png = palettePng({ ...picture, text: "Inbox" });
    assert.match(faultOf("inbox.png", Buffer.concat([png.subarray(0, 33), png.subarray(-12)])) ?? "", /no text/);
  });
});
