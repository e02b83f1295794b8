import type { GrantJson, GrantOfferJson } from "../../../../core/src/approvals/mod.ts";
import { lengthMs } from "../../server/mod.ts";
import { lengthText, visible } from "../../../../core/src/wire/mod.ts";
import {
  requireAccepted,
  withGateFor,
  refusalOf,
  tenantPath,
  type GateAnswer,
  type GateDoor,
  type OperatorOptions,
} from "../operator.ts";
import { BadInput, type Outcome } from "../outcome.ts";
import { boundLines, onlyWidth, shownText, widthLines } from "./card.ts";

export interface CreateGrantOptions extends OperatorOptions {
  readonly amount: readonly string[];
  readonly anySession: boolean;
  readonly for?: string;
  readonly free: readonly string[];
  readonly pin: readonly string[];
  readonly preview: boolean;
  readonly uses?: string;
  readonly width?: string;
}

/** `svc-gate grants list` */
export async function listGrantsCommand(options: OperatorOptions): Promise<Outcome> {
  const grants = await withGateFor(options, (gate) => grantsOf(gate, options));
  if (options.json) return { exitCode: 0, text: JSON.stringify({ grants }), forPrograms: true };
  return { exitCode: 0, text: grants.length === 0 ? "no grant is in force" : grants.flatMap(describeGrant).join("\n") };
}

async function grantsOf(gate: GateDoor, options: OperatorOptions): Promise<readonly GrantJson[]> {
  return requireAccepted(await gate.ask("GET", pathOf(options)))["grants"] as readonly GrantJson[];
}

function describeGrant(grant: GrantJson): readonly string[] {
  const { amounts, any_session: isAny, decisions, has, id, key, needs, rules, spent, status } = grant;
  const list = (names: readonly string[]): string => (names.length === 0 ? "none" : names.map(visible).join(", "));
  const sessions = isAny ? "every session" : `the session of row ${grant.source}`;
  const people = list(decisions.map(({ person }) => person));
  return [
    `${id}  ${status}${status === "pending" ? `, ${has} of ${needs} people` : ""}, by ${people}`,
    `  ${shownText(grant.tool_name)} by ${visible(key)} in ${sessions}, for ${list(rules)}`,
    `  used ${grant.used} of ${grant.uses} times, until ${new Date(grant.until).toISOString()}`,
    ...Object.entries(amounts).map(([name, most]) => `  ${visible(name)}: ${spent[name] ?? "0"} of ${most}`),
    ...(grant.form === undefined ? [] : [formLine(grant.form)]),
    ...boundLines(grant.form !== undefined, (bound) => (bound === "sums" ? Object.keys(amounts) : grant[bound])),
  ];
}

function formLine({ member, width, shown }: NonNullable<GrantJson["form"]>): string {
  return `  ${visible(member)} of the form: ${shown === null ? `not known any more (${width})` : visible(shown)}`;
}

/** `svc-gate grants create` */
export function createGrantCommand(id: string, options: CreateGrantOptions): Promise<Outcome> {
  return withGateFor(options, async (gate) => {
    const shown = requireAccepted(
      await gate.ask("GET", `${tenantPath(options.tenant)}/approvals/${encodeURIComponent(id)}`),
    );
    const { uses, pin, free, anySession, preview, width } = options;
    const offer = offerIn(shown["grants_allowed"]);
    const wanted = {
      approval: id,
      hash: String(shown["hash"]),
      amounts: amountsOf(options.amount, offer.sums ?? []),
      pins: pin,
      free,
      any_session: anySession,
      ...(uses !== undefined && { uses: Number(uses) }),
      ...(options.for !== undefined && { until: Date.now() + lengthOf(options.for) }),
      ...(preview && { preview }),
    };
    const send = async (own: string | undefined): Promise<GateAnswer> => {
      const answer = await gate.ask("POST", pathOf(options), { ...wanted, ...(own !== undefined && { width: own }) });
      if (answer.status === 200 || answer.status === 201) return answer;
      throw new BadInput(refusalOf(answer));
    };
    const { widths = [] } = offer.form ?? {};
    if (preview && width === undefined && widths.length > 0 && !options.json) {
      const lines: string[] = [];
      for (const each of widths) lines.push(...widthLines(each), `    ${coveredText(await send(each.name))}`);
      return { exitCode: 0, text: [...lines, ...(widths.length === 1 ? [`  ${onlyWidth}`] : [])].join("\n") };
    }
    if (!preview) requireBounds(options, offer);
    const answer = await send(width);
    if (options.json) return { exitCode: 0, text: answer.text ?? "", forPrograms: true };
    if (preview) return { exitCode: 0, text: coveredText(answer) };
    const made = (await grantsOf(gate, options)).filter((grant) => grant.id === answer.body["id"]);
    const waits =
      shown.status === "pending" ? ["the call itself still waits: `svc-gate approvals approve` lets it run"] : [];
    return { exitCode: 0, text: [...made.flatMap(describeGrant), ...waits].join("\n") };
  });
}

/** Nobody grants 10,000 calls by leaving two options out. */
function requireBounds(
  { for: length, uses }: CreateGrantOptions,
  { at_most_ms: ms, uses: most }: Partial<GrantOfferJson>,
): void {
  // The gate says why it permits no grant.
  if (ms === undefined) return;
  const missing = [...(length === undefined ? ["--for"] : []), ...(uses === undefined ? ["--uses"] : [])];
  if (missing.length > 0)
    throw new BadInput(
      `say how long and how often with ${missing.join(" and ")}, such as --for 1h --uses 20; at most ${lengthText(ms)} and ${most} uses`,
    );
  if (lengthOf(length ?? "") > ms) throw new BadInput(`--for is at most ${lengthText(ms)}, which the rules permit`);
}

/** What the gate offers; nothing if the rules permit no grant. */
function offerIn(allowed: unknown): Partial<GrantOfferJson> {
  return Object(allowed) as Partial<GrantOfferJson>;
}

function coveredText({ body: { covers, of } }: GateAnswer): string {
  return `would have covered ${String(covers)} of the last ${String(of)} calls`;
}

/** Reads `--amount 500`, or `--amount input.usd=500` if there are several numbers. */
function amountsOf(written: readonly string[], sums: readonly string[]): Readonly<Record<string, number>> {
  return Object.fromEntries(
    written.map((text) => {
      const at = text.lastIndexOf("=");
      const name = at === -1 ? sums[0] : text.slice(0, at);
      if (name === undefined || (at === -1 && sums.length > 1))
        throw new BadInput(`write --amount NAME=NUMBER, where NAME is one of: ${sums.join(", ") || "none"}`);
      return [name, parseGrantAmount(text.slice(at + 1))];
    }),
  );
}

function parseGrantAmount(text: string): number {
  if (/^(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?$/.test(text)) return Number(text);
  throw new BadInput(`--amount must end with a number such as 500, not ${JSON.stringify(text)}`);
}

function lengthOf(text: string): number {
  const ms = lengthMs(text) ?? 0;
  if (ms > 0) return ms;
  throw new BadInput(`--for must be a time such as 30m or 1h, not ${JSON.stringify(text)}`);
}

/** `svc-gate grants approve` */
export function approveGrantCommand(id: string, options: OperatorOptions): Promise<Outcome> {
  return withGateFor(options, async (gate) => {
    const grant = (await grantsOf(gate, options)).find((each) => each.id === id);
    if (grant === undefined) throw new BadInput(`no grant in force has the id ${id}`);
    const answer = requireAccepted(await gate.ask("POST", `${pathOf(options)}/${id}/approve`, { hash: grant.hash }));
    if (options.json) return { exitCode: 0, text: JSON.stringify(answer), forPrograms: true };
    return {
      exitCode: 0,
      text: `${id} is ${String(answer["status"])}, ${String(answer["has"])} of ${String(answer["needs"])} people`,
    };
  });
}

/** `svc-gate grants revoke` */
export function revokeGrantCommand(id: string, options: OperatorOptions): Promise<Outcome> {
  return withGateFor(options, async (gate) => {
    const answer = requireAccepted(await gate.ask("POST", `${pathOf(options)}/${encodeURIComponent(id)}/revoke`, {}));
    return { exitCode: 0, text: options.json ? JSON.stringify(answer) : `${id} is revoked`, forPrograms: options.json };
  });
}

function pathOf({ tenant }: OperatorOptions): string {
  return `${tenantPath(tenant)}/grants`;
}
