import { h, type JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { readJson } from "../../wire/mod.ts";
import type { Explained, Receipt } from "../answers.ts";
import { Area, Button } from "../fields.ts";
import { ask, sentence, type Problem } from "../gate.ts";
import { callMembers, Empty, Panel, Title, Verdict } from "../parts.ts";
import { useRoute } from "../route.ts";
import { reasonText, Text } from "../text.ts";
import { RuleList } from "./rules.ts";

const example = `{
  "tool_name": "payment.send",
  "tool_input": { "amount": 12.5, "currency": "USD", "payee_address": "shop.example", "offer_expires_epoch": 4102444800 },
  "platform_state": { "monthly_spend_usd": 0, "approved_payees": ["shop.example"], "now_epoch": 1767225600 }
}`;

/** Decides a call that is typed here, under the contract in force or one that is pasted. Nothing is recorded. */
export default function ExplainPage(): JSX.Element {
  const { query } = useRoute();
  const [call, setCall] = useState(example);
  const [contract, setContract] = useState("");
  const [counters, setCounters] = useState("");
  const [explained, setExplained] = useState<Explained | undefined>(undefined);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const receipt = query.get("receipt") ?? "";
  useEffect(() => {
    if (/^[1-9][0-9]*$/.test(receipt))
      void callOf(receipt).then((text) => (text === undefined ? undefined : setCall(text)));
  }, [receipt]);
  const send = async (): Promise<void> => {
    const fault = faultIn(call, "The call") ?? faultIn(counters, "The values of counters");
    if (fault !== undefined) {
      setExplained(undefined);
      return setProblem(fault);
    }
    setBusy(true);
    const answer = await ask<Explained>("/explain", { body: bodyOf(call, contract, counters) });
    setBusy(false);
    setProblem(answer.ok ? undefined : answer.problem);
    setExplained(answer.ok ? answer.value : undefined);
  };
  return h(
    "div",
    null,
    h(Title, { text: "Explain" }),
    h("p", { class: "sentence" }, "Try a call. The gate records nothing and counts nothing."),
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        { class: "main" },
        h(
          Panel,
          { title: "The call" },
          h(Area, { id: "call", label: "The body of a check", rows: 10, value: call, onText: setCall, isCode: true }),
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
          h(Button, { kind: "primary", isOff: isBusy, onPress: send }, isBusy ? "Explaining …" : "Explain"),
        ),
      ),
      h(Result, { explained, problem }),
    ),
  );
}

interface ResultProps {
  readonly explained: Explained | undefined;
  readonly problem: Problem | undefined;
}

function Result({ explained, problem }: ResultProps): JSX.Element {
  return h(
    "div",
    { class: "side wide" },
    problem !== undefined && h("pre", { class: "problem", role: "alert" }, h(Text, { of: problem.detail })),
    explained === undefined &&
      problem === undefined &&
      h(Empty, { title: "The result appears here" }, h("p", null, "Each rule with the values of its operands.")),
    explained !== undefined &&
      h(
        Panel,
        { title: "The result" },
        h(
          "p",
          { role: "status" },
          h(Verdict, { of: explained.verdict }),
          " ",
          h(Text, { of: reasonText(explained.reason) }),
        ),
        explained.answered !== explained.verdict &&
          h("p", { class: "quiet" }, `In the gate's mode the answer would be ${explained.answered}.`),
        h(RuleList, { explained }),
      ),
  );
}

/** The call of a receipt as the body of a check, with its characters. */
async function callOf(seq: string): Promise<string | undefined> {
  const answer = await ask<Receipt>(`/receipts/${seq}`, { raw: callMembers });
  if (!answer.ok || answer.raw["tool_input"] === undefined) return undefined;
  const { tool_name: tool, session_id: session } = answer.value;
  const members = [
    `  "tool_name": ${JSON.stringify(tool ?? "")}`,
    `  "tool_input": ${answer.raw["tool_input"]}`,
    ...(typeof session === "string" ? [`  "session_id": ${JSON.stringify(session)}`] : []),
    `  "platform_state": ${answer.raw["platform_state"] ?? "null"}`,
  ];
  return `{\n${members.join(",\n")}\n}`;
}

/** The first mistake in a field, with its place in that field: the gate would name its place in the whole body. */
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
