import { createHmac } from "node:crypto";
import { cardPath } from "../../../../core/src/approvals/mod.ts";
import { visible } from "../../../../core/src/wire/mod.ts";
import { eventJson, type LedgerEvent } from "../events/event.ts";
import type { Endpoint } from "./endpoints.ts";

/** What is sent for an event, without a signature. */
export interface WebhookMessage {
  /** The same for each attempt. */
  readonly id: string;
  readonly body: string;
}

/** Where a message comes from. */
export interface Origin {
  /** The ledger's name. */
  readonly log: string;
  /** Null is the root. */
  readonly tenant: string | null;
  /** The address under which people reach this gate; undefined if none is set. */
  readonly publicUrl?: string | undefined;
}

export function formatWebhookMessage(
  event: LedgerEvent,
  { format }: Pick<Endpoint, "format">,
  origin: Origin,
): WebhookMessage {
  const id = `evt_${origin.log.replaceAll(/[^A-Za-z0-9-]/g, "-")}_${event.id}`;
  if (format === "slack") return { id, body: JSON.stringify({ text: slackText(event, origin) }) };
  const { id: _id, type, at, ...data } = eventJson(event);
  const ledger = { ledger: origin.log, ...(origin.tenant !== null && { tenant: origin.tenant }) };
  const timestamp = new Date(event.at).toISOString();
  return { id, body: JSON.stringify({ type, timestamp, data: { event: event.id, at, ...ledger, ...data } }) };
}

/**
 * The header fields of an attempt (Standard Webhooks 1.0). Each attempt is signed with its own time, so that a receiver
 * may refuse old messages.
 *
 * @param now milliseconds since the epoch
 */
export function signedHeaders(
  { id, body }: WebhookMessage,
  { secrets }: Pick<Endpoint, "secrets">,
  now: number,
): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(now / 1000));
  const content = `${id}.${timestamp}.${body}`;
  const signatures = secrets.map((secret) => `v1,${createHmac("sha256", secret).update(content).digest("base64")}`);
  return {
    "content-type": "application/json",
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    ...(signatures.length > 0 && { "webhook-signature": signatures.join(" ") }),
  };
}

/** A line for people. It has nothing to press: a person decides where the whole call is shown. */
function slackText({ type, data }: LedgerEvent, { tenant, publicUrl }: Origin): string {
  const { approval, tool, rules, status, decide_by: decideBy, act } = data;
  const of = tenant === null ? "" : ` of ${tenant}`;
  const parts =
    typeof approval === "string"
      ? [
          `${slackVerbs[type] ?? String(status)}${of}: ${String(tool)}`,
          `rules ${(rules as readonly string[]).join(", ")}`,
          ...(typeof decideBy === "number" ? [`decide until ${new Date(decideBy).toISOString()}`] : []),
          approval,
        ]
      : [`${type}${of}`, String(act)];
  const text = slackEscaped(visible(parts.join("; ")));
  if (publicUrl === undefined || typeof approval !== "string") return text;
  return `${text} <${slackEscaped(`${publicUrl}${cardPath(approval, tenant)}`)}>`;
}

const slackVerbs: Readonly<Record<string, string>> = {
  "approval.opened": "A call waits for a person",
  "approval.expiring": "A call still waits, and its time is nearly over",
};

/** Slack reads `&`, `<` and `>` as markup, such as a mention of everybody. */
function slackEscaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
