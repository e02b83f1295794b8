import type { SourceFile } from "../text/diagnostic.ts";

/** Is the text a pack, rather than a contract or a mandate? */
export function isPack(text: string): boolean {
  return /^pack\s*:/m.test(text) && !/^(?:contract|mandate)\s*:/m.test(text);
}

/** A contract that takes a pack and has no tools: to compile the pack alone. */
export function contractOfPack({ name }: SourceFile): SourceFile {
  const file = name.slice(name.lastIndexOf("/") + 1);
  const text = `contract: pack\ncommands: { from: [${JSON.stringify(file)}] }\ntools: {}\n`;
  return { name: besideFile(name, "pack"), text };
}

/** The name of a ready pack in the text of GET /rules, and of the file below `contracts` that has its text. */
const ready = /^svc-gate:([a-z][a-z0-9-]*)$/;

/** The path of a ready pack below the folder `contracts`; undefined for a file of a person. */
export function readyPack(name: string): string | undefined {
  const [, pack] = ready.exec(name) ?? [];
  return pack === undefined ? undefined : `packs/${pack}.yaml`;
}

/** The name of a pack that a contract takes: a ready one by its name, such as `git`, or a file by its path. */
export function packName(contract: string, taken: string): string {
  return readyPack(`svc-gate:${taken}`) === undefined ? besideFile(contract, taken) : `svc-gate:${taken}`;
}

/** The name of a file that another file names, relative to its folder. */
function besideFile(file: string, name: string): string {
  if (name.startsWith("/")) return name;
  let folder = file.slice(0, file.lastIndexOf("/") + 1);
  let rest = name;
  for (; rest.startsWith("../"); rest = rest.slice(3))
    folder =
      folder === "" || folder.endsWith("../")
        ? `${folder}../`
        : folder.slice(0, folder.lastIndexOf("/", folder.length - 2) + 1);
  return folder + rest;
}
