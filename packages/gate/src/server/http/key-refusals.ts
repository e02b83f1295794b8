import { limits, quote, refuse, type Refusal } from "../../../../core/src/wire/mod.ts";
import { rateFields } from "../keys/rate.ts";
import type { ValidKey } from "../keys/keys.ts";
import type { Service } from "../service/service.ts";
import type { Exchange } from "./exchange.ts";

export const noKey: Refusal = refuse(
  "unauthorized",
  "the API key is missing or wrong: send `Authorization: Bearer <key>`; " +
    "the first key is SVC_API_KEY if the gate was started with it, else the content of first-key in its data folder",
);

/** The refusal of everything that the key of an agent's host may not do, because the agent itself can read that key. */
export function refusalForKind({ kind, name }: Pick<ValidKey, "kind" | "name">): Refusal {
  const may = "it may only check calls, wait for the approvals of its calls, and report their outcomes";
  return refuse("forbidden", `the key ${quote(name)} is of kind "${kind}": ${may}`);
}

/** Charges a request to its key, and adds header fields with the rest of its rate. */
export function refusalForRate({ key, headers }: Exchange, { rates }: Service): Refusal | undefined {
  const charged = key && rates.charge(key);
  if (charged === undefined) return undefined;
  for (const [name, value] of rateFields(charged)) headers[name] = value;
  if (charged.ok) return undefined;
  const { perSecond, burst } = charged.rate;
  const sentence = `the key exceeds its rate of ${perSecond} requests a second, or ${burst} at once; nothing was decided`;
  return { ...refuse("rate-limited", sentence), retrySeconds: charged.nextSeconds };
}

/** Refuses a check before its body is read if the queue is full. */
export function refusalForLoad({ key, request }: Exchange, service: Service): Refusal | undefined {
  if (key === undefined) return undefined;
  const bytes = Number(request.headers["content-length"] ?? 0);
  return service.openGate(key.tenant)?.admission.refusalFor(key.name, Math.min(bytes, limits.bodyBytesMax));
}
