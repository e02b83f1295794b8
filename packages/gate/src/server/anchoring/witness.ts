import { hash } from "node:crypto";
import { consistencyProof, openNote } from "../../../../core/src/record/tree/mod.ts";
import { readCosignatures, type Cosignature } from "./cosignatures.ts";
import { hashesOf, readHead, type AnchoredLog, type Head } from "./head.ts";
import { observedIn, unstatedDivergence } from "./observed.ts";
import type { Divergence } from "../../ledger/mod.ts";
import type { Witness, WitnessPolicy } from "./policy.ts";
import { send, replyText, type ServerReply } from "./send.ts";

export type WitnessAnswer =
  | { readonly kind: "cosigned"; readonly head: Head; readonly cosignatures: readonly Cosignature[] }
  /** The witness has observed another history. */
  | { readonly kind: "diverged"; readonly divergence: Divergence }
  | { readonly kind: "failed"; readonly problem: string };

export interface WitnessRequest {
  readonly log: AnchoredLog;
  readonly policy: WitnessPolicy;
  readonly head: Head;
  /** The size that the witness cosigned last; 0 if unknown, and then the witness says it. */
  readonly from: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * A witness answers with the size that it has seen, and the next attempt starts there. Other gates may move it further
 * meanwhile.
 */
const attemptsMax = 4;

/** Asks a witness to cosign a head, or a newer head if it has seen more: C2SP tlog-witness, `add-checkpoint`. */
export async function askWitness(witness: Witness, request: WitnessRequest): Promise<WitnessAnswer> {
  let { head, from } = request;
  for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
    const reply = await post(witness, { ...request, head, from });
    if (typeof reply === "string") return makeFailure(reply);
    if (reply.status === 200) return readCosigned(witness, request, head, reply.text);
    if (reply.status === 422 && from > 0) return proveDivergence(witness, request, head, from);
    if (reply.status !== 409) return makeFailure(whyNot(reply, request.log));
    const seen = sizeOf(reply);
    if (seen === undefined || seen === from)
      return makeFailure(`${replyText(reply)}, which is not a size that it can have seen`);
    // Another gate on the same ledger may have sent a newer head.
    if (seen > head.size) head = await readHead(request.log);
    if (seen > head.size) return proveDivergence(witness, request, head, seen);
    from = seen;
  }
  return makeFailure("it answers with another size each time");
}

async function post(
  { url = "" }: Witness,
  { log, head, from, timeoutMs, signal }: WitnessRequest,
): Promise<ServerReply | string> {
  const proof = await consistencyProof(hashesOf(log), from, head.size);
  const lines = [`old ${from}`, ...proof.map((hashed) => hashed.toString("base64"))];
  const body = `${lines.join("\n")}\n\n${head.note}`;
  const reply = await send(`${url}/add-checkpoint`, { body, timeoutMs, signal });
  return reply.ok ? reply.value : reply.problem;
}

function readCosigned({ key }: Witness, { policy }: WitnessRequest, head: Head, lines: string): WitnessAnswer {
  const cosignatures = readCosignatures(head, lines, { policy, own: key.text });
  return typeof cosignatures === "string" ? makeFailure(cosignatures) : { kind: "cosigned", head, cosignatures };
}

function makeFailure(problem: string): WitnessAnswer {
  return { kind: "failed", problem };
}

function sizeOf({ type, text }: ServerReply): number | undefined {
  return type === "text/x.tlog.size" && /^(?:0|[1-9][0-9]{0,14})\n$/.test(text) ? Number(text) : undefined;
}

function whyNot(reply: ServerReply, { name, verifiers }: AnchoredLog): string {
  const keys = verifiers.map(({ text }) => text).join(" or ");
  if (reply.status === 404) return `it does not know the log ${name}: give it the key ${keys}`;
  if (reply.status === 403) return `it does not accept the signature of ${name}: give it the key ${keys}`;
  return replyText(reply);
}

/** The witness claims another history through a row: asks it for the checkpoint and compares that with the ledger. */
async function proveDivergence(
  witness: Witness,
  request: WitnessRequest,
  head: Head,
  size: number,
): Promise<WitnessAnswer> {
  const { log } = request;
  const by = `witness ${witness.name}`;
  const kind = size > head.size ? "truncated" : "forked";
  const claim: Divergence = { kind, head: { log: log.name, seq: size, by } };
  const note = await servedCheckpoint(witness, request);
  const observed = note === undefined ? undefined : observedIn(note, log, by, cosignedAt(note, witness));
  const proven = observed?.proof === undefined ? undefined : await unstatedDivergence(log, head, observed);
  return { kind: "diverged", divergence: proven ?? claim };
}

/** Returns the latest checkpoint that the witness has cosigned, if the witness serves it. */
async function servedCheckpoint(
  { url = "" }: Witness,
  { log, timeoutMs, signal }: WitnessRequest,
): Promise<string | undefined> {
  const reply = await send(`${url}/${hash("sha256", log.name)}/checkpoint`, { timeoutMs, signal });
  return reply.ok && reply.value.status === 200 ? reply.value.text : undefined;
}

function cosignedAt(note: string, { key }: Witness): number | undefined {
  const opened = openNote(note, [key]);
  return opened.ok ? (opened.value.signed[0].time ?? 0) * 1000 || undefined : undefined;
}
