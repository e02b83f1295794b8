/**
 * Goal: a call cannot hide from the person who decides it, and cannot act in the page. Method: calls with hostile texts,
 * sizes, depths and numbers; their page must show each of them whole on request, in the accessibility tree or as text,
 * with characters as they were sent, and have few elements before. `openBrowser` fails the test for anything that runs or
 * leaves the page. Positive controls: pages that show texts as they are, round numbers, or cut or open what is long.
 */
import assert from "node:assert/strict";
import { suite, test, type TestContext } from "node:test";
import type { Desk } from "../../support/approvals.ts";
import { openBrowser, plant, type Person } from "../../support/browser.ts";
import { keyOf, parksAny, startConsole } from "../../support/console-kit.ts";
import { control } from "../../support/controls/control.ts";
import { check } from "../../support/gate.ts";
import type { Mutation } from "../../support/mutation/mutate.ts";

interface Defect {
  readonly module: string;
  /** True if the pages have no policy either, which would stop most of what hostile texts do. */
  readonly bypassCSP?: boolean;
  readonly mutation: Mutation;
}

/** Opens a gate with these calls and anna's browser, which has the defect. */
async function start(t: TestContext, defect?: Defect): Promise<readonly [Desk, Person]> {
  const desk = await startConsole(t);
  const anna = await openBrowser(t, desk, { bypassCSP: defect?.bypassCSP ?? false });
  if (defect !== undefined) await plant(anna, defect.module, defect.mutation);
  await anna.signIn(keyOf(desk, "anna"));
  return [desk, anna];
}

const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;
const privates = [0xe000, 0xf8ff, 0xf0000, 0xffffd, 0x100000, 0x10fffd];

/** Each code point that a reader does not see, or that changes the order or the lines of a text. */
function unseenPoints(): readonly number[] {
  const all = Array.from({ length: 0x110000 }, (_, point) => point);
  return [...all.filter((point) => unseen.test(String.fromCodePoint(point))), ...privates];
}

const named: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9 };

/** The code point that an escape such as `\u200b` or `\u{e0001}` names. */
function pointIn(shown: string): number | undefined {
  const [, letter, four, more] = /^"a\\(?:([nrt])\n?|u([0-9a-f]{4})|u\{([0-9a-f]+)\})z"$/.exec(shown) ?? [];
  return letter === undefined ? Number.parseInt(four ?? more ?? "", 16) : named[letter];
}

/** The names of all texts in the browser's accessibility tree. */
async function accessibleTexts({ page, context }: Person): Promise<readonly string[]> {
  const session = await context.newCDPSession(page);
  const { nodes } = await session.send("Accessibility.getFullAXTree");
  await session.detach();
  return nodes.filter(({ role }) => role?.value === "StaticText").map(({ name }) => String(name?.value));
}

/** Presses each button that opens more of a call, until there is none. */
async function openAll({ page }: Person): Promise<void> {
  const more = page.locator(".main .call button", { hasText: /^Show .+ (?:values|characters)/ });
  while ((await more.count()) > 0) await more.first().click();
}

function shownValues({ page }: Person): Promise<readonly string[]> {
  return page.evaluate<string[]>(`[...document.querySelectorAll(".main .value")].map((each) => each.textContent)`);
}

/** Every unseen character is shown as its escape, and none of them is in the page. */
async function assertEscapes(t: TestContext, defect?: Defect): Promise<void> {
  const [desk, anna] = await start(t, defect);
  const points = unseenPoints();
  assert.ok(points.length > 4000, String(points.length));
  const id = await parksAny(desk, { all: points.map((point) => `a${String.fromCodePoint(point)}z`) });
  await anna.opens(`/approvals/${id}`);
  await openAll(anna);
  const values = await shownValues(anna);
  assert.equal(values.length, points.length);
  const wrong = points.filter((point, at) => pointIn(values[at] ?? "") !== point);
  assert.deepEqual(wrong, []);
  const left = (await anna.page.locator("body").innerText()).replaceAll("\n", "").match(unseen);
  assert.equal(left, null);
  const tree = (await accessibleTexts(anna)).join("\n");
  for (const escape of [String.raw`\u202e`, String.raw`\u200b`, String.raw`\u0000`, String.raw`\u{e0041}`])
    assert.ok(tree.includes(escape), escape);
}

const marker = "console.error('executed')";
const markup: readonly string[] = [
  `<script>${marker}</script>`,
  `<img src=x onerror="${marker}">`,
  `"><svg onload=${marker}>`,
  `<iframe srcdoc="<script>${marker}</script>"></iframe>`,
  `javascript:${marker}`,
  `data:text/html,<script>${marker}</script>`,
  `<a href="javascript:${marker}">Approve</a>`,
  `<style>*{display:none}</style><base href="http://127.0.0.1:9/">`,
  `<meta http-equiv="refresh" content="0;url=http://127.0.0.1:9/">`,
  `</bdi></mark><form action="/console/session/end"><button>`,
  "{{constructor.constructor('throw 1')()}}${1+1}<%= 1 %>",
  "https://user@127.0.0.1:9/?a=1&b=<b>",
];

const intruders =
  "main :is(img, script, iframe, object, embed, base, meta, style, form[action]), [onerror], " +
  "[onload], a[href^='javascript:' i], a[href*=':9/']";

/** Sends hostile texts wherever a call has a text, and looks for them on each page that shows calls. */
async function assertInert(t: TestContext, defect?: Defect): Promise<void> {
  const [desk, anna] = await start(t, defect);
  const texts = Object.fromEntries(markup.map((text, at) => [`${at}${text}`, text]));
  const session = `s<img src=x onerror="${marker}">`;
  const facts = { wallet: markup[0], ...texts };
  const id = await parksAny(desk, texts, { session_id: session, platform_state: facts });
  for (const tool of markup) await check(desk, { tool_name: tool, tool_input: {}, session_id: `javascript:${marker}` });
  await desk.operates("/admin/stop", { scope: { tools: ["pay.legal"] }, why: markup.join(" ") });
  const { json } = await desk.as("anna", `/approvals/${id}`);
  try {
    for (const path of ["/", `/approvals/${id}`, `/receipts/${json.receipt}`, "/receipts", "/rollout", "/access"]) {
      await anna.opens(path);
      assert.equal(await anna.page.locator(intruders).count(), 0, path);
      assert.ok(await anna.page.getByText(/onerror=|javascript:/).count(), `${path} shows the texts`);
    }
    await anna.opens(`/approvals/${id}`);
    const tree = (await accessibleTexts(anna)).join("");
    for (const text of markup) assert.ok(tree.includes(text), text);
    for (const tab of await anna.page.getByRole("button", { name: "As received" }).all()) await tab.click();
    assert.equal(await anna.page.locator(intruders).count(), 0, "as received");
    assert.deepEqual(anna.complaints(), []);
  } finally {
    if (defect !== undefined) anna.expects(/./);
  }
}

const numbers: readonly string[] = [
  "9007199254740993",
  "1e400",
  "-1e-400",
  "0.1000000000000000055",
  "-0",
  "1E5",
  "100000000000000000000000",
  "1.0",
  "1.10",
];

/** Numbers keep their characters on each page that shows a call. */
async function assertNumbers(t: TestContext, defect?: Defect): Promise<void> {
  const [desk, anna] = await start(t, defect);
  const id = await parksAny(desk, `{"numbers":[${numbers.join(",")}]}`);
  const { json } = await desk.as("anna", `/approvals/${id}`);
  for (const path of [`/approvals/${id}`, `/receipts/${json.receipt}`]) {
    await anna.opens(path);
    const shown = await anna.page.evaluate<string[]>(
      `[...document.querySelectorAll(".main .value.number")].map((each) => each.firstChild.textContent)`,
    );
    assert.deepEqual(shown.slice(0, numbers.length), numbers, path);
    const tree = await accessibleTexts(anna);
    for (const number of numbers) assert.ok(tree.includes(number), `${path}: ${number}`);
    await anna.page.getByRole("button", { name: "As received" }).first().click();
    await anna.page.getByText(`[${numbers.join(",")}]`).waitFor();
  }
}

/** Calls at the limits of a request are shown to their last character. */
async function assertWhole(t: TestContext, defect?: Defect): Promise<void> {
  const [desk, anna] = await start(t, defect);
  const long = `begin${"lorem ipsum ".repeat(21_000)}end`;
  const members = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`m${at}`, at]));
  const deep = `${'{"a":'.repeat(60)}"bottom"${"}".repeat(60)}`;
  const shown = async (input: object | string): Promise<string> => {
    await anna.opens(`/approvals/${await parksAny(desk, input)}`);
    await openAll(anna);
    return anna.page.evaluate<string>(`document.querySelector(".main .call").textContent`);
  };
  assert.ok((await shown({ long })).includes(long), "252,000 characters");
  await shown(members);
  const names = await anna.page.evaluate<string[]>(
    `[...document.querySelectorAll(".main .call .leaf .name")].map((each) => each.textContent)`,
  );
  assert.deepEqual(names, Object.keys(members));
  assert.match(await shown(deep), /bottom/);
  const bottom = anna.page.getByText("bottom").first();
  await bottom.scrollIntoViewIfNeeded();
  const box = await bottom.boundingBox();
  assert.ok(box !== null && box.width > 0 && box.x >= 0 && box.x < 1280, JSON.stringify(box));
  assert.match((await accessibleTexts(anna)).join(""), /bottom/);
}

/** A run of blanks cannot push the rest of a text out of sight: it is shown as its length. */
async function assertBlanks(t: TestContext, defect?: Defect): Promise<void> {
  const [desk, anna] = await start(t, defect);
  const blanks = [" ", "\u00a0", "\u2003", "\u3000", "\u2800"].map((blank) => `pay${blank.repeat(3000)}everything`);
  await anna.opens(`/approvals/${await parksAny(desk, { blanks })}`);
  for (const value of await shownValues(anna)) assert.equal(value, '"pay«3000 blanks»everything"');
}

/** The most elements of a page that nobody has opened more of. Chromium makes as many in a part of a second. */
const elementsMax = 6000;

/** A call that an agent has made as large as it can makes no page large: not its own, and not that of a later call. */
async function assertSmall(t: TestContext, defect?: Defect): Promise<void> {
  const [desk, anna] = await start(t, defect);
  const inputs: readonly (object | string)[] = [
    { hidden: "\u200b".repeat(60_000) },
    { alternating: "a\u200b".repeat(20_000) },
    { marks: `x${"\u0301".repeat(120_000)}` },
    `{"objects":[${"{},".repeat(9900)}{}]}`,
    { ["\u200b\u05d0".repeat(500)]: "\u200b\u05d0".repeat(30_000) },
    { to: "shop", amount: 3 },
  ];
  const isSmall = async (what: string, where: string): Promise<void> => {
    const elements = await anna.page.locator("*").count();
    assert.ok(elements <= elementsMax, `${where}: ${elements} elements for ${what}`);
  };
  for (const input of inputs) {
    const what = JSON.stringify(input).slice(0, 40);
    const id = await parksAny(desk, input);
    await anna.opens(`/approvals/${id}`);
    await anna.page.getByRole("heading", { name: "The last five calls" }).waitFor();
    await isSmall(what, "its approval");
    await anna.opens(`/receipts/${(await desk.as("anna", `/approvals/${id}`)).json.receipt}`);
    await isSmall(what, "its receipt");
  }
  await anna.opens("/");
  await isSmall("all", "the inbox");
  for (const box of await anna.page.getByRole("checkbox").all()) await box.check();
  await anna.page.getByRole("button", { name: "Look at each and decide" }).click();
  await anna.page.getByRole("button", { name: `Approve all ${inputs.length}`, disabled: false }).waitFor();
  await isSmall("all", "the dialog of a batch");
  await anna.page.getByText("Parts open on request").waitFor();
}

/** The texts of values that a person cannot see, because they are outside a box that clips them. */
const clipped = `[...document.querySelectorAll(".main .value, .like li")].flatMap((value) => {
  const range = document.createRange();
  range.selectNodeContents(value);
  return [...range.getClientRects()].flatMap((rect) => {
    for (let box = value.parentElement; box !== document.body; box = box.parentElement) {
      const { left, right } = box.getBoundingClientRect();
      const isClipped = getComputedStyle(box).overflowX !== "visible" && (rect.left < left - 6 || rect.right > right + 6);
      if (isClipped) return [value.textContent.slice(0, 30) + " in " + box.className];
    }
    return [];
  });
})`;

/** No value of a call is cut at an edge, at any depth and in any script, and no call widens the table of receipts. */
async function assertUncut(t: TestContext, defect?: Defect): Promise<void> {
  const [desk, anna] = await start(t, defect);
  const wide = ["W".repeat(24), "a\u00a0b".repeat(60).slice(0, 200), "\ufdfd".repeat(20), "x".repeat(200)];
  const inputs: readonly (object | string)[] = [
    `${'{"a":'.repeat(60)}{"pay_everything_to":"mallory","amount":5000}${"}".repeat(60)}`,
    { wide, to: "shop" },
    { wide, to: "bank" },
  ];
  for (const input of inputs) {
    const id = await parksAny(desk, input);
    for (const width of [1280, 390]) {
      await anna.page.setViewportSize({ width, height: 844 });
      await anna.opens(`/approvals/${id}`);
      await anna.page.getByText("Answer", { exact: true }).or(anna.page.getByText("has not called")).first().waitFor();
      assert.deepEqual(await anna.page.evaluate(clipped), [], `${width} pixels`);
    }
  }
  for (const name of wide) await check(desk, { tool_name: name, tool_input: {}, session_id: name });
  await anna.page.setViewportSize({ width: 1280, height: 844 });
  await anna.opens("/receipts");
  const over = await anna.page.evaluate(
    `document.querySelector(".receipts").getBoundingClientRect().right - innerWidth`,
  );
  assert.ok(Number(over) <= 0, `${String(over)} pixels outside the window`);
}

/** The name of a member cannot look like a name with its value. */
async function assertNames(t: TestContext, defect?: Defect): Promise<void> {
  const [desk, anna] = await start(t, defect);
  const input = { to: "x", "größe-2": 1, 'amount: 5, "to': "y", "": 0, "a b": 1 };
  await anna.opens(`/approvals/${await parksAny(desk, input)}`);
  const names = await anna.page.locator(".main .call .leaf .name").allTextContents();
  assert.deepEqual(names.slice(0, 5), ["to", "größe-2", '"amount: 5, "to"', '""', '"a b"']);
}

suite("hostile calls in the console", () => {
  test("each unseen character is shown as its escape", (t) => assertEscapes(t));
  test("markup and links stay texts on each page", (t) => assertInert(t));
  test("numbers keep their characters", (t) => assertNumbers(t));
  test("calls at the limits are shown whole", (t) => assertWhole(t));
  test("a run of blanks is shown as its length", (t) => assertBlanks(t));
  test("no call makes a page large", (t) => assertSmall(t));
  test("no value is cut at an edge", (t) => assertUncut(t));
  test("a name of a member is in quotes if it is not a plain word", (t) => assertNames(t));

  const raw = {
    module: "text",
    mutation: { within: "Text", first: 'return renderPieces([{ text: of, kind: "plain" }]);' },
  };
  const parsed = {
    module: "text",
    bypassCSP: true,
    mutation: { within: "Text", first: 'return h("bdi", { dangerouslySetInnerHTML: { __html: of } });' },
  };
  const longOpen = { module: "text", mutation: { within: "Text", first: "return renderPieces(piecesOf(of));" } };
  const treeOpen = { module: "tree", mutation: { within: "viewOf", first: "room = Infinity;" } };
  const rounded = { module: "tree", mutation: { within: "Scalar", find: "of.text", put: "String(Number(of.text))" } };
  const cut = {
    module: "tree",
    mutation: { within: "Entries", find: "entries.slice(0, shown)", put: "entries.slice(0, 1000)" },
  };
  const indented = { module: "tree", mutation: { within: "Entries", find: "level > indentsMax", put: "false" } };
  const unquoted = { module: "tree", mutation: { within: "Entry", find: "plainName.test(name)", put: "true" } };
  for (const [name, assertion, defect] of [
    ["that shows texts as they are", assertEscapes, raw],
    ["that parses texts as markup", assertInert, parsed],
    ["that rounds numbers", assertNumbers, rounded],
    ["that cuts what is long", assertWhole, cut],
    ["that opens long texts by itself", assertSmall, longOpen],
    ["that opens large objects by itself", assertSmall, treeOpen],
    ["that indents each level", assertUncut, indented],
    ["that shows each name without quotes", assertNames, unquoted],
  ] as const)
    control(`positive control: a page ${name} is noticed`, async (t) => {
      await assert.rejects(assertion(t, defect), assert.AssertionError);
    });
});
