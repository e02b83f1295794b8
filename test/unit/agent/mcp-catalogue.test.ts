/**
 * Goal: a tool is accepted only as the server lists it now, and a hostile list costs little. Method: pins of one tool, and
 * lists that change, fail or never end. Positive controls: test/support/mcp/mutants.ts breaks the same code.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { Catalogue, type ListTools } from "../../../packages/agent/src/mcp/catalogue.ts";
import type { Pins } from "../../../packages/agent/src/mcp/pins.ts";

const pins: Pins = {
  channels: new Set(),
  refusal: null,
  remedy: "svc-gate mcp accept --name bank",
  hasInstructions: () => false,
  statusOf: (name, { description }) => (name !== "pay" ? "new" : description === "Pays." ? "accepted" : "changed"),
  hasTool: (name) => name === "pay",
};

const page = (description: string, nextCursor?: string): ReturnType<ListTools> =>
  Promise.resolve({ tools: [{ name: "pay", description }], ...(nextCursor !== undefined && { nextCursor }) });

suite("the tools that a server lists", () => {
  test("a change during a reading is seen by the calls that wait for it", async () => {
    const catalogue = new Catalogue(pins, () => undefined);
    let description = "Pays.";
    const list: ListTools = async (cursor) => {
      if (cursor === undefined) return page(description, "2");
      if (description === "Pays.") {
        description = "Pays twice.";
        catalogue.forget();
      }
      return { tools: [] };
    };
    const reading = catalogue.read(list);
    assert.match((await catalogue.refusal("pay", list)) ?? "", /has changed/);
    assert.equal(await reading, true);
  });

  test("a list that always changes, or cannot be read, blocks the call", async () => {
    const catalogue = new Catalogue(pins, () => undefined);
    assert.equal(await catalogue.refusal("pay", () => page("Pays.")), undefined);
    let count = 0;
    const restless: ListTools = () => {
      count += 1;
      catalogue.forget();
      return page("Pays.");
    };
    catalogue.forget();
    assert.match((await catalogue.refusal("pay", restless)) ?? "", /does not list/);
    assert.equal(count, 3);
    assert.match((await catalogue.refusal("pay", async () => undefined)) ?? "", /does not list/);
    assert.equal(await catalogue.refusal("pay", () => page("Pays.")), undefined);
  });

  test("the worse of two definitions with one name counts, on whatever page", async () => {
    const catalogue = new Catalogue(pins, () => undefined);
    const list: ListTools = (cursor) => (cursor === undefined ? page("Pays.", "2") : page("Pays twice."));
    assert.match((await catalogue.refusal("pay", list)) ?? "", /has changed/);
  });

  test("endless new tools are named a thousand times at most", () => {
    let said = 0;
    const catalogue = new Catalogue(pins, () => (said += 1));
    const tools = Array.from({ length: 5000 }, (_, index) => ({ name: `new ${index}` }));
    assert.deepEqual(catalogue.filterTools({ tools }), { tools: [] });
    assert.equal(said, 1000);
  });
});
