/**
 * The skeleton of a text: two texts that look alike to a person have the same skeleton. Follows Unicode UTS 39, reduced
 * to the letters with which names are faked. It removes compatibility forms, case, accents and invisible characters.
 * Letters of Cyrillic, Greek, Armenian and Cherokee become the Latin letters that they resemble, and digits become
 * letters.
 */
export function skeleton(text: string): string {
  const plain = text
    .normalize("NFKD")
    .toLowerCase()
    .normalize("NFKD")
    .replace(/[\p{Mn}\p{Me}\p{Cf}\p{Cc}\p{White_Space}]/gu, "");
  const single = Array.from(plain, (character) => lookAlikes.get(character) ?? character).join("");
  return single.replaceAll("rn", "m").replaceAll("vv", "w").replaceAll("cl", "d");
}

/** For each Latin letter its look-alikes, in lower case. */
const alphabet: Readonly<Record<string, string>> = {
  a: "аɑα4@",
  b: "ЬЪьъƅв8",
  c: "сϲⅽᴄꮯ",
  d: "ԁɗԃ",
  e: "еєҽɛε3",
  f: "ғƒſ",
  g: "ɡցգ9",
  h: "һհнᏂ",
  j: "јյϳ",
  k: "кκĸқ",
  l: "1i|!ıιіӏǀ∣ꭵł",
  m: "мɱ",
  n: "пոռηп",
  o: "0оοօσөø",
  p: "рρƿþ",
  q: "ԛգ",
  r: "гᴦꮁ",
  s: "ѕꮪ5$",
  t: "тτŧ7",
  u: "υսᴜцμ",
  v: "νѵᴠ",
  w: "ѡԝᴡωшщ",
  x: "хχҳ",
  y: "уүγʏ",
  z: "ᴢ2",
  "-": "‐‑‒–—−_ー",
  ".": "。．｡·․",
  "/": "⁄∕",
};

const lookAlikes: ReadonlyMap<string, string> = new Map(
  Object.entries(alphabet).flatMap(([latin, others]) => Array.from(others, (other) => [other, latin] as const)),
);
