import { nameOfForm, type CommandTable, type Form } from "../../../readers/src/tables.ts";
import type { PolicySet } from "../../../readers/src/contract.ts";

/** How the table of commands of one contract differs. */
export interface FormChange {
  readonly contract: string;
  /** The name of the form, or the part of the table: `generated folder dist`, `variable CI`, `program git`. */
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
  const [old, own] = [partsOf(before), partsOf(after)];
  return [...new Set([...old.keys(), ...own.keys()])].flatMap((name): readonly FormChange[] => {
    if (old.get(name) === own.get(name)) return [];
    const change = !old.has(name) ? "added" : own.has(name) ? "changed" : "removed";
    const direction = change === "removed" && !name.startsWith("program ") ? "stricter" : "weaker";
    return [{ contract, name, change, before: null, after: null, direction }];
  });
}

/** The parts of a table besides its forms, by their names. */
function partsOf(table: CommandTable | undefined): ReadonlyMap<string, string> {
  return new Map([
    ...(table?.generated ?? []).map((folder) => [`generated folder ${folder}`, ""] as const),
    ...[...(table?.variables ?? [])].map((name) => [`variable ${name}`, ""] as const),
    ...[...(table?.programs ?? [])].map(([name, shape]) => [`program ${name}`, JSON.stringify(shape)] as const),
  ]);
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
