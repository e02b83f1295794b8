/**
 * Goal: inside a module no import runs up, so that a reader can start at the ground and a room can move to another
 * package. Method: each folder has a `mod.ts` whose header says which rooms it may import. The parser reads all imports
 * and compares. The tables of ARCHITECTURE.md and the picture docs/modules.svg are made from the same (UPDATE_GOLDEN=1
 * writes them). Controls: an import, a header and an exception too many are each reported.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { control } from "../support/controls/control.ts";
import { withGenerated } from "../support/generated.ts";
import { packageSources } from "../support/imports.ts";
import { roomPicture, roomTables } from "../support/rooms-page.ts";
import { readRooms, wrongImports, type Source } from "../support/rooms.ts";
import { root } from "../support/tracked.ts";

/** Imports of types from a room above. The list may only get shorter: a line that is not needed any more fails the test. */
const exceptions: readonly string[] = ["gate/server/telemetry/exposition.ts -> gate/server/anchoring/mod.ts"];

const sources: readonly Source[] = packageSources.map((path) => ({
  path,
  text: readFileSync(join(root, path), "utf8"),
}));

function faultsOf(files: readonly Source[], allowed: readonly string[] = exceptions): readonly string[] {
  const { rooms, faults } = readRooms(files);
  return [...faults, ...wrongImports(files, rooms, allowed)];
}

/** The sources with a line after the text of one file; a new file if there is none. */
function planted(path: string, line: string): readonly Source[] {
  const full = `packages/${path}`;
  const others = sources.filter((each) => each.path !== full);
  const text = sources.find((each) => each.path === full)?.text ?? "";
  return [...others, { path: full, text: `${text}\n${line}\n` }];
}

/** The sources with one header changed. */
function changed(folder: string, from: string, to: string): readonly Source[] {
  const path = `packages/${folder}/mod.ts`;
  return sources.map((each) => (each.path === path ? { path, text: each.text.replace(from, to) } : each));
}

function headerOf(contents: string): string {
  const paragraphs = [contents, "Promises: a.", "Does not: b.", "May import: nothing."];
  return `/**\n${paragraphs.map((text) => ` * ${text}`).join("\n *\n")}\n */\n`;
}

suite("rooms", () => {
  test("each folder has a header of at most ten lines, and no import runs up", (t) => {
    const { rooms } = readRooms(sources);
    t.diagnostic(`${rooms.size} rooms and modules, ${sources.length} files`);
    assert.ok(rooms.size > 60);
    assert.deepEqual(faultsOf(sources), []);
  });

  test("the tables of ARCHITECTURE.md and the picture of modules are those of the sources", () => {
    const { rooms } = readRooms(sources);
    const page = join(root, "ARCHITECTURE.md");
    const picture = join(root, "docs", "modules.svg");
    const expected = withGenerated(readFileSync(page, "utf8"), "rooms", roomTables(sources, rooms));
    const drawn = roomPicture(sources, rooms);
    if (process.env["UPDATE_GOLDEN"] === "1") {
      writeFileSync(page, expected);
      writeFileSync(picture, drawn);
    }
    assert.equal(readFileSync(page, "utf8"), expected);
    assert.equal(existsSync(picture) ? readFileSync(picture, "utf8") : undefined, drawn);
  });

  const cases: readonly { readonly title: string; readonly files: readonly Source[]; readonly fault: string }[] = [
    {
      title: "a value from a room above",
      files: planted("core/src/contract/value/value.ts", 'import { parseExpression } from "../text/parser.ts";'),
      fault:
        "core/contract/value/value.ts -> core/contract/text/parser.ts, " +
        "which packages/core/src/contract/value/mod.ts does not allow",
    },
    {
      title: "a value from a room above, loaded later",
      files: planted("gate/src/server/policy/clock.ts", 'void import("../http/routes.ts");'),
      fault:
        "gate/server/policy/clock.ts -> gate/server/http/routes.ts, which packages/gate/src/server/policy/mod.ts does not allow",
    },
    {
      title: "a type from a room above",
      files: planted("gate/src/ledger/store/store.ts", 'import type { LedgerHistory } from "../history/history.ts";'),
      fault: "gate/ledger/store/store.ts -> gate/ledger/history/history.ts, a type of a room above",
    },
    {
      title: "a file of the module's folder that is above one room and below another",
      files: planted("records/src/time.ts", 'import "./deep/found.ts";'),
      fault: "records/time.ts -> records/deep/found.ts, but rooms import records/time.ts",
    },
    {
      title: "a room without a header",
      files: planted("gate/src/server/attic/a.ts", "export {};"),
      fault: "packages/gate/src/server/attic has no mod.ts that starts with a header",
    },
    {
      title: "a header without promises",
      files: changed("core/src/wire", "Promises: ", ""),
      fault: 'packages/core/src/wire/mod.ts does not say "Promises:"',
    },
    {
      title: "a header that is too long",
      files: changed("gate/src/server/admin", " * Does not:", `${" * More words.\n".repeat(10)} * Does not:`),
      fault: "packages/gate/src/server/admin/mod.ts has a header of 17 lines, over 10",
    },
    {
      title: "a header that allows an import that nobody needs",
      files: changed("gate/src/server/request", "May import: nothing", "May import: policy"),
      fault: "packages/gate/src/server/request does not import packages/gate/src/server/policy",
    },
    {
      title: "headers that allow a circle",
      files: changed("core/src/contract/value", "May import: nothing", "May import: run"),
      fault: "packages/core/src/contract/value may import itself, through others",
    },
  ];
  for (const { title, files, fault } of cases)
    control(`positive control: ${title} is reported`, () => {
      const faults = faultsOf(files);
      assert.ok(faults.includes(fault), `${fault}\n\n${faults.join("\n")}`);
    });

  control("positive control: an old table and an old picture are noticed", () => {
    const files = [...sources, { path: "packages/gate/src/server/attic/mod.ts", text: headerOf("Old things.") }];
    const { rooms } = readRooms(files);
    assert.ok(!readFileSync(join(root, "ARCHITECTURE.md"), "utf8").includes(roomTables(files, rooms)));
    assert.notEqual(readFileSync(join(root, "docs", "modules.svg"), "utf8"), roomPicture(files, rooms));
  });

  control("positive control: an exception that is not needed any more is reported", () => {
    const idle = "gate/server/core/gate.ts -> gate/server/http/mod.ts";
    const faults = faultsOf(sources, [...exceptions, idle]);
    assert.deepEqual(faults, [`${idle}: not needed any more`]);
  });
});
