/** Is the text a pack, rather than a contract or a mandate? */
export function isPack(text: string): boolean {
  return /^pack\s*:/m.test(text) && !/^(?:contract|mandate)\s*:/m.test(text);
}

/** The name of a file that another file names, relative to its folder. */
export function besideFile(file: string, name: string): string {
  if (name.startsWith("/")) return name;
  let folder = file.slice(0, file.lastIndexOf("/") + 1);
  let rest = name;
  for (; rest.startsWith("../"); rest = rest.slice(3))
    folder = folder === "" || folder.endsWith("../") ? `${folder}../` : folder.replace(/[^/]*\/$/, "");
  return folder + rest;
}
