import { nameOfForm, type CommandTable, type Form } from "../../../readers/src/tables.ts";
import type { PolicySet } from "../../../readers/src/contract.ts";

/** How the table of commands of one contract differs. */
export interface FormChange {
  readonly contract: string;
  /** The name of the form, or the part of the table: `generated`, `variables`, `programs`. */
  readonly name: string;
  readonly change: "added" | "removed" | "changed";
  /** The verdict of the form before and after; null for a part of the table, and where there is none. */
  readonly before: Form["verdict"] | null;
  readonly after: Form["verdict"] | null;
  /** May a command be ALLOW that was not? A warning may be needless, but none is missing. */
  readonly direction: "weaker" | "stricter";
}

/** Compares the tables of commands of two policies, form by form. */
export function compareForms(before: PolicySet, after: PolicySet): readonly FormChange[] {
  const names = [...new Set([...before.tables.keys(), ...after.tables.keys()])];
  return names.flatMap((contract) => compareTables(contract, before.tables.get(contract), after.tables.get(contract)));
}

function compareTables(
  contract: string,
  before: CommandTable | undefined,
  after: CommandTable | undefined,
): readonly FormChange[] {
  const [old, own] = [formsOf(before), formsOf(after)];
  const removed = [...old].filter(([key]) => !own.has(key)).map(([, form]) => form);
  const added = [...own].filter(([key]) => !old.has(key)).map(([, form]) => form);
  const changes = added.map((form): FormChange => {
    const at = removed.findIndex((other) => nameOfForm(other) === nameOfForm(form));
    const [other] = at < 0 ? [] : removed.splice(at, 1);
    const isStricter = form.verdict !== "ALLOW" && (other === undefined || other.verdict === "ALLOW");
    return {
      contract,
      name: nameOfForm(form),
      change: other === undefined ? "added" : "changed",
      before: other?.verdict ?? null,
      after: form.verdict,
      direction: isStricter ? "stricter" : "weaker",
    };
  });
  const gone = removed.map((form): FormChange => ({
    contract,
    name: nameOfForm(form),
    change: "removed",
    before: form.verdict,
    after: null,
    direction: form.verdict === "ALLOW" ? "stricter" : "weaker",
  }));
  return [...changes, ...gone, ...compareParts(contract, before, after)];
}

/** A longer list lets more pass; any other change may. */
function compareParts(
  contract: string,
  before: CommandTable | undefined,
  after: CommandTable | undefined,
): readonly FormChange[] {
  const parts = [
    ["generated", before?.generated ?? [], after?.generated ?? []],
    ["variables", [...(before?.variables ?? [])], [...(after?.variables ?? [])]],
    ["programs", programTexts(before), programTexts(after)],
  ] as const;
  return parts.flatMap(([name, old, own]): readonly FormChange[] => {
    const isSame = old.length === own.length && old.every((each) => own.includes(each));
    if (isSame) return [];
    const isShorter = name !== "programs" && own.every((each) => old.includes(each));
    const direction = isShorter ? "stricter" : "weaker";
    return [{ contract, name, change: "changed", before: null, after: null, direction }];
  });
}

function programTexts(table: CommandTable | undefined): readonly string[] {
  return [...(table?.programs ?? [])].map((entry) => JSON.stringify(entry));
}

function formsOf(table: CommandTable | undefined): ReadonlyMap<string, Form> {
  return new Map(
    (table?.forms ?? []).map((form) => {
      const { span: _span, source: _source, examples: _examples, counterexamples: _others, does, ...rest } = form;
      return [JSON.stringify({ ...rest, does: [...does] }), form];
    }),
  );
}

/** One line for people. */
export function formChangeText({ contract, name, change, before, after, direction }: FormChange): string {
  const verdicts = before === null && after === null ? "" : ` ${before ?? "none"} -> ${after ?? "none"}`;
  return `${contract}: ${name} ${change}${verdicts} (${direction})`;
}
