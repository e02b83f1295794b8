import { findMembers } from "../../../core/src/wire/mod.ts";

/** Why the gate did not do what the page wanted: a problem of RFC 9457, or a gate that cannot be reached. */
export interface Problem {
  /** 0 if the gate did not answer. */
  readonly status: number;
  readonly code: string;
  /** One sentence for the person. */
  readonly detail: string;
}

export type RouteAnswer<Value> =
  | { readonly ok: true; readonly value: Value; readonly raw: RawTexts }
  | { readonly ok: false; readonly problem: Problem };

/** The texts of the members that the page must show with their characters as they were sent. */
export type RawTexts = Readonly<Record<string, string>>;

/** How this gate's commands are typed, such as `npx svc-gate`. */
const typed: string = document.documentElement.dataset["command"] ?? "svc-gate";

/** Returns a command of the gate as it is typed on the gate's machine. */
export function commandText(words: string): string {
  return `${typed} ${words}`;
}

/** The path of the console, such as `/t/acme/console`. */
export const base: string = document.documentElement.dataset["base"] ?? "/console";

const stored = `svc-gate ${base}`;

/**
 * The page's own secret. A browser sends a cookie to every port of a host, but this origin's storage is nobody else's,
 * so the gate answers only if both come together.
 */
export function pageSecret(): string | undefined {
  return localStorage.getItem(stored) ?? undefined;
}

export function keepPageSecret(secret: string | undefined): void {
  if (secret === undefined) localStorage.removeItem(stored);
  else localStorage.setItem(stored, secret);
}

let skewMs = 0;

/** The time of the gate, in milliseconds since the epoch. The clock of this machine may be wrong. */
export function gateNow(): number {
  return Date.now() + skewMs;
}

/** The field Date has whole seconds, so a small difference does not count. */
function noteTime({ headers: fields }: Response): void {
  const difference = Date.parse(fields.get("date") ?? "") - Date.now();
  if (!Number.isNaN(difference)) skewMs = Math.abs(difference) < 2000 ? 0 : difference;
}

interface AskOptions {
  /** The JSON text of a body: the request is then a POST. */
  readonly body?: string;
  /** True if the page asks by itself: this does not keep the session open. */
  readonly background?: boolean;
  /** Members of the answer that are not parsed; their texts are in `raw`. */
  readonly raw?: readonly string[];
}

/** Asks one of the gate's routes, such as `/approvals`, with the session. */
export function ask<Value>(path: string, request: AskOptions = {}): Promise<RouteAnswer<Value>> {
  return askAt<Value>(`${base}/api${path}`, request);
}

/** Asks a route of the console itself, such as `/session`. */
export function askConsole<Value>(path: string, request: AskOptions = {}): Promise<RouteAnswer<Value>> {
  return askAt<Value>(base + path, request);
}

export function headers({ background = false }: Pick<AskOptions, "background"> = {}): Record<string, string> {
  const secret = pageSecret();
  return {
    "x-svc-console": "1",
    ...(secret !== undefined && { "x-svc-session": secret }),
    ...(background && { "x-svc-background": "1" }),
  };
}

/** The session, whose own refusal is the answer to whether it still exists. */
const sessionUrl = `${base}/session`;

let whenRefused = (): void => undefined;

/** Calls a function when the gate refuses a request as one without a session: the session may have ended. */
export function onRefused(listener: () => void): void {
  whenRefused = listener;
}

/** Says that the gate has refused a request as one without a session. */
export function reportRefusal(): void {
  if (pageSecret() !== undefined) whenRefused();
}

async function askAt<Value>(url: string, request: AskOptions): Promise<RouteAnswer<Value>> {
  const { body, raw = [] } = request;
  const found = await fetch(url, {
    ...(body !== undefined && { method: "POST", body }),
    headers: { ...headers(request), ...(body !== undefined && { "content-type": "application/json" }) },
    redirect: "error",
  }).catch(() => undefined);
  if (found === undefined) return { ok: false, problem: noAnswer };
  noteTime(found);
  const text = await found.text().catch(() => "");
  if (!found.ok) {
    if (found.status === 401 && url !== sessionUrl) reportRefusal();
    return { ok: false, problem: problemIn(text, found.status) };
  }
  const isJson = found.headers.get("content-type")?.startsWith("application/json") === true;
  const read = isJson ? parse(text, raw) : { value: text, raw: {} };
  return { ok: true, value: read.value as Value, raw: read.raw };
}

const noAnswer: Problem = {
  status: 0,
  code: "no-answer",
  detail: "The gate does not answer. Nothing was changed, as far as this page knows: look again when it is back.",
};

function problemIn(text: string, status: number): Problem {
  try {
    const { code, detail } = JSON.parse(text) as Pick<Problem, "code" | "detail">;
    return { status, code, detail: sentence(detail) };
  } catch {
    return { status, code: "", detail: `The gate answered ${status}.` };
  }
}

/** The gate's sentences start with a small letter and have no full stop. Its texts of several lines are complete. */
export function sentence(text: string): string {
  if (text.includes("\n")) return text;
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?\n]$/.test(first) ? first : `${first}.`;
}

/** Parses an answer. A number of a call keeps its characters, so the members in `raw` are cut out and never parsed. */
function parse(text: string, raw: readonly string[]): { readonly value: unknown; readonly raw: RawTexts } {
  const spans = findMembers(
    text,
    raw.map((name) => [name]),
  );
  const texts: Record<string, string> = {};
  let rest = "";
  let from = 0;
  const inOrder = raw.map((name, at) => ({ name, span: spans[at] })).filter(({ span }) => span !== undefined);
  for (const { name, span } of inOrder.toSorted((one, other) => (one.span?.from ?? 0) - (other.span?.from ?? 0))) {
    if (span === undefined) continue;
    texts[name] = text.slice(span.from, span.to);
    rest += `${text.slice(from, span.from)}null`;
    from = span.to;
  }
  return { value: JSON.parse(rest + text.slice(from)) as unknown, raw: texts };
}

/** Writes the query of a path; absent values are left out. */
export function queryText(values: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values))
    if (value !== undefined && value !== "") query.set(name, String(value));
  const text = query.toString();
  return text === "" ? "" : `?${text}`;
}
