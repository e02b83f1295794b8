import type { RecordType } from "../value/type.ts";
import type { ToolPlan } from "./compile-tool.ts";
import type { Report } from "../text/diagnostic.ts";
import type { ApprovalDocument } from "../text/document.ts";
import { readMembers } from "./reads.ts";
import { fieldAt } from "./terms.ts";
import { overlaps, pathNames, readPath } from "../../wire/mod.ts";

interface UnboundContext {
  /** The list is the tool's own. A list of a contract is for all its tools. */
  readonly isOfTool: boolean;
  readonly report: Report;
}

/**
 * The members of a tool's input that an approval is not bound to. A member may be left out only if nothing reads it: an
 * optional text.
 */
export function unboundMembers(
  approval: ApprovalDocument | undefined,
  { routes, writers, readers }: Pick<ToolPlan, "readers" | "routes" | "writers">,
  input: RecordType,
  { isOfTool, report }: UnboundContext,
): readonly string[] {
  const pins = pinnedMembers(routes, input, report);
  const listed = approval?.unbound ?? [];
  if (listed.length === 0 || report.size > 0) return [];
  const cores = [
    ...routes.flatMap(({ rules, requires, otherwiseShows }) => [
      ...rules.flatMap(({ when, shows }) => [when, ...shows]),
      ...requires.map(({ when }) => when),
      ...otherwiseShows,
    ]),
    ...writers.flatMap(({ reads }) => [reads.when, ...reads.per, ...reads.values]),
    ...[...readers.values()].flatMap(({ per, since }) => [...per, since]),
  ].filter((core) => core !== undefined && typeof core !== "string");
  const read = [...pins, ...readMembers(cores).map(({ path }) => path)];
  return listed.flatMap(({ text, span }) => {
    const [root, ...path] = pathNames(text) ?? [];
    const member = readPath(text) ?? text;
    const field = root === "input" ? fieldAt(input, path) : undefined;
    // A tool without the member has nothing to leave out.
    if (field === undefined && !isOfTool) return [];
    const problem =
      field === undefined
        ? "is not a member of the tool's input"
        : field.required
          ? "is required, so an approval must be bound to it"
          : field.type.kind !== "string"
            ? "is not a text, so an approval must be bound to it"
            : read.some((other) => overlaps(other, member))
              ? "is read by a rule, a counter or a grant, so an approval must be bound to it"
              : undefined;
    if (problem === undefined) return [member];
    report.add("approval", span, `\`${text}\` ${problem}`);
    return [];
  });
}

/** The members that grants pin. Each must be a member of the tool's input. */
function pinnedMembers(routes: ToolPlan["routes"], input: RecordType, report: Report): readonly string[] {
  return routes.flatMap(({ rules }) =>
    rules.flatMap(({ span, terms }) => {
      const { pin: pins = [] } = terms.grants ?? {};
      for (const pin of pins) {
        const [root, ...path] = pathNames(pin) ?? [];
        if (root !== "input" || fieldAt(input, path) === undefined)
          report.add("approval", span, `\`${pin}\` is not a member of the tool's input, so no grant can pin it`);
      }
      return pins;
    }),
  );
}
