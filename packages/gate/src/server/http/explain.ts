import {
  limits,
  parseCheckRequest,
  quote,
  refuse,
  typeName,
  type Json,
  type JsonDocument,
  type JsonObject,
  type Refusal,
  type Result,
} from "../../../../core/src/wire/mod.ts";
import { gateHistory } from "../policy/active-ledger.ts";
import type { ExplanationRequest } from "../policy/hooks.ts";
import { readBody, requireValue, sendJson, BodyError } from "../request/body.ts";
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
    return refuseWith(reply, refuse("forbidden", describeMissingScope(key.name)));
  const refused = charge(call);
  if (refused !== undefined) return refuseWith(reply, refused);
  return inPlace(call, "explanation", async (read) => {
    const parsed = requireValue(await read.run(() => readExplainRequest(request.body)));
    if (typeof parsed.of === "number" && key?.scopes.has("receipts") !== true)
      return refuseWith(reply, refuse("forbidden", `the key ${quote(key?.name ?? "")} lacks the scope "receipts"`));
    const { policySet, mode } = gate.policy;
    const inForce = { text: policySet.text, mode };
    const wanted = { ...parsed, key: key?.name ?? "", inForce };
    const explained = await explainCall(wanted, await gateHistory(gate.ledger, gate.policy), (workedMs) =>
      read.rest(workedMs),
    );
    return sendJson(reply, requireValue(explained));
  });
}

/** An agent could try out calls until one passes. A key with `receipts` sees the counters anyway. */
function describeMissingScope(name: string): string {
  return `the key ${quote(name)} checks calls, so it needs the scope "receipts" too: use a key without "check"`;
}

/** Charges the gate's rate: compiling a contract takes time. */
function charge({ service, tenant }: RouteCall): Refusal | undefined {
  const charged = service.explainRates.charge({ id: tenant ?? "", tenant, rate: null });
  if (charged?.ok !== false) return undefined;
  const sentence = `this gate explains ${limits.explainsPerSecond} calls a second, or ${limits.explainsBurst} at once`;
  return { ...refuse("rate-limited", sentence), retrySeconds: charged.nextSeconds };
}

type ExplainRequest = Omit<ExplanationRequest, "inForce" | "key">;

/** Refuses what POST /check refuses, with the same sentence. */
function readExplainRequest(body: unknown): Result<ExplainRequest, Refusal> {
  const parsed = readBody(body, ["call", "receipt", "contract", "under", "counters"], parseExplainRequest);
  const call = parsed.ok && typeof parsed.value.of === "string" ? parseCheckRequest(parsed.value.of) : parsed;
  return call.ok ? parsed : call;
}

function parseExplainRequest(members: JsonObject, document: JsonDocument): ExplainRequest {
  if (members.has("call") === members.has("receipt"))
    throw new BodyError('the body must have either "call", the body of a POST /check, or "receipt", a number');
  const of = members.has("call") ? callIn(document) : receiptIn(members.get("receipt"));
  const under = underIn(document);
  const counters = countersIn(members.get("counters"));
  if (under === "recorded" && typeof of === "string")
    throw new BodyError('"under" can be recorded only with "receipt"');
  if (under === "recorded" && counters.size > 0)
    throw new BodyError(
      '"counters" cannot change what the receipt recorded: leave it out, or decide under another contract',
    );
  return { of, under, counters };
}

function callIn(document: JsonDocument): string {
  const call = document.members.get("call");
  if (!(call instanceof Map)) throw new BodyError(`"call" must be an object, not ${typeName(call ?? null)}`);
  return document.source("call") ?? "";
}

function receiptIn(receipt: Json | undefined): number {
  if (typeof receipt === "number" && Number.isSafeInteger(receipt) && receipt >= 1) return receipt;
  throw new BodyError('"receipt" must be the number of a receipt, a whole number from 1');
}

function underIn({ members }: JsonDocument): ExplainRequest["under"] {
  const [under, contract] = [members.get("under"), members.get("contract")];
  if (contract !== undefined && under !== undefined) throw new BodyError('"contract" and "under" exclude each other');
  if (contract !== undefined && typeof contract !== "string")
    throw new BodyError(`"contract" must be the text of a contract, not ${typeName(contract)}`);
  if (contract !== undefined) return { pasted: contract };
  if (under === undefined || under === "in-force" || under === "recorded") return under ?? "in-force";
  throw new BodyError('"under" must be in-force or recorded');
}

function countersIn(counters: Json | undefined): ReadonlyMap<string, string> {
  if (counters === undefined) return new Map();
  if (!(counters instanceof Map)) throw new BodyError(`"counters" must be an object, not ${typeName(counters)}`);
  const given = new Map<string, string>();
  for (const [name, value] of counters as ReadonlyMap<string, Json>) {
    const decimal = plainDecimal(value);
    if (decimal === undefined)
      throw new BodyError(`the counter ${quote(name)} must be a number of 0 or more, without an exponent`);
    given.set(name, decimal);
  }
  return given;
}
