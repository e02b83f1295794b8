import { limits } from "../../wire/mod.ts";
import { position, type Report, type Span } from "../text/diagnostic.ts";
import type { ContractDocument } from "../text/document.ts";
import { checkToolName } from "../text/tool-name.ts";
import type { YamlScalar } from "../text/yaml.ts";

/**
 * The tools of a policy by their other names. One name means one tool: reports an alias that is also a tool, or an alias
 * of another tool, whichever contract says so. Two contracts that list one tool share its aliases.
 */
export function readAliases(documents: readonly ContractDocument[], report: Report): ReadonlyMap<string, string> {
  const tools = new Set(documents.flatMap((document) => [...document.tools.keys()]));
  const found = new Map<string, { readonly tool: string; readonly span: Span }>();
  for (const document of documents) {
    for (const [tool, { aliases }] of document.tools) {
      checkList(tool, aliases, report);
      for (const { text, span } of aliases) {
        const known = found.get(text);
        if (text !== tool && tools.has(text))
          report.add("alias", span, `\`${text}\` is a tool of its own`, "one name means one tool: remove one of them");
        else if (known !== undefined && known.tool !== tool)
          report.add(
            "alias",
            span,
            `\`${text}\` is already an alias of \`${known.tool}\``,
            `one name means one tool; ${describeLine(known.span)} has it first`,
          );
        else if (known === undefined) found.set(text, { tool, span });
      }
    }
  }
  return new Map([...found].map(([alias, { tool }]) => [alias, tool]));
}

function describeLine({ file, from }: Span): string {
  return `line ${position(file, from).line} of ${file.name}`;
}

/** Reports the mistakes that one list has without the others. */
function checkList(tool: string, aliases: readonly YamlScalar[], report: Report): void {
  const seen = new Set<string>();
  for (const { text, span } of aliases) {
    checkToolName(text, span, report);
    if (text === tool)
      report.add("alias", span, `\`${text}\` is the tool's own name`, "`aliases` lists only its other names");
    if (seen.has(text)) report.add("alias", span, `\`${text}\` is listed twice`, "list each name once");
    seen.add(text);
  }
  const past = aliases[limits.toolAliasesMax];
  if (past !== undefined) report.add("too-large", past.span, `\`${tool}\` has over ${limits.toolAliasesMax} aliases`);
}
