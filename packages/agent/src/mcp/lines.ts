/** Messages of the stdio transport: one text a line. */
import type { Readable, Writable } from "node:stream";

/** A message with some images is below this; the SDKs' own limit is 10 MB. */
export const lineBytesMax = 16_777_216;

const newline = 0x0a;

/** Why a line was left out. */
export type LineFault = "too long" | "not UTF-8";

/**
 * Calls `line` for each line that is not empty. A line that is too long or not UTF-8 is left out.
 *
 * @param end called once, after the last line
 */
export function readLines(
  input: Readable,
  { line, fault, end }: { line: (text: string) => void; fault: (why: LineFault) => void; end: () => void },
): void {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let pieces: Buffer[] = [];
  let length = 0;
  const finish = (): void => {
    const bytes = pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces);
    const isTooLong = length > lineBytesMax;
    pieces = [];
    length = 0;
    if (isTooLong) return fault("too long");
    let text: string;
    try {
      text = decoder.decode(bytes).trim();
    } catch {
      return fault("not UTF-8");
    }
    if (text !== "") line(text);
  };
  const keep = (piece: Buffer): void => {
    length += piece.length;
    if (length > lineBytesMax) pieces = [];
    else pieces.push(piece);
  };
  input.on("data", (piece: Buffer) => {
    let start = 0;
    for (let at = piece.indexOf(newline); at !== -1; at = piece.indexOf(newline, start)) {
      keep(piece.subarray(start, at));
      finish();
      start = at + 1;
    }
    if (start < piece.length) keep(piece.subarray(start));
  });
  input.on("error", () => input.destroy());
  let hasEnded = false;
  const endOnce = (): void => {
    if (hasEnded) return;
    hasEnded = true;
    end();
  };
  // Standard input from a file, such as /dev/null, ends but does not close. A stream that breaks closes but does not end.
  input.on("close", endOnce);
  input.on("end", () => {
    if (length > 0) finish();
    endOnce();
  });
}

/** Writes a line, and stops the source until the reader has taken it if the reader is slow. */
export function writeLine(output: Writable, text: string, source: Readable): void {
  if (!output.writable || output.write(`${text}\n`) || source.isPaused()) return;
  source.pause();
  output.once("drain", () => source.resume());
}
