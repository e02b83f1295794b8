import { EvaluationError, nameOfForm, type CommandTable, type Form } from "../../../core/src/contract/function.ts";
import { judgeEach, judgeText, type CommandFinding, type TableAnswer } from "./judge.ts";
import { load, readShell } from "../shell/shell.ts";

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
  return table.forms.flatMap((form) => [
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

function answerTo(text: string, table: CommandTable): Pick<TableAnswer, "verdict" | "reason" | "form"> {
  try {
    return judgeText(readShell(text, folder), table, folder);
  } catch (error) {
    if (!(error instanceof EvaluationError)) throw error;
    return { verdict: "BLOCK", reason: error.message, form: "" };
  }
}

/**
 * What a table says about each command of a text.
 *
 * @throws {EvaluationError} if the text is in doubt
 */
export async function explainCommands(
  text: string,
  table: CommandTable,
  start: string,
): Promise<{ readonly answer: TableAnswer; readonly findings: readonly CommandFinding[] }> {
  await load();
  const reading = readShell(text, start);
  return { answer: judgeText(reading, table, start), findings: judgeEach(reading, table, start) };
}
