import {
  bad,
  good,
  limits,
  parseCheckRequest,
  quote,
  refuse,
  typeName,
  type Json,
  type JsonDocument,
  type Refusal,
  type Result,
} from "../../wire/mod.ts";
import type { AskedExplanation } from "../policy/hooks.ts";
import { readDocument, sendJson } from "../request/body.ts";
import { plainDecimal } from "./outcomes.ts";
import { inPlace } from "./reading.ts";
import { refuseWith } from "./refusing.ts";
import type { RouteCall } from "./route.ts";

/** Handles POST /explain: how the verdict on a call or a receipt is reached. It records and counts nothing. */
export async function explain(call: RouteCall): Promise<unknown> {
  const { gate, key, reply, request, service } = call;
  const { explain: explainCall } = service.hooks;
  if (explainCall === undefined)
    return refuseWith(reply, refuse("not-found", "this gate was started without explanations"));
  if (key?.scopes.has("check") === true && !key.scopes.has("receipts"))
    return refuseWith(reply, refuse("forbidden", probing(key.name)));
  const refused = charge(call);
  if (refused !== undefined) return refuseWith(reply, refused);
  return inPlace(call, "explanation", async (read) => {
    const asked = await read.run(() => readAsked(request.body));
    if (!asked.ok) return refuseWith(reply, asked.problem);
    if (typeof asked.value.of === "number" && key?.scopes.has("receipts") !== true)
      return refuseWith(reply, refuse("forbidden", `the key ${quote(key?.name ?? "")} lacks the scope "receipts"`));
    const { policySet, mode } = gate.policy;
    const inForce = { text: policySet.text, mode };
    const wanted = { ...asked.value, key: key?.name ?? "", inForce };
    const explained = await explainCall(wanted, await gate.history(), (workedMs) => read.rest(workedMs));
    return explained.ok ? sendJson(reply, explained.value) : refuseWith(reply, explained.problem);
  });
}

/** An agent could try out calls until one passes. A key with `receipts` sees the counters anyway. */
function probing(name: string): string {
  return `the key ${quote(name)} checks calls, so it needs the scope "receipts" too: use a key without "check"`;
}

/** Charges the gate's rate: compiling a contract takes time. */
function charge({ service, tenant }: RouteCall): Refusal | undefined {
  const charged = service.explainRates.charge({ id: tenant ?? "", tenant, rate: null });
  if (charged?.ok !== false) return undefined;
  const sentence = `this gate explains ${limits.explainsPerSecond} calls a second, or ${limits.explainsBurst} at once`;
  return { ...refuse("rate-limited", sentence), retrySeconds: charged.nextSeconds };
}

type Asked = Omit<AskedExplanation, "inForce" | "key">;

function readAsked(body: unknown): Result<Asked, Refusal> {
  const read = readDocument(body, ["call", "receipt", "contract", "under", "counters"]);
  if (!read.ok) return read;
  const document = read.value;
  const { members } = document;
  if (members.has("call") === members.has("receipt"))
    return bad(invalid('the body must have either "call", the body of a POST /check, or "receipt", a number'));
  const of = members.has("call") ? callIn(document) : receiptIn(members.get("receipt"));
  if (!of.ok) return of;
  const under = underIn(document);
  if (!under.ok) return under;
  const counters = countersIn(members.get("counters"));
  if (!counters.ok) return counters;
  if (under.value === "recorded" && typeof of.value === "string")
    return bad(invalid('"under" can be recorded only with "receipt"'));
  if (under.value === "recorded" && counters.value.size > 0)
    return bad(
      invalid('"counters" cannot change what the receipt recorded: leave it out, or decide under another contract'),
    );
  return good({ of: of.value, under: under.value, counters: counters.value });
}

/** Refuses what POST /check refuses, with the same sentence. */
function callIn(document: JsonDocument): Result<string, Refusal> {
  const call = document.members.get("call");
  if (!(call instanceof Map)) return bad(invalid(`"call" must be an object, not ${typeName(call ?? null)}`));
  const text = document.source("call") ?? "";
  const parsed = parseCheckRequest(text);
  return parsed.ok ? good(text) : parsed;
}

function receiptIn(receipt: Json | undefined): Result<number, Refusal> {
  if (typeof receipt === "number" && Number.isSafeInteger(receipt) && receipt >= 1) return good(receipt);
  return bad(invalid('"receipt" must be the number of a receipt, a whole number from 1'));
}

function underIn({ members }: JsonDocument): Result<Asked["under"], Refusal> {
  const [under, contract] = [members.get("under"), members.get("contract")];
  if (contract !== undefined && under !== undefined) return bad(invalid('"contract" and "under" exclude each other'));
  if (contract !== undefined)
    return typeof contract === "string"
      ? good({ pasted: contract })
      : bad(invalid(`"contract" must be the text of a contract, not ${typeName(contract)}`));
  if (under === undefined || under === "in-force" || under === "recorded") return good(under ?? "in-force");
  return bad(invalid('"under" must be in-force or recorded'));
}

function countersIn(counters: Json | undefined): Result<ReadonlyMap<string, string>, Refusal> {
  if (counters === undefined) return good(new Map());
  if (!(counters instanceof Map)) return bad(invalid(`"counters" must be an object, not ${typeName(counters)}`));
  const given = new Map<string, string>();
  for (const [name, value] of counters as ReadonlyMap<string, Json>) {
    const decimal = plainDecimal(value);
    if (decimal === undefined)
      return bad(invalid(`the counter ${quote(name)} must be a number of 0 or more, without an exponent`));
    given.set(name, decimal);
  }
  return good(given);
}

function invalid(sentence: string): Refusal {
  return refuse("invalid-request", sentence);
}
