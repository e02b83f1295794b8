import { readFile } from "node:fs/promises";
import {
  enteredKey,
  EvaluationError,
  keyMembers,
  readYaml,
  renderDiagnostic,
  Report,
  type ContractInForce,
  type Counter,
  type SourceFile,
  type Value,
  type YamlNode,
  type YamlScalar,
} from "../contract/mod.ts";
import { exactText } from "../contract/ir.ts";
import { countersOf, whyNot, type EnteredCounter } from "../gate/mod.ts";
import { nearest } from "../wire/mod.ts";
import { BadInput } from "./outcome.ts";
import { Sheet, sheetOf } from "./test/sheet.ts";

/** Amounts of one file: they are one row of the ledger, as large as the largest that a call can write. */
const amountsMax = 1000;

/** What was lost, as an operator writes it down. */
export async function readEntered(file: string): Promise<SourceFile> {
  try {
    return { name: file, text: await readFile(file, "utf8") };
  } catch (error) {
    throw new BadInput(`${file} cannot be read: ${whyNot(error)}`);
  }
}

/**
 * Reads the amounts, counter by counter, under the names that they have in what is in force; all that is wrong comes at
 * once, with its place.
 *
 * @throws {BadInput}
 */
export function enteredCounters(source: SourceFile, force: ContractInForce): readonly EnteredCounter[] {
  const report = new Report();
  const root = readYaml(source, report);
  const sheet = root === undefined ? undefined : sheetOf(root, "the file", report);
  const counters = new Map(countersOf(force).map(({ counter }) => [counter.name, counter]));
  const found = sheet === undefined ? [] : new Entries(report, counters).read(sheet);
  if (report.size > 0) {
    const problems = report.sorted([source]).map(renderDiagnostic).join("\n\n");
    throw new BadInput(`${source.name} cannot be entered; nothing was changed\n\n${problems}`);
  }
  return found;
}

class Entries {
  readonly #report: Report;
  readonly #counters: ReadonlyMap<string, Counter>;
  #amounts = 0;

  constructor(report: Report, counters: ReadonlyMap<string, Counter>) {
    this.#report = report;
    this.#counters = counters;
  }

  read({ map }: Sheet): readonly EnteredCounter[] {
    if (map.entries.size === 0) this.#report.add("missing", map.span, "the file names no counter");
    const found = [...map.entries].flatMap(([name, { key, value }]): readonly EnteredCounter[] => {
      const counter = this.#counters.get(name);
      if (counter !== undefined) return [{ counter, moves: this.#moves(counter, value) }];
      const near = nearest(name, this.#counters.keys());
      const known = [...this.#counters.keys()].join(", ");
      const hint = near === undefined ? `there are ${known || "none"}` : `did you mean \`${near}\`?`;
      this.#report.add("unknown-name", key.span, `no counter in force in the last row is called \`${name}\``, hint);
      return [];
    });
    if (this.#amounts > amountsMax)
      this.#report.add("too-large", map.span, `${this.#amounts} amounts; one file enters at most ${amountsMax}`);
    return found;
  }

  #moves(counter: Counter, node: YamlNode): EnteredCounter["moves"] {
    if (node.kind !== "list") {
      const hint = "`[]` where nothing of it was lost";
      this.#report.add("shape", node.span, `what was lost of \`${counter.name}\` is a list`, hint);
      return [];
    }
    const seen = new Set<string>();
    return node.items.flatMap((item) => {
      this.#amounts += 1;
      const move = this.#move(counter, item);
      if (move === undefined) return [];
      if (seen.has(move.key))
        this.#report.add("twice", item.span, `\`${counter.name}\` has this key twice: add them up`);
      seen.add(move.key);
      return [move];
    });
  }

  #move(counter: Counter, item: YamlNode): EnteredCounter["moves"][number] | undefined {
    const sheet = sheetOf(item, "an entry", this.#report);
    if (sheet === undefined) return undefined;
    sheet.known(["key", counter.remembers ? "value" : "amount"]);
    const given = this.#key(counter, sheet);
    const remembered = counter.remembers ? this.#needed(sheet, "value") : undefined;
    const amount = counter.remembers ? "1" : this.#amount(counter, sheet);
    if (this.#report.size > 0 || amount === undefined) return undefined;
    try {
      return { amount, key: enteredKey(counter, given, remembered && valueOf(remembered)) };
    } catch (error) {
      if (!(error instanceof EvaluationError)) throw error;
      this.#report.add("shape", item.span, error.message);
      return undefined;
    }
  }

  /** A value for each part of the counter's key. */
  #key(counter: Counter, sheet: Sheet): ReadonlyMap<string, Value> {
    const members = keyMembers(counter);
    if (members.length === 0 && !sheet.has("key")) return new Map();
    const inner = sheet.inner("key", "`key`")?.known(members);
    if (inner === undefined && !sheet.has("key")) {
      const hint = `\`key: { ${members.map((member) => `${member}: ...`).join(", ")} }\``;
      this.#report.add("missing", sheet.map.span, `\`${counter.name}\` is kept apart by its key`, hint);
    }
    const found = new Map<string, Value>();
    for (const member of inner === undefined ? [] : members) {
      const scalar = this.#needed(inner as Sheet, member);
      if (scalar !== undefined && isName(member) && typeof scalar.value !== "string")
        this.#report.add("shape", scalar.span, `\`${member}\` is a text`, "write it in quotes");
      if (scalar !== undefined) found.set(member, valueOf(scalar));
    }
    return found;
  }

  #needed(sheet: Sheet, name: string): YamlScalar | undefined {
    const scalar = sheet.scalar(name);
    if (scalar === undefined && !sheet.has(name))
      this.#report.add("missing", sheet.map.span, `there is no \`${name}\` in it`);
    if (scalar?.value === null) this.#report.add("shape", scalar.span, `\`${name}\` has no value`);
    return scalar;
  }

  #amount(counter: Counter, sheet: Sheet): string | undefined {
    const scalar = this.#needed(sheet, "amount");
    if (scalar === undefined) return undefined;
    const { value, span } = scalar;
    const isNumber = typeof value === "number" || (typeof value === "object" && value !== null);
    const amount = isNumber ? exactText(value) : "";
    const lawful = counter.sums ? /^(?!0$)\d+(?:\.\d+)?$/ : /^[1-9]\d*$/;
    if (lawful.test(amount)) return amount;
    const what = counter.sums ? "a number above 0" : `a whole number above 0: \`${counter.name}\` counts calls`;
    this.#report.add("shape", span, `\`amount\` is ${what}`, "leave out what nothing was lost of");
    return undefined;
  }
}

/** The name of a session or of an API key, and no fact. */
function isName(member: string): boolean {
  return member === "session" || member === "key";
}

function valueOf({ value }: YamlScalar): Value {
  return value;
}
