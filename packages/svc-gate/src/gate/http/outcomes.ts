import type { FastifyReply } from "fastify";
import { outcomeRows } from "../../ledger/entry/mod.ts";
import {
  bad,
  Decimal,
  good,
  quote,
  refuse,
  typeName,
  utf8Bytes,
  type Json,
  type JsonObject,
  type Refusal,
  type Result,
} from "../../wire/mod.ts";
import type { Key } from "../keys/keys.ts";
import type { AskedOutcome, Reported } from "../outcomes/desk.ts";
import { readMembers, sendJson } from "../request/body.ts";
import { refuseWith } from "./refusing.ts";
import type { RouteCall } from "./route.ts";

const refBytesMax = 256;
const digitsMax = 40;

/** Handles POST /outcomes: records what became of a call that was let through. */
export async function reportOutcome({ gate, key, request, reply }: RouteCall): Promise<FastifyReply> {
  const body = readMembers(request.body, ["receipt", "status", "amount", "ref"]);
  const asked = body.ok ? askedOutcome(body.value) : body;
  if (!asked.ok) return refuseWith(reply, asked.problem);
  const { name, scopes } = key as Key;
  const reporter = { name, mayLower: scopes.has("outcome") && !scopes.has("check") };
  const reported = await gate.outcomes.report(reporter, asked.value);
  if (!reported.ok) return refuseWith(reply, reported.problem);
  return sendJson(reply, JSON.stringify(outcomeJson(asked.value, reported.value)));
}

function outcomeJson({ seq, hash }: AskedOutcome, { outcome, receipt, warnings }: Reported): object {
  return {
    status: outcome.status,
    receipt: { seq, hash },
    outcome: { seq: receipt.seq, hash: receipt.hash },
    ...(warnings.length > 0 && { warnings }),
  };
}

/** Reads the members of a body of POST /outcomes. */
export function askedOutcome(members: JsonObject): Result<AskedOutcome, Refusal> {
  const [receipt, status, amount, ref] = ["receipt", "status", "amount", "ref"].map((name) => members.get(name));
  const place = receiptIn(receipt);
  if (!place.ok) return place;
  const known = outcomeRows.outcomeStatuses.find((each) => each === status);
  if (known === undefined) return bad(invalid('"status" must be done, failed or unknown'));
  const text = amount === undefined ? undefined : plainDecimal(amount);
  if (amount !== undefined && text === undefined)
    return bad(invalid(`"amount" must be a number that is not negative, of at most ${digitsMax} digits`));
  if (text !== undefined && known !== "done") return bad(invalid('"amount" is for the status done'));
  if (ref !== undefined && (typeof ref !== "string" || ref === "" || utf8Bytes(ref) > refBytesMax))
    return bad(invalid(`"ref" must be a string of 1 to ${refBytesMax} bytes`));
  return good({ ...place.value, status: known, amount: text, ref });
}

function receiptIn(receipt: Json | undefined): Result<Pick<AskedOutcome, "hash" | "seq">, Refusal> {
  if (!(receipt instanceof Map))
    return bad(invalid(`"receipt" must be the object of the check's answer, not ${typeName(receipt ?? null)}`));
  const members = receipt as JsonObject;
  const stranger = [...members.keys()].find((name) => !["seq", "hash", "request"].includes(name));
  if (stranger !== undefined) return bad(invalid(`"receipt" has no member ${quote(stranger)}`));
  const [seq, hash] = [members.get("seq"), members.get("hash")];
  if (typeof seq !== "number" || !Number.isSafeInteger(seq) || seq < 1)
    return bad(invalid('"seq" of the receipt must be a whole number from 1'));
  if (typeof hash !== "string" || !/^[0-9a-f]{64}$/.test(hash))
    return bad(invalid('"hash" of the receipt must be 64 hex digits'));
  return good({ seq, hash });
}

/** The decimal of a number, without an exponent; undefined if it is not a number, negative or too long. */
export function plainDecimal(amount: Json): string | undefined {
  if (typeof amount !== "number" && !(amount instanceof Decimal)) return undefined;
  const written = typeof amount === "number" ? String(amount) : amount.text;
  const isPlain = /^(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$/.test(written) && written.length <= digitsMax;
  return isPlain ? written : undefined;
}

function invalid(sentence: string): Refusal {
  return refuse("invalid-request", sentence);
}
