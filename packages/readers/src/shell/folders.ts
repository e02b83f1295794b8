import { quote } from "../../../core/src/wire/mod.ts";
import { doubt } from "./doubt.ts";
import type { Arg } from "./words.ts";

/** Folders whose programs are known by their names. */
const programFolder = /^\/+(?:usr\/+(?:local\/+)?|opt\/homebrew\/+)?s?bin\/+([^/]+)$/;
/** Folders in which systems keep programs, and the kernel's virtual folders, which lead to all programs. */
const systemFolder =
  /^\/(?:$|(?:bin|sbin|usr|lib\w*|opt|etc|proc|dev|sys|run|boot|nix|gnu|snap|var|System|Library|Applications|home\/linuxbrew)(?:\/|$))/;

/**
 * The name of a program: `rm` for `/bin/rm`, and the path as written for any other, so `./ls` is not `ls`.
 *
 * @throws {EvaluationError} if a path may be another name for a system program
 */
export function resolveProgramName(program: string): string {
  if (program === ".") return "source";
  const name = programFolder.exec(program)?.[1];
  if (name !== undefined && name !== "." && name !== "..") return name;
  if (!program.includes("/")) return program;
  if (/(?:^|\/)\.{0,2}(?:\/|$)/.test(program.replace(/^\.?\//, "")) || /^\/(?:proc|dev|sys)\//.test(program))
    doubt(`${quote(program)} may be another name for a system program`);
  return program;
}

export function isRelative(program: string): boolean {
  return program.includes("/") && !program.startsWith("/");
}

/** Options of wrappers that change the folder, alone or in a bundle. */
const chdirOptions: ReadonlyMap<string, RegExp> = new Map([
  ["env", /^(?:-[i0v]*C|--chdir(?:=|$))([^]*)$/],
  ["sudo", /^(?:-[AbEHkKnPSBiNs]*D|--chdir(?:=|$))([^]*)$/],
]);

/** The folders that a builtin or an option changes to; undefined for a folder that is not known. */
export function moveOf(name: string, args: readonly Arg[]): readonly (string | undefined)[] {
  if (name === "popd") return [undefined];
  if (name === "cd" || name === "chdir" || name === "pushd") {
    const folders = args.filter(({ text }) => !/^-[LPe@]+$|^--$/.test(text));
    return [folders.length === 1 ? folderOf(folders[0]) : undefined];
  }
  // The new root is the folder too.
  if (name === "chroot") return [undefined];
  const option = chdirOptions.get(name);
  if (option === undefined) return [];
  return args.flatMap((arg, at) => {
    const [, attached] = option.exec(arg.text) ?? [];
    if (attached === undefined) return [];
    return [folderOf(attached === "" ? args[at + 1] : { ...arg, text: attached })];
  });
}

function folderOf(arg: Arg | undefined): string | undefined {
  return arg?.known === true && !arg.glob ? arg.text : undefined;
}

/**
 * After `cd /usr/bin` the program `./rm` is `/usr/bin/rm`.
 *
 * @throws {EvaluationError} if a text changes to a folder that may contain system programs, and runs a program by a relative
 *   path
 */
export function checkMoves(moves: readonly (string | undefined)[], programs: readonly string[]): void {
  const [program] = programs;
  if (program === undefined) return;
  for (const folder of moves) {
    const isPlain =
      folder !== undefined && /^[^-~]/.test(folder) && !/(?:^|\/)\.\.?(?:\/|$)|\/\//.test(folder.replace(/^\.\//, ""));
    if (!isPlain || systemFolder.test(folder))
      doubt(`the folder changes, so the program that ${quote(program)} names is known only when it runs`);
  }
}

/** May the path lead to the standard input? Then the code in it is known only when it runs. */
export function isDevice(path: string): boolean {
  return /(?:^|\/)(?:dev|proc)\/|(?:^|\/)(?:stdin|fd\/\d+)$/.test(path);
}
