import { position, type SourceFile, type Span } from "../../../../readers/src/contract.ts";
import { didYouMean } from "../../../../core/src/wire/mod.ts";
import { findingKinds, isFindingCode, type ContractFinding } from "./finding.ts";

/** `# svc-gate: allow never-decides because ...`, on a line before the finding, or at the end of the finding's line. */
interface Suppression {
  readonly code: string;
  readonly reason: string | undefined;
  readonly span: Span;
  /** The line, from 1, that it applies to. */
  readonly line: number;
}

/**
 * Removes findings that comments allow with a reason. A comment without a reason, or one that allows nothing, is itself
 * a finding.
 */
export function withoutSuppressed(
  findings: readonly ContractFinding[],
  files: readonly SourceFile[],
): readonly ContractFinding[] {
  const suppressions = files.flatMap(suppressionsIn);
  const used = new Set<Suppression>();
  const left = findings.filter((finding) => {
    const found = suppressions.filter((suppression) => speaksOf(suppression, finding));
    for (const suppression of found) used.add(suppression);
    return !found.some(({ reason }) => reason !== undefined);
  });
  const own = suppressions.flatMap((suppression) => problemOf(suppression, used.has(suppression)));
  return [...left, ...own];
}

function speaksOf({ code, span, line }: Suppression, finding: ContractFinding): boolean {
  if (code !== finding.code || span.file !== finding.span.file) return false;
  return [finding.span, finding.within].some(
    (each) => each !== undefined && position(each.file, each.from).line === line,
  );
}

const pattern = /#[ \t]*svc-gate:[ \t]*allow\b[ \t]*(\S*)[ \t]*(.*)$/;
const reasonPattern = /^because[ \t]+(\S.*)$/;

function suppressionsIn(file: SourceFile): readonly Suppression[] {
  const lines = file.text.split(/\r?\n/);
  const found: Suppression[] = [];
  let offset = 0;
  for (const [at, line] of lines.entries()) {
    const match = pattern.exec(line);
    if (match !== null) {
      const from = offset + match.index;
      const target = line.slice(0, match.index).trim() === "" ? nextLine(lines, at) : at + 1;
      found.push({
        code: match[1] ?? "",
        reason: reasonPattern.exec(match[2] ?? "")?.[1],
        span: { file, from, to: offset + line.length },
        line: target,
      });
    }
    offset = file.text.indexOf("\n", offset + line.length) + 1;
  }
  return found;
}

/** The line, from 1, after a comment and the comments directly after it. */
function nextLine(lines: readonly string[], at: number): number {
  const next = lines.findIndex((line, index) => index > at && !/^\s*(?:#.*)?$/.test(line));
  return next + 1;
}

function problemOf({ code, reason, span }: Suppression, isUsed: boolean): readonly ContractFinding[] {
  if (!isFindingCode(code)) {
    const known = findingKinds.map((kind) => kind.code);
    return [
      {
        code: "stale-suppression",
        span,
        message: `the finding \`${code}\` does not exist`,
        hint: didYouMean(code, known, "docs/findings lists them"),
      },
    ];
  }
  if (reason === undefined)
    return [
      {
        code: "suppression-without-reason",
        span,
        message: `the comment does not say why \`${code}\` is allowed here, so the finding stays`,
        hint: `write \`# svc-gate: allow ${code} because ...\``,
      },
    ];
  if (isUsed) return [];
  return [
    {
      code: "stale-suppression",
      span,
      message: `the comment allows \`${code}\`, which does not occur here`,
      hint: "remove the comment, or move it to the line before the finding",
    },
  ];
}
