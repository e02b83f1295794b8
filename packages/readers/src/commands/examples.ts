import {
  EvaluationError,
  kinds,
  nameOfForm,
  type CommandTable,
  type CommandWidth,
  type Form,
} from "../../../core/src/contract/function.ts";
import { formText } from "../../../core/src/wire/mod.ts";
import { readCommands, type CommandFinding, type TableAnswer } from "./judge.ts";
import { load } from "../shell/shell.ts";

/** An example of a form that the whole table answers otherwise. */
export interface WrongExample {
  readonly form: Form;
  readonly message: string;
}

/** The folder in which examples start: it has no name. */
const folder = ".";

/** Compares the examples of a table with its answers. A counterexample of a form is never ALLOW. */
export async function findWrongExamples(table: CommandTable): Promise<readonly WrongExample[]> {
  await load();
  // The spellings of one written form share its list.
  const written = Map.groupBy(table.forms, ({ examples }) => examples);
  return table.forms.flatMap((form) => [
    ...strayExamples(form, written.get(form.examples) ?? [form]),
    ...form.examples.flatMap((text) => {
      const { verdict, reason } = answerTo(text, table);
      if (verdict === form.verdict) return [];
      return [
        {
          form,
          message: `the example \`${text}\` of \`${nameOfForm(form)}\` is ${verdict}, not ${form.verdict}: ${reason}`,
        },
      ];
    }),
    ...form.counterexamples.flatMap((text) => {
      const { verdict, form: by } = answerTo(text, table);
      if (verdict !== "ALLOW") return [];
      return [
        {
          form,
          message: `the counterexample \`${text}\` of \`${nameOfForm(form)}\` is ALLOW${by === "" ? "" : `, by \`${by}\``}`,
        },
      ];
    }),
  ]);
}

/** Examples without the program of their form say nothing about it. A form may be written for several programs. */
function strayExamples(form: Form, spellings: readonly Form[]): readonly WrongExample[] {
  const programs = spellings.map(({ run }) => run[0] ?? "");
  if (programs.some((name) => name in kinds)) return [];
  return [...form.examples, ...form.counterexamples]
    .filter((text) => !text.split(/[\s;|&()"'`$]+/).some((word) => programs.includes(word)))
    .map((text) => ({
      form,
      message: `the example \`${text}\` of \`${nameOfForm(form)}\` does not run \`${form.run[0]}\``,
    }));
}

function answerTo(text: string, table: CommandTable): Pick<TableAnswer, "verdict" | "reason" | "form"> {
  try {
    return readCommands(text, table, folder).answer();
  } catch (error) {
    if (!(error instanceof EvaluationError)) throw error;
    return { verdict: "BLOCK", reason: error.message, form: "" };
  }
}

/**
 * What a table says about each command of a text, and which later texts are of the same form.
 *
 * @throws {EvaluationError} if the text is in doubt
 */
export async function explainCommands(text: string, table: CommandTable, start: string): Promise<ExplainedCommands> {
  await load();
  const read = readCommands(text, table, start);
  const widths = read.line().widths.map(({ name, open, key }) => ({ name, key, shown: formText(text, open) }));
  return { answer: read.answer(), findings: read.each(), widths };
}

interface ShownWidth extends Pick<CommandWidth, "key" | "name"> {
  /** The text with kinds instead of the words that may differ: `git commit -m TEXT`. */
  readonly shown: string;
}

export interface ExplainedCommands {
  readonly answer: TableAnswer;
  readonly findings: readonly CommandFinding[];
  readonly widths: readonly ShownWidth[];
}
