import { joined, type Grammar } from "./grammar.ts";

/** A file, often one that must not be read. */
const file = (g: Grammar): string => (g.chance(0.6) ? g.one("a.txt", "b.txt", "src/c.txt", ".", "src") : g.secret());
/** A file, or a pattern that looks like one. */
const pattern = (g: Grammar): string =>
  g.one("a", ".", "-e", "'a b'", "/api/v1", "x..y", "KEY", "root", file(g), file(g));

const grepOption = (g: Grammar): string =>
  joined(
    g.one(
      "-e",
      "-e ",
      "-f ",
      "-f",
      "-n",
      "-ne ",
      "-A1 ",
      "-A 1 ",
      "-m1 ",
      "-C ",
      "--regexp ",
      "--regexp=",
      "--reg=",
      "--file=",
    ),
    g.one("", "", ".", "a", "a.txt", file(g)),
  );

const grep = (g: Grammar): string =>
  [
    g.one("grep", "grep", "grep -n", "grep --"),
    ...shuffled(g, [pattern(g), ...g.some(0, 2, () => grepOption(g)), file(g)]),
  ].join(" ");

function shuffled(g: Grammar, words: readonly string[]): readonly string[] {
  return g.chance(0.5) ? words : words.toSorted(() => g.dice.roll() - 0.5);
}

/** The options of each program, with and without a value. */
const programs: Readonly<Record<string, readonly string[]>> = {
  cat: "-A -- -n -".split(" "),
  head: "-c|-n 1|-c 9|--bytes=9|--lines 1|-q|-v|-1".split("|"),
  tail: "-n 1|-c 9|-n +1|--lines=1|--bytes 9|-q".split("|"),
  wc: "-l|-c|--files0-from=a.txt|--files0-fro a.txt|--files0-from=.env|--files0 -|-L".split("|"),
  cut: "-c1-9|-f1|-d: -f1|-d = -f 2|--delimiter== -f2|-b 1-|--fields=1|--output-delimiter=.env -f1".split("|"),
  diff: "-q|-L a|-L --|-l|--pag|--paginate|--from-file=.env|--to-file .env|-x y|-X .env|--label .env|-F x|-s|-u|-y".split(
    "|",
  ),
  stat: "-c %n|--format=%s|-t|-f|--printf=%n".split("|"),
  ls: "-la|-d|-I a|--ignore=a|-a|-w 9|-1|--hide=a".split("|"),
  sort: "-b|-c|-f|-r|-u|-o new|-onew|--output=new|-k1|-T .|--files0-from=a.txt|-t .|-S 1|-m|--compress-program=pwn|-ro new".split(
    "|",
  ),
  find: "-name a.txt|-type f|-maxdepth 1|-print|-o -print|-not -empty|-fprint new|-exec pwn ;|-L|-path './s*'|-size 1|-fls new".split(
    "|",
  ),
  test: "-f|-e|-n|-z|a =|-d|! -s".split("|"),
};

/** Options that take a file, hide one, or make a word a file that looked like something else. */
export function options(g: Grammar): string {
  if (g.chance(0.4)) return grep(g);
  const name = g.one(...Object.keys(programs));
  const some = g.some(0, 2, () => g.one(...(programs[name] ?? [])));
  return [name, ...shuffled(g, [...some, ...g.some(0, 2, () => file(g))])].join(" ");
}
