import { didYouMean, memberBelow, overlaps, pathNames, readPath } from "../../wire/mod.ts";
import { walk, type Core } from "../core/core.ts";
import type { ApprovalTerms } from "../core/terms.ts";
import type { Report, Span } from "../text/diagnostic.ts";
import type { RuleDocument } from "../text/document.ts";
import type { YamlScalar } from "../text/yaml.ts";
import type { RecordType } from "../value/type.ts";
import { commandLineOf, findCommandLine, membersBeside } from "./bounds.ts";
import { fieldAt } from "./terms.ts";

interface FormContext {
  readonly input: RecordType | undefined;
  readonly platform: RecordType | undefined;
  readonly report: Report;
}

const freeMax = 16;

/** A person who approves their own calls does so by what a command line does, so the rule must read it in one way. */
export function checkSelf(
  core: Core,
  { self }: ApprovalTerms,
  { approval, span }: Pick<RuleDocument, "approval" | "span">,
  report: Report,
): void {
  const isRead = [...walk(core)].some((node) => node.op === "call" && node.entry.line !== undefined);
  if (self !== true || !isRead || findCommandLine(core) !== undefined) return;
  report.add(
    "approval",
    approval?.self?.span ?? span,
    "`self` needs a condition that reads the command line of one member, and only by one call of `commands`",
  );
}

/** A grant by form needs one command line that the rule judges, and leaves nothing free that decides the rule. */
export function checkGrantForm(
  core: Core,
  { grants }: ApprovalTerms,
  { approval, span }: Pick<RuleDocument, "approval" | "span">,
  context: FormContext,
): void {
  if (grants?.form === undefined) return;
  const { report } = context;
  const at = approval?.grants?.span ?? span;
  const call = findCommandLine(core);
  const line = call && commandLineOf(call);
  if (call === undefined || line?.startsWith("input.") !== true) {
    report.add(
      "approval",
      at,
      "`by: form` needs a condition that reads one member of the input, and only by one call of `commands`",
      "write the call once, such as `let: { run: commands(input.command, platform.cwd) }`, and read `run.verdict`",
    );
    return;
  }
  if (grants.pin.some((pin) => overlaps(pin, line)))
    report.add("approval", at, `\`${line}\` is what the form is of, so it cannot be in \`pin\``);
  const free = approval?.grants?.free ?? [];
  const many = free[freeMax];
  if (many !== undefined) report.add("approval", many.span, `grants leave at most ${freeMax} members and facts free`);
  const read = membersBeside(core, call);
  for (const scalar of free) checkFree(scalar, line, read, context);
}

function checkFree(
  { text, span }: YamlScalar,
  line: string,
  read: readonly string[],
  { input, platform, report }: FormContext,
): void {
  const [root, ...path] = pathNames(text) ?? [];
  const record = root === "input" ? input : root === "platform" ? platform : undefined;
  if (record === undefined || path.length === 0 || fieldAt(record, path) === undefined) {
    const known = [...membersOf(input, "input"), ...membersOf(platform, "platform")];
    const whole = known.find((member) => pathNames(member)?.at(-1) === text);
    const hint = whole === undefined ? didYouMean(text, known, undefined) : `write \`${whole}\``;
    report.add(
      "approval",
      span,
      `\`${text}\` is neither a member of the tool's input nor a fact of this contract`,
      hint,
    );
    return;
  }
  const member = readPath(text) ?? text;
  if (overlaps(member, line)) report.add("approval", span, `\`${text}\` is what the form is of, so it cannot be free`);
  else if (read.some((each) => overlaps(each, member)))
    report.add(
      "approval",
      span,
      `the rule's condition reads \`${text}\`, so it cannot be free: a later call could be worse than the one that a person saw`,
    );
}

function membersOf(record: RecordType | undefined, root: string): readonly string[] {
  return [...(record?.fields.keys() ?? [])].map((name) => memberBelow(root, name));
}

/** Nobody approves payments of their own agent, and whose data a call uses stays the same in all calls of a grant. */
export function checkTerms(
  { rules }: { readonly rules: readonly { readonly span: Span; readonly terms: ApprovalTerms }[] },
  tool: {
    readonly subject: readonly string[];
    readonly writers: readonly { readonly counter: { readonly sums: boolean } }[];
  },
  report: Report,
): void {
  const movesMoney = tool.writers.some(({ counter }) => counter.sums);
  for (const { span, terms } of rules) {
    if (terms.self === true && movesMoney) report.add("approval", span, noSelf);
    for (const member of terms.grants?.form?.free ?? [])
      if (tool.subject.some((fact) => overlaps(fact, member)))
        report.add(
          "approval",
          span,
          `\`${member}\` is under \`subject\` or keys a counter, so no grant can leave it free`,
        );
  }
}

const noSelf = "`self` is not for a tool whose numbers a counter adds up: another person must approve money";
