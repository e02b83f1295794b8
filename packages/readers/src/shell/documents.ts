import type { Command, CommandExpansionPart, ParsedScript } from "unbash";

/**
 * The text of `$(cat <<'D' ... D)`: `cat` alone with one quoted here-document. The shell removes the newlines at its end.
 * Undefined for any other substitution.
 */
export function documentText({ script, text }: CommandExpansionPart): string | undefined {
  if (script === undefined || !text.startsWith("$(") || script.source !== undefined) return undefined;
  const command = onlyCommand(script);
  if (command?.name?.text !== "cat" || command.prefix.length > 0 || command.args.length > 0) return undefined;
  const [document, ...others] = command.redirects;
  if (document?.type !== "HereDoc" || others.length > 0 || document.descriptor !== undefined) return undefined;
  if (document.operator !== "<<" || document.delimiter?.quoted !== true || document.closing === undefined)
    return undefined;
  const { text: body } = document.body;
  let end = body.length;
  while (body.charAt(end - 1) === "\n") end -= 1;
  return body.slice(0, end);
}

function onlyCommand(script: ParsedScript): Command | undefined {
  const [statement, ...others] = script.commands;
  if (statement === undefined || others.length > 0 || statement.background === true) return undefined;
  return statement.command.type === "Command" ? statement.command : undefined;
}
