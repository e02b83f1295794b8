import { limits, utf8Bytes } from "../../wire/mod.ts";
import type { Report, Span } from "./diagnostic.ts";

/** Reports a name that no tool can have, whether it is the tool's own name or an alias. */
export function checkToolName(name: string, span: Span, report: Report): void {
  if (name !== "" && !/[*\p{Cc}]/u.test(name) && utf8Bytes(name) <= limits.toolNameBytesMax) return;
  report.add(
    "name",
    span,
    `\`${name}\` is not the name of a tool`,
    `list a tool by its whole name: 1 to ${limits.toolNameBytesMax} bytes, no control characters (\`*\` is for \`on:\` and \`of:\`)`,
  );
}
