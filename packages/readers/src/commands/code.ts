/** Programs of small languages, which people write into commands. Each test knows less than the language, and is linear. */
export const isQuietCode: Readonly<Record<"SED" | "AWK" | "JQ", (text: string) => boolean>> = {
  SED: isQuietSed,
  AWK: isQuietAwk,
  JQ: (text) => !/\$ENV|(?<![\w.])(?:env|import|include|input_filename|get_search_list)(?!\w)/.test(text),
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

const sedAddress = String.raw`(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n]|\\[^])*/I?)`;
/** Blanks, an address, and the letter of a command. */
const sedCommand = new RegExp(
  String.raw`^[\s;{}]*(?:${sedAddress}(?:\s*,\s*(?:[+~]?\d+|${sedAddress}))?\s*!?\s*)?(?:[pdqgGhHxnNDPl=sy{}]|$)`,
);

/** The script after a command and its arguments; undefined if these are not understood. */
function afterSedCommand(command: string, rest: string): string | undefined {
  const letter = command.at(-1);
  if (letter !== "s" && letter !== "y") return /^\s*(?:[;}\n{]|$)/.test(rest) ? rest : undefined;
  const separator = rest.charAt(0);
  if (!/^[/|#,:@!%+~]$/.test(separator)) return undefined;
  let at = 1;
  for (let part = 0; part < 2; part += 1) {
    while (at < rest.length && rest.charAt(at) !== separator) at += rest.charAt(at) === "\\" ? 2 : 1;
    if (at >= rest.length) return undefined;
    at += 1;
  }
  const flags = /^[gpiIm0-9]*/.exec(rest.slice(at))?.[0] ?? "";
  const after = rest.slice(at + flags.length);
  return /^\s*(?:[;}\n]|$)/.test(after) ? after : undefined;
}

/** `getline`, `system`, pipes, redirections of `print`, the environment and other files. */
function isQuietAwk(text: string): boolean {
  const bare = text.replace(/"(?:[^"\\\n]|\\[^])*"/g, '""');
  if (/\b(?:system|getline|ENVIRON|ARGV|ARGC|PROCINFO|SYMTAB|FUNCTAB|close|fflush)\b|@|(?<!\|)\|(?!\|)/.test(bare))
    return false;
  return !/\bprintf?\b[^;{}\n]*>/.test(bare);
}
