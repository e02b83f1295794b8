import { bad, good, type Result } from "../../wire/mod.ts";
import type { Report, SourceFile } from "../text/diagnostic.ts";

/** Finds a file that another file names, or returns a clause with the reason why it is unavailable. */
export type OpenFile = (name: string) => Result<SourceFile, string>;

/** Finds files by their names among those of a text. */
export function openAmong(files: readonly SourceFile[]): OpenFile {
  return (name) => {
    const file = files.find((other) => other.name === name);
    return file === undefined ? bad("it is not in the text") : good(file);
  };
}

/** The files of the text of GET /rules. */
export function splitText(text: string): readonly SourceFile[] {
  const marks = [...text.matchAll(mark)];
  return marks.map((line, at) => ({
    name: line[1] ?? "",
    text: text.slice(line.index + line[0].length, marks[at + 1]?.index),
  }));
}

/** The line before each file in that text. Only LF ends a line, whatever else a text or a pattern treats as an end. */
const mark = /(?<![^\n])--- # ([^\n]*)\n/g;

/**
 * No file contains such a line, and no file name breaks it. So compiling the text again gives the rules that were in
 * force.
 */
export function checkMarks(files: readonly SourceFile[], report: Report): void {
  for (const file of files) {
    if (/[\p{Cc}\u2028\u2029]/u.test(file.name))
      report.add("name", { file, from: 0, to: 1 }, "a file's name has no line breaks and no control characters");
    for (const { index } of file.text.matchAll(/(?<![^\n])--- #/g))
      report.add(
        "yaml",
        { file, from: index, to: index + 5 },
        "a line with this start separates the files in the text of GET /rules",
        "write the comment on a separate line",
      );
  }
}

/** Is the text a contract, rather than a mandate? */
export function isContract(text: string): boolean {
  return /^contract\s*:/m.test(text) && !/^mandate\s*:/m.test(text);
}
