/** Programs of small languages, which people write into commands. Each test knows less than the language, and is linear. */
export const isQuietCode: Readonly<Record<"SED" | "AWK" | "JQ", (text: string) => boolean>> = {
  SED: isQuietSed,
  AWK: isQuietAwk,
  JQ: (text) => !/#|\$\s*(?:ENV|__)|(?<![\w.])(?:env|import|include|input_filename|get_search_list)(?!\w)/.test(text),
};

/** `r`, `R`, `w`, `W` and `e` open files or run commands, alone and as flags of `s`. */
function isQuietSed(text: string): boolean {
  let rest = text;
  while (rest !== "") {
    const command = sedCommand.exec(rest)?.[0];
    if (command === undefined || command === "") return false;
    const tail = afterSedCommand(command, rest.slice(command.length));
    if (tail === undefined) return false;
    rest = tail;
  }
  return true;
}

/** In a bracket the slash is a character, and not the end. */
const sedBracket = String.raw`\[\^?\]?(?:\[[:.=][^\]\n]*\]|[^\]\n[])*\]`;
const sedAddress = String.raw`(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n[]|\\[^\n]|${sedBracket})*/I?)`;
/** Blanks, an address, and the letter of a command. */
const sedCommand = new RegExp(
  String.raw`^[\s;{}]*(?:${sedAddress}(?:\s*,\s*(?:[+~]?\d+|${sedAddress}))?\s*!?\s*)?(?:[pdqgGhHxnNDPl=sy{}]|$)`,
);

/** The script after a command and its arguments; undefined if these are not understood. */
function afterSedCommand(command: string, rest: string): string | undefined {
  const letter = command.at(-1);
  if (letter === "{" || letter === "}") return rest;
  if (letter !== "s" && letter !== "y") return /^\s*(?:[;}\n]|$)/.test(rest) ? rest : undefined;
  const separator = rest.charAt(0);
  if (!/^[/|#,:@!%+~]$/.test(separator)) return undefined;
  let at = 1;
  for (let part = 0; part < 2; part += 1) {
    while (at < rest.length && rest.charAt(at) !== separator) {
      const bracket = part === 0 && rest.charAt(at) === "[" ? endOfBracket(rest, at) : at;
      if (bracket === undefined) return undefined;
      at = bracket + (rest.charAt(bracket) === "\\" ? 2 : 1);
    }
    if (at >= rest.length) return undefined;
    at += 1;
  }
  const flags = /^[gpiIm0-9]*/.exec(rest.slice(at))?.[0] ?? "";
  const after = rest.slice(at + flags.length);
  return /^\s*(?:[;}\n]|$)/.test(after) ? after : undefined;
}

/** The position of the bracket's end: the separator in it is a character. Undefined if the bracket does not end in the line. */
function endOfBracket(text: string, from: number): number | undefined {
  const [bracket] = /^\[\^?\]?(?:\[([:.=])(?:(?!\1\])[^\n])*\1\]|[^\]\n])*\]/.exec(text.slice(from)) ?? [];
  return bracket === undefined ? undefined : from + bracket.length - 1;
}

/** `getline`, `system`, pipes, redirections of `print`, the environment and other files, even in quotes. */
function isQuietAwk(text: string): boolean {
  const banned = /system|getline|ENVIRON|ARGV|ARGC|PROCINFO|SYMTAB|FUNCTAB|close|fflush|@|(?<!\|)\|(?!\|)/;
  const print = text.indexOf("print");
  return !banned.test(text) && (print < 0 || !text.slice(print).includes(">"));
}
