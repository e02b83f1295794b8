import type { WidthJson } from "../../../../core/src/approvals/mod.ts";
import { lengthText, readJson, visible, type Json, type JsonObject } from "../../../../core/src/wire/mod.ts";
import {
  requireAccepted,
  withGateFor,
  refusalOf,
  tenantPath,
  type GateDoor,
  type OperatorOptions,
} from "../operator.ts";
import { BadInput, type Outcome } from "../outcome.ts";
import { boundLines, cardLines, onlyWidth, shownText, widthLines } from "./card.ts";

export interface ListOptions extends OperatorOptions {
  readonly state?: string;
  readonly mine?: boolean;
}

export interface DecisionOptions extends OperatorOptions {
  readonly comment?: string;
  readonly hash?: string;
}

export interface DenyOptions extends DecisionOptions {
  readonly scope?: string;
}

/** `svc-gate approvals list` */
export function listCommand(options: ListOptions): Promise<Outcome> {
  return withGateFor(options, async (gate) => {
    const query = new URLSearchParams({ state: options.state ?? "pending", limit: "100" });
    if (options.mine === true) query.set("mine", "1");
    const answer = await gate.ask("GET", pathOf(options, `?${query.toString()}`));
    const body = requireAccepted(answer);
    if (options.json) return { exitCode: 0, text: answer.text ?? "" };
    const approvals = body["approvals"] as readonly Readonly<Record<string, unknown>>[];
    if (approvals.length === 0) return { exitCode: 0, text: `no call is ${options.state ?? "pending"}` };
    const more = body["next"] === null ? [] : ["there are more: see --json, and `next` in GET /approvals"];
    return { exitCode: 0, text: [...approvals.map(lineOf), ...more].join("\n") };
  });
}

function lineOf(approval: Readonly<Record<string, unknown>>): string {
  const { id, tool_name: tool, sent_as: alias, key, reason, has, needs, status, asked } = approval;
  const times = Number(asked) === 1 ? "" : `, asked ${String(asked)} times`;
  const votes = status === "pending" && Number(needs) > 1 ? `, ${String(has)} of ${String(needs)}` : "";
  const call = `${shownText(String(tool))}${sentText(alias)} by ${visible(String(key))}: ${visible(String(reason))}`;
  return `${String(id)}  ${String(status)}${votes}${times}\n  ${call}`;
}

/** Says under which alias the call was sent; nothing for the tool's own name. */
function sentText(alias: unknown): string {
  return typeof alias === "string" ? `, sent as ${shownText(alias)}` : "";
}

/** `svc-gate approvals show` */
export function showCommand(id: string, options: OperatorOptions): Promise<Outcome> {
  return withGateFor(options, async (gate) => {
    const answer = await gate.ask("GET", pathOf(options, `/${encodeURIComponent(id)}`));
    requireAccepted(answer);
    if (options.json) return { exitCode: 0, text: answer.text ?? "" };
    const read = readJson(answer.text ?? "");
    if (!read.ok) throw new BadInput("the gate's answer cannot be read: is it a gate of this version?");
    return { exitCode: 0, text: card(read.value.members).join("\n") };
  });
}

/** The whole call: what the rule says, and apart from it what the agent sent. */
export function card(approval: JsonObject): readonly string[] {
  const text = (name: string): string => wordOf(approval.get(name));
  const time = (name: string): string => {
    const at = approval.get(name);
    return typeof at === "number" ? new Date(at).toISOString() : "none";
  };
  const rules = (approval.get("rules") as readonly Json[] | undefined) ?? [];
  const decisions = (approval.get("decisions") as readonly JsonObject[] | undefined) ?? [];
  return [
    `${text("id")}: ${text("status")}, ${text("has")} of ${text("needs")} people`,
    `  decide until ${time("decide_by")}; use until ${time("use_by")}; asked ${text("asked") === "1" ? "once" : `${text("asked")} times`}`,
    "",
    "What the rule says",
    `  ${visible(text("reason"))}`,
    `  rules: ${rules.map((rule) => visible(wordOf(rule))).join(", ")}`,
    "",
    "What the agent sent",
    `  tool: ${shownText(text("tool_name"))}${sentText(approval.get("sent_as"))}`,
    `  key: ${shownText(text("key"))}, session: ${approval.get("session_id") === null ? "none" : shownText(text("session_id"))}`,
    "  input:",
    ...cardLines(approval.get("tool_input") ?? null, "    "),
    "",
    approval.get("key_kind") === "host"
      ? "What the platform says (said by the agent's machine)"
      : "What the platform says",
    ...cardLines(approval.get("platform_state") ?? null, "  "),
    ...sameLines(approval.get("same_call")),
    ...offerLines(approval.get("grants_allowed"), approval.get("no_grant")),
    ...(decisions.length === 0 ? [] : ["", "What people said", ...decisions.map(decisionLine)]),
    "",
    `hash ${text("hash")}`,
  ];
}

/** Other questions about the same call. */
function sameLines(others: Json | undefined): readonly string[] {
  const all = (others ?? []) as readonly JsonObject[];
  if (all.length === 0) return [];
  return ["", "The same call was asked before or beside this one", ...all.map((each) => `  ${sameText(each)}`)];
}

function sameText(other: JsonObject): string {
  const [id, status] = ["id", "status"].map((name) => wordOf(other.get(name)));
  const session = other.get("session_id");
  const differs = ((other.get("differs") ?? []) as readonly Json[]).map(wordOf).join(", ");
  const isUnused = other.get("approved") === true;
  return [
    `${id}: ${status}`,
    session === null ? "without a session" : `session ${shownText(wordOf(session))}`,
    ...(differs === "" ? [] : [`another ${differs}`]),
    ...(isUnused ? ["a person approved it, and it was not used"] : []),
  ].join("; ");
}

/** What a grant made from the call may be at most, and what it leaves free; or why there can be none. */
function offerLines(offer: Json | undefined, why: Json | undefined): readonly string[] {
  if (!(offer instanceof Map))
    return typeof why === "string" ? ["", `No grant can be made from it: ${visible(why)}`] : [];
  const of: JsonObject = offer;
  return [
    "",
    "What a grant from it may be (svc-gate grants create)",
    `  at most ${lengthText(Number(of.get("at_most_ms")))} and ${wordOf(of.get("uses"))} uses`,
    ...boundLines(of.has("form"), (bound) => ((of.get(bound) ?? []) as readonly Json[]).map(wordOf)),
    ...formLines(of.get("form")),
  ];
}

/** The widths that a grant can have. */
function formLines(form: Json | undefined): readonly string[] {
  const widths = form instanceof Map ? (((form as JsonObject).get("widths") ?? []) as readonly JsonObject[]) : [];
  if (widths.length === 0) return [];
  const read = (width: JsonObject): WidthJson => ({
    name: wordOf(width.get("name")),
    shown: wordOf(width.get("shown")),
  });
  const lines = widths.map(read).flatMap(widthLines);
  const more = widths.length === 1 ? [`  ${onlyWidth}`] : [];
  return ["", "How far the command line of later calls may differ (--width)", ...lines, ...more];
}

function decisionLine(decision: JsonObject): string {
  const comment = decision.get("comment");
  const said = typeof comment === "string" && comment !== "" ? `: ${shownText(comment)}` : "";
  const [person, word, row] = ["person", "decision", "receipt"].map((name) => wordOf(decision.get(name)));
  return `  ${visible(person ?? "")}: ${word}, in row ${row}${said}`;
}

function wordOf(value: Json | undefined): string {
  if (value === undefined || value === null) return "none";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** `svc-gate approvals approve` */
export function approveCommand(id: string, options: DecisionOptions): Promise<Outcome> {
  const { comment } = options;
  return decide(id, "approve", options, { ...(comment !== undefined && { comment }) });
}

/** `svc-gate approvals deny` */
export function denyCommand(id: string, options: DenyOptions): Promise<Outcome> {
  const { comment, scope } = options;
  return decide(id, "deny", options, { comment: comment ?? "", ...(scope !== undefined && { scope }) });
}

/** The hash is that of the row that asked. Without `--hash` it is that of the call as the gate shows it now. */
function decide(
  id: string,
  decision: "approve" | "deny",
  options: DecisionOptions,
  body: Readonly<Record<string, unknown>>,
): Promise<Outcome> {
  return withGateFor(options, async (gate) => {
    const hash = options.hash ?? (await hashOf(gate, id, options));
    const answer = await gate.ask("POST", pathOf(options, `/${encodeURIComponent(id)}/${decision}`), { hash, ...body });
    if (answer.status !== 200) throw new BadInput(refusalOf(answer));
    if (options.json) return { exitCode: 0, text: answer.text ?? "" };
    const { status, has, needs, receipt } = answer.body;
    const row =
      receipt === null ? "it was so before" : `row ${String((receipt as { readonly seq: number }).seq)} records it`;
    const votes = status === "pending" ? `, ${String(has)} of ${String(needs)} people` : "";
    return { exitCode: 0, text: `${id} is ${String(status)}${votes} (${row})` };
  });
}

async function hashOf(gate: GateDoor, id: string, options: OperatorOptions): Promise<string> {
  const shown = requireAccepted(await gate.ask("GET", pathOf(options, `/${encodeURIComponent(id)}`)));
  return String(shown["hash"]);
}

/** `svc-gate approvals cancel` */
export function cancelCommand(id: string, options: OperatorOptions): Promise<Outcome> {
  return withGateFor(options, async (gate) => {
    const answer = await gate.ask("POST", pathOf(options, `/${encodeURIComponent(id)}/cancel`), {});
    requireAccepted(answer);
    return { exitCode: 0, text: options.json ? (answer.text ?? "") : `${id} is cancelled` };
  });
}

function pathOf({ tenant }: OperatorOptions, rest: string): string {
  return `${tenantPath(tenant)}/approvals${rest}`;
}
