/** Files of an export that were changed, moved or removed. */
import { exportFiles, sha256 } from "./fixture.ts";
import {
  actFiles,
  bundle,
  contracts,
  edited,
  entriesChanged,
  evidence,
  first,
  flipped,
  longFiles,
  longRows,
  moved,
  oneCase,
  positionIn,
  plan,
  planned,
  second,
  signed,
  tile,
  type ExportCase,
  without,
} from "./ground.ts";

export const folders: readonly ExportCase[] = [
  oneCase(
    "tile: one bit of a leaf",
    edited(actFiles, bundle, (bytes) => flipped(bytes, positionIn(7, "note.add"), 0)),
    { row: 7, code: "tile" },
  ),
  oneCase(
    "prev: one bit of it",
    edited(actFiles, bundle, (bytes) => flipped(bytes, positionIn(7, '"prev":"') + 8, 0)),
    { row: 7, code: "prev" },
  ),
  oneCase(
    "seq: two rows swapped",
    entriesChanged((list) => list.splice(5, 2, ...list.slice(5, 7).toReversed())),
    { row: 6, code: "seq" },
  ),
  oneCase(
    "seq: a row is gone from the midst",
    entriesChanged((list) => list.splice(5, 1)),
    { row: 6, code: "seq" },
  ),
  oneCase(
    "seq: a row stands twice",
    entriesChanged((list) => list.splice(5, 0, ...list.slice(5, 6))),
    { row: 7, code: "seq" },
  ),
  oneCase(
    "entry: the last row is gone",
    entriesChanged((list) => list.pop()),
    { row: 12, code: "entry" },
  ),
  oneCase(
    "entry: a row more",
    entriesChanged((list) => list.push(...list.slice(-1))),
    { row: 12, code: "entry" },
  ),
  oneCase(
    "entry: a byte more",
    edited(actFiles, bundle, (bytes) => Buffer.concat([bytes, Buffer.of(0)])),
    { row: 12, code: "entry" },
  ),
  oneCase(
    "entry: a byte less",
    edited(actFiles, bundle, (bytes) => bytes.subarray(0, -1)),
    { row: 12, code: "entry" },
  ),
  oneCase(
    "entry: a length that reaches past the end",
    edited(actFiles, bundle, (bytes) => flipped(bytes, 0, 7)),
    { row: 1, code: "entry" },
  ),
  oneCase(
    "leaf: a length that ends within the leaf",
    edited(actFiles, bundle, (bytes) => flipped(bytes, 1, 0)),
    { row: 1, code: "leaf" },
  ),
  oneCase(
    "tile: one bit at level 0",
    edited(actFiles, tile, (bytes) => flipped(bytes, 4 * 32, 0)),
    { row: 5, code: "tile" },
  ),
  oneCase(
    "tile: one bit at level 1",
    edited(longFiles, "tile/1/000.p/1", (bytes) => flipped(bytes, 31, 7)),
    { row: 1, code: "tile" },
  ),
  oneCase(
    "tile: one bit in the second tile",
    edited(longFiles, "tile/0/001.p/44", (bytes) => flipped(bytes, 43 * 32, 0)),
    { row: 300, code: "tile" },
  ),
  oneCase(
    "tile: a byte more",
    edited(actFiles, tile, (bytes) => Buffer.concat([bytes, Buffer.of(0)])),
    { row: 1, code: "tile" },
  ),
  oneCase(
    "tile: a hash less",
    edited(actFiles, tile, (bytes) => bytes.subarray(0, -32)),
    { row: 1, code: "tile" },
  ),
  oneCase(
    "file: a tile is longer than a full one",
    edited(actFiles, tile, (bytes) => Buffer.concat([bytes, Buffer.alloc(256 * 32 + 1 - bytes.length)])),
    { row: 1, code: "file" },
  ),
  oneCase("file: a tile under another width", moved(actFiles, tile, "tile/0/000.p/11"), { row: 1, code: "file" }),
  oneCase("file: no leaves", without(actFiles, bundle), { row: 1, code: "file" }),
  oneCase("file: no evidence", without(actFiles, evidence), { row: 1, code: "file" }),
  oneCase("file: no tile at level 1", without(longFiles, "tile/1/000.p/1"), { row: 1, code: "file" }),
  oneCase("file: no second bundle", without(longFiles, "tile/entries/001.p/44"), { row: 257, code: "file" }),
  oneCase("file: no evidence of the second bundle", without(longFiles, "evidence/001.p/44"), {
    row: 257,
    code: "file",
  }),
  oneCase("file: the size is one too large", signed({ size: 13 }), { row: 1, code: "file" }),
  oneCase("file: the size is one too small", signed({ size: 11 }), { row: 1, code: "file" }),
  oneCase(
    "root: the size ends with the first bundle",
    exportFiles(plan(longRows, { contracts: [contracts[0]], size: 256 })),
    { row: 0, code: "root" },
  ),
  oneCase("root: another one is signed", signed({ root: sha256("another") }), { row: 0, code: "root" }),
  oneCase("root: of no row, another one is signed", exportFiles(plan([], { contracts: [], root: sha256("\0") })), {
    row: 0,
    code: "root",
  }),
  oneCase(
    "contract: its text is another",
    edited(actFiles, `contracts/${second?.slice(7)}.txt`, (bytes) => flipped(bytes, 3, 0)),
    { row: 6, code: "contract" },
  ),
  oneCase("contract: its text is gone", without(actFiles, `contracts/${first?.slice(7)}.txt`), {
    row: 1,
    code: "contract",
  }),
  oneCase("contract: no digest", planned(11, { contract: "notes" }), { row: 11, code: "contract" }),
  oneCase("contract: another digest's name", planned(11, { contract: first?.replace("sha256", "sha512") ?? "" }), {
    row: 11,
    code: "contract",
  }),
  oneCase("contract: a path", planned(11, { contract: "sha256:../contracts/x" }), { row: 11, code: "contract" }),
];
