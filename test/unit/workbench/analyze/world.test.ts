/**
 * Goal: `analyze` reads the list of a fold in the world outside of that fold. Method: a list of tags is a member of an item, and
 * both items have one slot, as in an expression that was copied into a fold. Positive control: the item of the outer list has
 * another type. Before, the list was read in the world of its own item, without an end.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { shapeAt, withItem, type ShapeEnvironment } from "../../../../packages/workbench/src/analysis/formula/world.ts";
import { shapeOf } from "../../../../packages/workbench/src/analysis/formula/shapes.ts";
import { readJson } from "../../../../packages/core/src/wire/mod.ts";

const schema = readJson(
  '{"properties":{"files":{"type":"array","items":{"type":"object","properties":{"tags":{"type":"array","items":{"type":"string"}}}}}}}',
);

test("an item whose list is a member of an item with the same slot has the type of the inner list", () => {
  assert.ok(schema.ok);
  const world: ShapeEnvironment = {
    input: shapeOf(schema.value.members),
    platform: undefined,
    ranges: new Map(),
    whole: new Set(),
  };
  const type: any = { kind: "list" };
  const files: any = { op: "member", of: { op: "root", root: "input" }, name: "files", type };
  const item: any = { op: "variable", slot: 0, type: { kind: "dyn" } };
  const tags: any = { op: "member", of: item, name: "tags", type };
  const outer = withItem(world, 0, files);
  const inner = withItem(outer, 0, tags);
  assert.equal(shapeAt(item, outer)?.schema.get("type"), "object");
  assert.equal(shapeAt(item, inner)?.schema.get("type"), "string");
});
