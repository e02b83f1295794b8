import { writtenText } from "./evidence.ts";
import type { Leaf } from "./leaf.ts";
import type { Finding } from "./row.ts";

/** The act of the row that records which checks used an approval. */
const useAct = "approval.use";

/** The checks of a walk that were answered more leniently than their verdict and mode, until a row names an approval. */
export class Uses {
  readonly #pending = new Set<number>();

  /**
   * Takes a valid row.
   *
   * @returns the mistake in a row that records uses
   */
  pass(leaf: Leaf, evidence: string): Finding | undefined {
    const { act, kind, seq } = leaf;
    if (kind === "check" && isLenient(leaf)) this.#pending.add(seq);
    if (act !== useAct) return undefined;
    const rows = readUses(evidence, seq);
    for (const row of rows ?? []) this.#pending.delete(row);
    if (rows !== undefined) return undefined;
    const problem = "the row does not list correctly which checks used an approval";
    return {
      code: "use",
      seq,
      problem,
      expected: "uses of earlier rows",
      found: writtenText(evidence, "input") ?? "nothing",
    };
  }

  /** The first check that was answered more leniently than its verdict although no row names an approval for it. */
  get first(): Finding | undefined {
    const [seq] = this.#pending;
    if (seq === undefined) return undefined;
    const problem = "a check was answered more leniently than its verdict, and no row names an approval for it";
    return { code: "use", seq, problem, expected: `a row of act ${useAct}`, found: "none" };
  }
}

/** In observe mode every answer is ALLOW, and in assist mode a BLOCK may become an ESCALATE. */
function isLenient({ answered, mode, verdict }: Leaf): boolean {
  if (mode === "observe") return false;
  if (answered === "ALLOW") return verdict === "BLOCK" || verdict === "ESCALATE";
  return mode === "enforce" && answered === "ESCALATE" && verdict === "BLOCK";
}

const grantUse = /\{"amounts":\{[^{}]*\},"grant":([1-9][0-9]{0,14}),"row":([1-9][0-9]{0,14})\}/g;
const use = /\{"approval":([1-9][0-9]{0,14}),"needed":(?:true|false),"row":([1-9][0-9]{0,14})\}/g;
const grantList = `"grants":\\[${grantUse.source}(?:,${grantUse.source})*\\]`;
const useList = `${use.source}(?:,${use.source})*`;
const uses = new RegExp(`^\\{(?:"uses":\\[${useList}\\]|${grantList},"uses":\\[(?:${useList})?\\])\\}$`);

/** Returns the rows that used an approval or a grant; undefined if the text is not exactly what a gate writes. */
function readUses(evidence: string, seq: number): readonly number[] | undefined {
  const text = writtenText(evidence, "input") ?? "";
  if (!uses.test(text)) return undefined;
  const found = [...text.matchAll(grantUse), ...text.matchAll(use)];
  const pairs = found.map(([, by, row]) => [Number(by), Number(row)] as const);
  return pairs.every(([by, row]) => by < row && row < seq) ? pairs.map(([, row]) => row) : undefined;
}
