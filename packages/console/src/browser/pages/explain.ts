import { h, type JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { readJson, type ExplainedJson, type ReceiptJson } from "../../../../core/src/wire/mod.ts";
import { el } from "../elements.ts";
import { useExample } from "../example.ts";
import { Area, Button, Choice } from "../fields.ts";
import { ask, sentence, type Problem } from "../gate.ts";
import { callMembers, empty, panel, Title, Verdict } from "../parts.ts";
import { prettyText } from "../pretty.ts";
import { useRoute } from "../route.ts";
import { reasonText, SourceText, Text } from "../text.ts";
import { RuleList } from "./rules.ts";

/** Decides a call that is typed here, under the contract in force or one that is pasted. Nothing is recorded. */
export default function ExplainPage(): JSX.Element {
  const { query } = useRoute();
  const [tool, setTool] = useState("");
  const [contract, setContract] = useState("");
  const [counters, setCounters] = useState("");
  const { explained, problem, isBusy, explain } = useExplanation();
  const receipt = query.get("receipt") ?? "";
  const hasReceipt = /^[1-9][0-9]*$/.test(receipt);
  const { call, setTyped, tools } = useCall(tool === "" && hasReceipt ? receipt : undefined, tool);
  return el.div(
    h(Title, { text: "Explain" }),
    el.p({ class: "sentence" }, "Try a call. The gate records nothing and counts nothing."),
    el.div(
      { class: "columns" },
      el.div(
        { class: "main" },
        panel(
          "The call",
          h(Choice, {
            id: "tool",
            label: "Start with a call of",
            value: tool === "" && !hasReceipt ? (tools[0] ?? "") : tool,
            onText: (name) => {
              setTool(name);
              setTyped(undefined);
            },
            choices: [
              ...(hasReceipt ? [["", `receipt ${receipt}`] as const] : []),
              ...tools.map((name) => [name, name] as const),
            ],
          }),
          h(Area, { id: "call", label: "The body of a check", rows: 10, value: call, onText: setTyped, isCode: true }),
          h(Area, {
            id: "contract",
            label: "A contract to try, in YAML (empty: the one in force)",
            rows: 8,
            value: contract,
            onText: setContract,
            isCode: true,
          }),
          h(Area, {
            id: "counters",
            label: 'Values of counters, such as {"attempts": 5} (empty: all are 0)',
            rows: 2,
            value: counters,
            onText: setCounters,
            isCode: true,
          }),
          h(
            Button,
            { kind: "primary", isOff: isBusy, onPress: () => explain(call, contract, counters) },
            isBusy ? "Explaining …" : "Explain",
          ),
        ),
      ),
      h(Result, { explained, problem }),
    ),
  );
}

interface CallDraft {
  /** The body of a check. */
  readonly call: string;
  /** Replaces the call by what a person types; undefined goes back to where it started. */
  readonly setTyped: (text: string | undefined) => void;
  /** The tools of the contracts in force. */
  readonly tools: readonly string[];
}

/** The call that a person changes. It starts from a receipt, or from a call of a tool. */
function useCall(receipt: string | undefined, tool: string): CallDraft {
  const [typed, setTyped] = useState<string | undefined>(undefined);
  const [recorded, setRecorded] = useState<string | undefined>(undefined);
  const { tools, call: example } = useExample(tool);
  useEffect(() => {
    if (receipt !== undefined) void fetchCallText(receipt).then(setRecorded);
  }, [receipt]);
  return { call: typed ?? (receipt === undefined ? example : recorded) ?? "", setTyped, tools };
}

interface ExplainResult {
  readonly explained: ExplainedJson | undefined;
  readonly problem: Problem | undefined;
}

interface Explainer extends ExplainResult {
  readonly isBusy: boolean;
  /** Explains the body of a check. Empty texts are the contract in force, and counters that are 0. */
  readonly explain: (call: string, contract: string, counters: string) => Promise<void>;
}

function useExplanation(): Explainer {
  const [{ explained, problem }, setExplanation] = useState<ExplainResult>({
    explained: undefined,
    problem: undefined,
  });
  const [isBusy, setBusy] = useState(false);
  const explain = async (call: string, contract: string, counters: string): Promise<void> => {
    const fault = faultIn(call, "The call") ?? faultIn(counters, "The values of counters");
    if (fault !== undefined) return setExplanation({ explained: undefined, problem: fault });
    setBusy(true);
    const answer = await ask<ExplainedJson>("/explain", { body: bodyOf(call, contract, counters) });
    setBusy(false);
    setExplanation({
      explained: answer.ok ? answer.value : undefined,
      problem: answer.ok ? undefined : answer.problem,
    });
  };
  return { explained, problem, isBusy, explain };
}

function Result({ explained, problem }: ExplainResult): JSX.Element {
  return el.div(
    { class: "side wide" },
    problem !== undefined && el.pre({ class: "problem", role: "alert" }, h(SourceText, { of: problem.detail })),
    explained === undefined &&
      problem === undefined &&
      empty("The result appears here", "Each rule with the values of its operands."),
    explained !== undefined &&
      panel(
        "The result",
        el.p(
          { role: "status" },
          h(Verdict, { of: explained.verdict }),
          " ",
          h(Text, { of: reasonText(explained.reason) }),
        ),
        explained.answered !== explained.verdict &&
          el.p({ class: "quiet" }, `In the gate's mode the answer would be ${explained.answered}.`),
        h(RuleList, { explained }),
      ),
  );
}

/** The call of a receipt as the body of a check, with its characters. */
async function fetchCallText(seq: string): Promise<string | undefined> {
  const answer = await ask<ReceiptJson>(`/receipts/${seq}`, { raw: callMembers });
  if (!answer.ok || answer.raw["tool_input"] === undefined) return undefined;
  const { tool_name: tool, session_id: session } = answer.value;
  const members = [
    `"tool_name":${JSON.stringify(tool ?? "")}`,
    `"tool_input":${answer.raw["tool_input"]}`,
    ...(typeof session === "string" ? [`"session_id":${JSON.stringify(session)}`] : []),
    `"platform_state":${answer.raw["platform_state"] ?? "null"}`,
  ];
  return prettyText(`{${members.join(",")}}`);
}

/** The first mistake in a field, with its position in that field: the gate would name its position in the whole body. */
function faultIn(text: string, name: string): Problem | undefined {
  const read = readJson(text.trim() === "" ? "{}" : text);
  if (read.ok) return undefined;
  const { sentence: detail, line, column } = read.problem;
  return { status: 0, code: "", detail: sentence(`${name}, line ${line}, column ${column}: ${detail}`) };
}

/** The call is passed on as it was typed, so that its numbers keep their characters. */
function bodyOf(call: string, contract: string, counters: string): string {
  const members = [
    `"call":${call.trim() === "" ? "{}" : call}`,
    ...(contract.trim() === "" ? [] : [`"contract":${JSON.stringify(contract)}`]),
    ...(counters.trim() === "" ? [] : [`"counters":${counters}`]),
  ];
  return `{${members.join(",")}}`;
}
