/**
 * Goal: a test in a real browser fails if a page of the console does what no page may do. Method: each offence is
 * committed in a page, and the check at the end of that test must complain about it. Control: a page without an offence.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { startDesk } from "../../support/approvals.ts";
import { openBrowser, type BrowserOptions } from "../../support/browser.ts";
import { control } from "../../support/controls/control.ts";
import { eventually } from "../../support/patience.ts";

interface Offence {
  readonly what: string;
  readonly script: string;
  readonly complaint: RegExp;
  readonly options?: BrowserOptions;
}

const picture = "document.body.append(Object.assign(document.createElement('img'), { src: 'http://127.0.0.1:9/x' }))";

const offences: readonly Offence[] = [
  { what: "an error in the console", script: "console.error('broken')", complaint: /^console: broken/ },
  {
    what: "an error of a script",
    script: "setTimeout(() => { throw new Error('thrown') })",
    complaint: /^error: Error: thrown/,
  },
  { what: "a picture of another origin", script: picture, complaint: /^policy: img-src/ },
  {
    what: "markup from a text",
    script: "try { document.body.innerHTML = '<b>bold</b>' } catch {}",
    complaint: /^policy: require-trusted-types-for/,
  },
  {
    what: "a request to another origin",
    script: "fetch('http://127.0.0.1:9/x').catch(() => undefined)",
    complaint: /^request to another origin: http:\/\/127.0.0.1:9\/x/,
    options: { bypassCSP: true },
  },
  {
    what: "a file that the gate does not have",
    script: "import(document.querySelector('script[src]').src.replace('main', 'nothing')).catch(() => undefined)",
    complaint: /^file .*nothing\.js: status 404/,
  },
];

suite("the tests in a browser", () => {
  for (const { what, script, complaint, options } of offences)
    control(`positive control: ${what} fails the test`, async (t) => {
      const desk = await startDesk(t);
      const checks: (() => Promise<void>)[] = [];
      const anna = await openBrowser({ after: (check) => void checks.push(check) }, desk, options);
      await anna.signIn(desk.keys["anna"] ?? "");
      assert.deepEqual(anna.complaints(), []);
      await anna.page.evaluate(script);
      await eventually(what, () => anna.complaints().some((each) => complaint.test(each)));
      await assert.rejects(async () => {
        for (const check of checks) await check();
      }, /the browser complained/);
    });

  test("a page without an offence passes", async (t) => {
    const desk = await startDesk(t);
    const anna = await openBrowser(t, desk);
    await anna.signIn(desk.keys["anna"] ?? "");
  });
});
