import { useMemo } from "preact/hooks";
import { queryText } from "./gate.ts";
import { useAnswer } from "./parts.ts";
import { prettyText } from "./pretty.ts";

export interface CallExample {
  /** The tools of the contracts in force. */
  readonly tools: readonly string[];
  /** The body of a check from which a person can start; undefined before the answer, and without a tool. */
  readonly call: string | undefined;
}

/** Loads a call of a tool in force; of the first one if the name is empty. A key without the scope `rules` gets none. */
export function useExample(tool: string, mayRead = true): CallExample {
  const { value, raw } = useAnswer<Pick<CallExample, "tools">>(
    mayRead ? `/rules/example${queryText({ tool })}` : undefined,
    ["call"],
  );
  const { call: text = "null" } = raw;
  const call = useMemo(() => (text === "null" ? undefined : prettyText(text)), [text]);
  return { tools: value?.tools ?? [], call };
}
