import type { CommandTable, Form, FormOption, ProgramShape } from "../../../core/src/contract/function.ts";

/** The forms of one program, prepared for many commands. */
export interface ProgramForms {
  readonly style: ProgramShape["style"];
  /** Options before the words that follow the program, and options at any position. */
  readonly options: readonly FormOption[];
  readonly everywhere: readonly FormOption[];
  /** The forms that are ALLOW, and the stricter ones. */
  readonly whole: readonly Form[];
  readonly strict: readonly Form[];
  /** By the word after the program: the options of the forms that share it. */
  readonly values: ReadonlyMap<string, ValuedOptions>;
}

/** Options whose value is the next word, and all with a value. */
export interface ValuedOptions {
  readonly takeNext: ReadonlySet<string>;
  /** The same before the words of `run`, where an option that the program lists without a value has none. */
  readonly takeNextBefore: ReadonlySet<string>;
  readonly valued: ReadonlySet<string>;
}

/** The options with a value where a form may match: a `-u` of `git status` says nothing about `git push`. */
export function valuesOf({ run }: Form, program: ProgramForms): ValuedOptions {
  return program.values.get(run[1] ?? "") ?? { takeNext: new Set(), takeNextBefore: new Set(), valued: new Set() };
}

const prepared = new WeakMap<CommandTable, ReadonlyMap<string, ProgramForms>>();

/** The forms of a table by their programs; made once for each table. */
export function programsOf(table: CommandTable): ReadonlyMap<string, ProgramForms> {
  const known = prepared.get(table);
  if (known !== undefined) return known;
  const byName = Map.groupBy(table.forms, ({ run }) => run[0] ?? "");
  const programs = new Map([...byName].map(([name, forms]) => [name, prepare(forms, table.programs.get(name))]));
  prepared.set(table, programs);
  return programs;
}

function prepare(forms: readonly Form[], shape: ProgramShape | undefined): ProgramForms {
  const { style = "gnu", options = [], everywhere = [] } = shape ?? {};
  const shared = [...options, ...everywhere];
  const groups = Map.groupBy(forms, ({ run }) => run[1] ?? "");
  return {
    style,
    options,
    everywhere,
    whole: forms.filter(({ verdict }) => verdict === "ALLOW"),
    strict: forms.filter(({ verdict }) => verdict !== "ALLOW"),
    values: new Map([...groups].map(([word, own]) => [word, valuedAmong(shared, own.flatMap(optionsOf))])),
  };
}

function optionsOf({ options, marked }: Form): readonly FormOption[] {
  return [...options, ...marked];
}

function valuedAmong(shared: readonly FormOption[], own: readonly FormOption[]): ValuedOptions {
  const valued = [...shared, ...own].filter(({ value }) => value !== undefined);
  const takeNext = new Set(namesOf(valued.filter(({ isOptional }) => !isOptional)));
  const plain = new Set(namesOf(shared.filter(({ value, isOptional }) => value === undefined || isOptional)));
  return { takeNext, takeNextBefore: takeNext.difference(plain), valued: new Set(namesOf(valued)) };
}

/** All names of these options. */
export function namesOf(options: readonly FormOption[]): readonly string[] {
  return options.flatMap(({ names }) => names);
}
