/** The parts of ARCHITECTURE.md that follow from the sources: the tables of rooms, and the picture of modules. */
import { posix } from "node:path";
import { short } from "./modules.ts";
import { importsOfSource, type Room, type Source } from "./rooms.ts";

/** A module with the rooms in it, by level. A room imports only rooms of lower levels. */
interface Module {
  readonly name: string;
  readonly room: Room;
  /** The names of the modules that it imports. */
  readonly imports: readonly string[];
  /** From the ground. */
  readonly levels: readonly (readonly Room[])[];
}

/** Returns one table of rooms for each module, each row a level from the ground, and one table for small modules. */
export function roomTables(files: readonly Source[], rooms: ReadonlyMap<string, Room>): string {
  const modules = modulesOf(files, rooms).filter(({ levels }) => levels.length > 0);
  const large = modules.filter(({ levels }) => levels.length > 2);
  const small = modules.filter((each) => !large.includes(each));
  const tables = large.map(({ name, levels }) =>
    tableOf(
      name,
      levels.map((level, index) => [String(index + 1), level.map((room) => entry(room))] as const),
    ),
  );
  const others = small.map(({ name, levels }) => [name, levels.flat().map((room) => entry(room))] as const);
  return [...tables, tableOf("other", others)].join("\n\n");
}

function tableOf(name: string, rows: readonly (readonly [level: string, entries: readonly string[]])[]): string {
  const lines = rows.map(([level, entries]) => `| ${level} | ${entries.join("; ")} |`);
  return [`| ${name} | rooms, from the ground |`, "|---|---|", ...lines].join("\n");
}

/** The name of a room, and its contents in a few words: the part of its first sentence before or after the colon. */
function entry(room: Room): string {
  const [sentence = ""] = /^.*?(?=\.(?: |$))/.exec(room.contents) ?? [];
  const [subject = "", ...rest] = sentence.split(": ");
  const isCommand = subject.startsWith("`") && rest.length > 0;
  const words = isCommand ? rest.join(": ") : subject.split(" ").length < 3 ? sentence : subject;
  return `\`${nameIn(room)}\` ${/^[A-Z][a-z]/.test(words) ? words.charAt(0).toLowerCase() + words.slice(1) : words}`;
}

/** The name of a room in its module. */
function nameIn({ folder, module }: Room): string {
  return folder.slice(module.length + 1);
}

function modulesOf(files: readonly Source[], rooms: ReadonlyMap<string, Room>): readonly Module[] {
  const all = [...rooms.values()].toSorted((one, other) => (one.folder < other.folder ? -1 : 1));
  const imported = (module: string): readonly string[] => {
    const targets = files
      .filter(({ path }) => rooms.get(posix.dirname(path))?.module === module)
      .flatMap((file) => importsOfSource(file).map(({ to }) => rooms.get(posix.dirname(to))?.module));
    return [...new Set(targets)].filter((to) => to !== undefined && to !== module).map((to) => short(to as string));
  };
  const level = (room: Room): number =>
    Math.max(0, ...room.mayImport.map((name) => 1 + level(rooms.get(name) as Room)));
  const modules = all
    .filter(({ folder, module }) => folder === module)
    .map((room) => {
      const levels: Room[][] = [];
      for (const each of all) if (each.module === room.folder && each !== room) (levels[level(each)] ??= []).push(each);
      return { name: short(room.folder), room, imports: imported(room.folder), levels };
    });
  const heightOf = ({ imports }: Module): number =>
    Math.max(0, ...modules.filter(({ name }) => imports.includes(name)).map((each) => 1 + heightOf(each)));
  return modules.toSorted((one, other) => heightOf(one) - heightOf(other));
}

/** The modules from top to bottom. */
const columns: readonly (readonly string[])[] = [
  ["workbench/commands", "workbench/analysis", "workbench/test", "records", "readers", "agent"],
  ["svc-gate", "gate/cli", "gate/server", "console/server", "console/browser"],
  ["gate/ledger", "core/contract", "core/record", "core/approvals", "core/wire"],
];
const columnWidth = 348;
const gap = 12;
const line = 25;
const colors: Readonly<Record<string, readonly [fill: string, border: string]>> = {
  core: ["#dafbe1", "#1a7f37"],
  readers: ["#d3f5f0", "#0f766e"],
  gate: ["#ddf4ff", "#0969da"],
  "svc-gate": ["#eaeef2", "#57606a"],
  console: ["#fbefff", "#8250df"],
  records: ["#fff8c5", "#9a6700"],
  workbench: ["#fff1e5", "#bc4c00"],
  agent: ["#ffeff7", "#bf3989"],
};

/** Draws the modules. In each of them are its rooms, the lowest at the bottom; the color is the package. */
export function roomPicture(files: readonly Source[], rooms: ReadonlyMap<string, Room>): string {
  const modules = new Map(modulesOf(files, rooms).map((each) => [each.name, each]));
  const drawn: string[] = [];
  let height = 0;
  for (const [index, names] of columns.entries()) {
    let y = 44;
    for (const name of names) {
      const module = modules.get(name);
      if (module === undefined)
        throw new Error(`the module ${name} does not exist: remove it from "columns" of this file`);
      modules.delete(name);
      const box = drawnModule(module);
      drawn.push(`<g transform="translate(${gap + index * (columnWidth + gap)} ${y})">${box.parts.join("")}</g>`);
      y += box.height + gap;
    }
    height = Math.max(height, y);
  }
  if (modules.size > 0) throw new Error(`add ${[...modules.keys()].join(", ")} to "columns" of this file`);
  const width = gap + columns.length * (columnWidth + gap);
  const legend = Object.keys(colors).map((name, index) => chip(name, name, { x: 218 + index * 81, y: 12, width: 76 }));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title"`,
    '     font-family="system-ui, -apple-system, \'Segoe UI\', \'DejaVu Sans\', sans-serif" font-size="12" fill="#1f2328">',
    '  <title id="title">Modules, with the modules that they import, and their rooms</title>',
    `  <rect x="1" y="1" width="${width - 2}" height="${height - 2}" rx="10" fill="#f6f8fa" stroke="#8c959f"/>`,
    `  <text x="${gap}" y="27">A room imports rooms below it.</text>`,
    ...[...legend, ...drawn].map((part) => `  ${part}`),
    "</svg>",
    "",
  ].join("\n");
}

function drawnModule({ name, imports, levels }: Module): { height: number; parts: readonly string[] } {
  const owners = [...new Set(imports.map(ownerOf))].filter((owner) => owner !== ownerOf(name)).toSorted();
  const from = owners.length === 0 ? "imports no other package" : `imports ${owners.join(", ")}`;
  const size = widthOf(name);
  const parts = [
    chip(name, ownerOf(name), { x: 8, y: 8, width: size }),
    `<text x="${size + 14}" y="23" fill="#57606a" font-size="10">${from}</text>`,
  ];
  let y = 8 + line + 2;
  for (const level of levels.toReversed()) {
    let x = 8;
    for (const each of level) {
      const text = nameIn(each);
      const width = widthOf(text);
      if (x + width > columnWidth - 8) [x, y] = [8, y + line];
      parts.push(chip(text, ownerOf(name), { x, y, width }));
      x += width + 5;
    }
    y += line;
  }
  const box = `<rect width="${columnWidth}" height="${y + 3}" rx="8" fill="#ffffff" stroke="#57606a"/>`;
  return { height: y + 3, parts: [box, ...parts] };
}

/** The package of a module. */
function ownerOf(module: string): string {
  return module.split("/")[0] ?? "";
}

/** Enough for a text in the fonts of the picture. */
function widthOf(text: string): number {
  return Math.ceil(text.length * 7.3) + 14;
}

function chip(text: string, owner: string, at: Readonly<Record<"width" | "x" | "y", number>>): string {
  const [fill, border] = colors[owner] ?? ["#ffffff", "#57606a"];
  return (
    `<rect x="${at.x}" y="${at.y}" width="${at.width}" height="21" rx="5" fill="${fill}" stroke="${border}"/>` +
    `<text x="${at.x + 7}" y="${at.y + 15}">${text}</text>`
  );
}
