import { crc32, deflateSync, inflateSync } from "node:zlib";

export interface Picture {
  readonly width: number;
  readonly height: number;
  /** The pixels, four bytes each: red, green, blue, alpha. */
  readonly rgba: Uint8Array;
  /** What a person reads in the picture. The file keeps it, so that a test can read it too. */
  readonly text: string;
}

const coloursMax = 256;
const frequentMax = 96;

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
/** The keyword, then: compressed, by zlib, without a language and a translated keyword (section 11.3.3.4). */
const textHead = Buffer.from("Description\0\u0001\0\0\0", "latin1");

/** Writes a PNG with a palette (PNG specification, sections 5 and 11.2.2): a third of the size of one with all colours. */
export function palettePng({ width, height, rgba, text }: Picture): Buffer {
  const pixels = Uint32Array.from({ length: width * height }, (_, at) => colourAt(rgba, at * 4));
  const palette = coloursOf(pixels);
  const indexes = new Map(palette.map((colour, at) => [colour, at]));
  const rows = Buffer.alloc(height * (width + 1));
  for (const [at, colour] of pixels.entries()) {
    const known = indexes.get(colour) ?? nearest(palette, colour);
    indexes.set(colour, known);
    rows[Math.floor(at / width) * (width + 1) + 1 + (at % width)] = known;
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.from(palette.flatMap(channels));
  const description = Buffer.concat([textHead, deflateSync(text, { level: 9 })]);
  return Buffer.concat([
    signature,
    chunk("IHDR", head),
    chunk("iTXt", description),
    chunk("PLTE", colours),
    chunk("IDAT", deflateSync(rows, { level: 9, memLevel: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

/** Returns the text that `palettePng` wrote into a picture; undefined if the picture has none. */
export function textOfPng(png: Buffer): string | undefined {
  const at = png.indexOf(Buffer.concat([Buffer.from("iTXt", "latin1"), textHead]));
  if (at < 0) return undefined;
  const data = png.subarray(at + 4, at + 4 + png.readUInt32BE(at - 4));
  return inflateSync(data.subarray(textHead.length)).toString();
}

function colourAt(rgba: Uint8Array, at: number): number {
  return ((rgba[at] ?? 0) << 16) | ((rgba[at + 1] ?? 0) << 8) | (rgba[at + 2] ?? 0);
}

function channels(colour: number): [red: number, green: number, blue: number] {
  return [(colour >> 16) & 0xff, (colour >> 8) & 0xff, colour & 0xff];
}

/** The most frequent colours, then those that differ most from all before: a small green dot stays green. */
function coloursOf(pixels: Uint32Array): readonly number[] {
  const counts = new Map<number, number>();
  for (const colour of pixels) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  const sorted = [...counts].toSorted(([, one], [, other]) => other - one).map(([colour]) => colour);
  const palette = sorted.slice(0, frequentMax);
  const rest = sorted
    .slice(frequentMax)
    .map((colour) => ({ colour, far: distance(palette[nearest(palette, colour)] ?? 0, colour) }));
  while (palette.length < coloursMax && rest.length > 0) {
    const next = rest.reduce((best, each) => (each.far > best.far ? each : best));
    if (next.far === 0) break;
    palette.push(next.colour);
    for (const each of rest) each.far = Math.min(each.far, distance(next.colour, each.colour));
  }
  return palette;
}

function nearest(palette: readonly number[], colour: number): number {
  let [best, least] = [0, Infinity];
  for (const [at, each] of palette.entries()) {
    const far = distance(each, colour);
    if (far < least) [best, least] = [at, far];
  }
  return best;
}

function distance(one: number, other: number): number {
  const [r, g, b] = channels(one);
  const [red, green, blue] = channels(other);
  return (r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2;
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}
