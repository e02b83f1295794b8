import type { FastifyReply } from "fastify";
import { outcomeRows } from "../../../../core/src/record/entry/mod.ts";
import {
  Decimal,
  typeName,
  utf8Bytes,
  type Json,
  type JsonObject,
  type Refusal,
  type Result,
} from "../../../../core/src/wire/mod.ts";
import type { ValidKey } from "../keys/keys.ts";
import type { OutcomeReport, ReportedOutcome } from "../outcomes/desk.ts";
import { readBody, readOrRefuse, requireValue, requireMembers, BodyError } from "../request/body.ts";
import { sendResult } from "./refusing.ts";
import type { RouteCall } from "./route.ts";

const refBytesMax = 256;
const digitsMax = 40;

/** Handles POST /outcomes: records what became of a call that was let through. */
export async function reportOutcome({ gate, key, request, reply }: RouteCall): Promise<FastifyReply> {
  const report = requireValue(readBody(request.body, ["receipt", "status", "amount", "ref"], outcomeIn));
  const { name, scopes } = key as ValidKey;
  const reporter = { name, mayLower: scopes.has("outcome") && !scopes.has("check") };
  const reported = await gate.outcomes.report(reporter, report);
  return sendResult(reply, reported, (done) => outcomeJson(report, done));
}

function outcomeJson({ seq, hash }: OutcomeReport, { outcome, receipt, warnings }: ReportedOutcome): object {
  return {
    status: outcome.status,
    receipt: { seq, hash },
    outcome: { seq: receipt.seq, hash: receipt.hash },
    ...(warnings.length > 0 && { warnings }),
  };
}

/** Reads the members of a body of POST /outcomes. */
export function readOutcome(members: JsonObject): Result<OutcomeReport, Refusal> {
  return readOrRefuse(() => outcomeIn(members));
}

function outcomeIn(members: JsonObject): OutcomeReport {
  const [amount, ref] = [members.get("amount"), members.get("ref")];
  const receipt = receiptIn(members.get("receipt"));
  const status = outcomeRows.outcomeStatuses.find((each) => each === members.get("status"));
  if (status === undefined) throw new BodyError('"status" must be done, failed or unknown');
  const text = amount === undefined ? undefined : plainDecimal(amount);
  if (amount !== undefined && text === undefined)
    throw new BodyError(`"amount" must be a number that is not negative, of at most ${digitsMax} digits`);
  if (text !== undefined && status !== "done") throw new BodyError('"amount" is for the status done');
  if (ref !== undefined && (typeof ref !== "string" || ref === "" || utf8Bytes(ref) > refBytesMax))
    throw new BodyError(`"ref" must be a string of 1 to ${refBytesMax} bytes`);
  return { ...receipt, status, amount: text, ref };
}

function receiptIn(receipt: Json | undefined): Pick<OutcomeReport, "hash" | "seq"> {
  if (!(receipt instanceof Map))
    throw new BodyError(`"receipt" must be the object of the check's answer, not ${typeName(receipt ?? null)}`);
  requireMembers('"receipt"', receipt, ["seq", "hash", "request"]);
  const [seq, hash] = [receipt.get("seq"), receipt.get("hash")];
  if (typeof seq !== "number" || !Number.isSafeInteger(seq) || seq < 1)
    throw new BodyError('"seq" of the receipt must be a whole number from 1');
  if (typeof hash !== "string" || !/^[0-9a-f]{64}$/.test(hash))
    throw new BodyError('"hash" of the receipt must be 64 hex digits');
  return { seq, hash };
}

/** The decimal of a number, without an exponent; undefined if it is not a number, negative or too long. */
export function plainDecimal(amount: Json): string | undefined {
  if (typeof amount !== "number" && !(amount instanceof Decimal)) return undefined;
  const written = typeof amount === "number" ? String(amount) : amount.text;
  const isPlain = /^(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$/.test(written) && written.length <= digitsMax;
  return isPlain ? written : undefined;
}
