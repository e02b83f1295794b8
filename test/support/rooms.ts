import { posix } from "node:path";
import { importsIn, type Import } from "./imports.ts";
import { folderOf, moduleOf, short } from "./modules.ts";

/** A source file of the packages. */
export interface Source {
  /** From the repository's folder. */
  readonly path: string;
  readonly text: string;
}

/** A folder of sources. A module is a room with rooms in it, or a single room. */
export interface Room {
  readonly folder: string;
  /** The module's folder; that of the room itself if it is a module. */
  readonly module: string;
  /** The first paragraph of the header. */
  readonly contents: string;
  /** The rooms of the same module that it may import; a module has none. */
  readonly mayImport: readonly string[];
}

const headerLinesMax = 10;

const parsed = new WeakMap<Source, readonly Import[]>();

/** Returns the imports of a source. Each source is parsed once. */
export function importsOfSource(source: Source): readonly Import[] {
  return parsed.getOrInsertComputed(source, ({ path, text }) => importsIn(path, text));
}

/** Returns the rooms by folder, and what is wrong with their headers. */
export function readRooms(files: readonly Source[]): { rooms: ReadonlyMap<string, Room>; faults: readonly string[] } {
  const rooms = new Map<string, Room>();
  const faults: string[] = [];
  const texts = new Map(files.map(({ path, text }) => [path, text]));
  for (const folder of new Set(files.map(({ path }) => posix.dirname(path)))) {
    const owner = moduleOf(folder);
    if (owner === undefined) continue;
    const module = folderOf(owner);
    const header = /^\/\*\*\n(.*?)\n \*\//s.exec(texts.get(`${folder}/mod.ts`) ?? "")?.[1];
    if (header === undefined) {
      faults.push(`${folder} has no mod.ts that starts with a header`);
      continue;
    }
    const lines = header.split("\n").length;
    if (lines > headerLinesMax && folder !== module)
      faults.push(`${folder}/mod.ts has a header of ${lines} lines, over ${headerLinesMax}`);
    const [contents = "", ...rest] = header
      .replaceAll(/^ \* ?/gm, "")
      .split("\n\n")
      .map((paragraph) => paragraph.replaceAll("\n", " "));
    const text = rest.join(" ");
    const [, list] = /May import: ([^.]*)\./.exec(text) ?? [];
    for (const words of ["Promises: ", "Does not: ", ...(folder === module ? [] : ["May import: "])])
      if (!text.includes(words)) faults.push(`${folder}/mod.ts does not say "${words.trim()}"`);
    const names = list === undefined || list === "nothing" ? [] : list.split(", ");
    rooms.set(folder, {
      folder,
      module,
      contents,
      mayImport: names.map((name) => `${module}/${name}`),
    });
  }
  return { rooms, faults };
}

/**
 * Returns the imports that the headers do not allow, and headers that allow too much or allow a circle.
 *
 * @param types the imports of types from a room above that are there today, as `FROM -> TO`
 */
export function wrongImports(
  files: readonly Source[],
  rooms: ReadonlyMap<string, Room>,
  types: readonly string[],
): readonly string[] {
  const imports = files.flatMap((file) => importsOfSource(file).map((each) => ({ ...each, from: file.path })));
  const inside = imports.filter(({ to }) => rooms.has(posix.dirname(to)));
  return [...circles(rooms), ...wrongInModules(inside, rooms, types), ...wrongRoots(inside, rooms)];
}

type FileImport = Import & { readonly from: string };

/** The rooms that a room may import, and those that these may import. */
function below(room: Room, rooms: ReadonlyMap<string, Room>): ReadonlySet<string> {
  const found = new Set(room.mayImport);
  for (const each of found) for (const next of rooms.get(each)?.mayImport ?? []) found.add(next);
  return found;
}

function circles(rooms: ReadonlyMap<string, Room>): readonly string[] {
  return [...rooms.values()].flatMap((room) => [
    ...(below(room, rooms).has(room.folder) ? [`${room.folder} may import itself, through others`] : []),
    ...room.mayImport.filter((name) => !rooms.has(name)).map((name) => `${room.folder} may import ${name}: no room`),
  ]);
}

/** Imports from one room of a module to another. */
function wrongInModules(
  imports: readonly FileImport[],
  rooms: ReadonlyMap<string, Room>,
  types: readonly string[],
): readonly string[] {
  const used = new Set<string>();
  const wrong = new Set<string>();
  for (const { from, to, isType } of imports) {
    const [room, other] = [rooms.get(posix.dirname(from)), rooms.get(posix.dirname(to))];
    if (room === undefined || other === undefined || room === other || room.module !== other.module) continue;
    if (room.folder === room.module || other.folder === other.module) continue;
    const line = `${short(from)} -> ${short(to)}`;
    if (isType && types.includes(line)) used.add(line);
    else if (room.mayImport.includes(other.folder)) used.add(`${room.folder} ${other.folder}`);
    else wrong.add(isType ? `${line}, a type of a room above` : `${line}, which ${room.folder}/mod.ts does not allow`);
  }
  const idle = [...rooms.values()].flatMap(({ folder, mayImport }) =>
    mayImport.filter((name) => !used.has(`${folder} ${name}`)).map((name) => `${folder} does not import ${name}`),
  );
  return [...wrong, ...idle, ...types.filter((line) => !used.has(line)).map((line) => `${line}: not needed any more`)];
}

/**
 * Files in a module's own folder, beside its rooms. Each is above all rooms, because it imports some, or below all of
 * them, because rooms import it.
 */
function wrongRoots(imports: readonly FileImport[], rooms: ReadonlyMap<string, Room>): readonly string[] {
  const isRoot = (path: string): boolean => rooms.get(posix.dirname(path))?.module === posix.dirname(path);
  const own = imports.filter(({ from, to }) => moduleOf(from) === moduleOf(to));
  const lower = new Set(own.filter(({ from, to }) => !isRoot(from) && isRoot(to)).map(({ to }) => to));
  for (const path of lower) for (const { from, to } of own) if (from === path && isRoot(to)) lower.add(to);
  return own
    .filter(({ from, to }) => lower.has(from) && !isRoot(to))
    .map(({ from, to }) => `${short(from)} -> ${short(to)}, but rooms import ${short(from)}`);
}
