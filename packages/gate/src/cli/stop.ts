import { stoppedCalls, type EndedByStop, type StopJson, type StopScope } from "../../../core/src/approvals/mod.ts";
import { visible } from "../../../core/src/wire/mod.ts";
import { adminPath, askGate, tenantPath, type OperatorOptions } from "./operator.ts";
import { BadInput, type Outcome } from "./outcome.ts";

export interface StopOptions extends OperatorOptions {
  readonly why?: string | undefined;
  readonly tool: readonly string[];
  readonly key?: string | undefined;
  readonly session?: string | undefined;
  /** Leaves approvals open, without their votes. */
  readonly keep: boolean;
  readonly list: boolean;
  readonly lift: boolean;
  /** The root's head pin, for a ledger that no gate serves. */
  readonly pin?: string | undefined;
}

/** `svc-gate stop`: blocks calls until the stop is lifted. */
export async function stopCommand(options: StopOptions): Promise<Outcome> {
  const { json, keep, key, lift, list, session, tool, why } = options;
  if (list) {
    const isAlone = !keep && !lift && tool.length === 0 && [key, session, why].every((each) => each === undefined);
    if (!isAlone) throw new BadInput("--list shows all stops in force: leave out the options of a stop, and --lift");
    return listStops(options);
  }
  const scope = scopeOf(options);
  if (!lift && why === undefined) throw new BadInput("say why with --why: the reason of each blocked call repeats it");
  if (lift && keep) throw new BadInput("--keep goes with setting a stop, not with --lift");
  const body = { scope, ...(why !== undefined && { why }), ...(keep && { approvals: "keep" }) };
  const route = adminPath(options.tenant, lift ? "stop/lift" : "stop");
  const done = await askGate(options, "POST", route, body);
  if (json) return { exitCode: 0, text: JSON.stringify(done), forPrograms: true };
  const { seq } = done["receipt"] as { readonly seq: number };
  const calls = visible(stoppedCalls(scope));
  if (lift) {
    const still = done["stops"] as readonly StopJson[];
    const lines = still.length === 0 ? ["no stop is in force"] : ["still in force:", ...still.map(lineOf)];
    return { exitCode: 0, text: [`the stop of ${calls} is lifted; row ${seq} records it`, ...lines].join("\n") };
  }
  const warnings = (done["warnings"] as readonly string[]).map((warning) => `warning: ${visible(warning)}`);
  const ended = endedText(done["ended"] as EndedByStop);
  return { exitCode: 0, text: [`stopped ${calls}; row ${seq} records it`, ...ended, ...warnings].join("\n") };
}

/** What the stop ended, in one line; none if it ended nothing. */
function endedText({ approvals, votes, grants }: EndedByStop): readonly string[] {
  const count = (number: number, one: string, many: string): readonly string[] =>
    number === 0 ? [] : [number === 1 ? one : `${number} ${many}`];
  const parts = [
    ...count(approvals, "1 approval is cancelled", "approvals are cancelled"),
    ...count(votes, "1 approval lost its votes", "approvals lost their votes"),
    ...count(grants, "1 grant ended", "grants ended"),
  ];
  return parts.length === 0 ? [] : [parts.join("; ")];
}

/** The scope that the options name; every call without any. */
function scopeOf({ tool, key, session }: StopOptions): StopScope {
  if (tool.length > 0 && key !== undefined)
    throw new BadInput("a stop is for tools or for a key: leave out --tool or --key");
  if (session !== undefined && key === undefined)
    throw new BadInput("a session belongs to a key: add --key with the name of the key");
  if (tool.length > 0) return { tools: tool };
  if (key === undefined) return "all";
  return session === undefined ? { key } : { session: { id: session, key } };
}

async function listStops(options: StopOptions): Promise<Outcome> {
  const body = await askGate(options, "GET", `${tenantPath(options.tenant)}/stop`);
  const stops = body["stops"] as readonly StopJson[];
  if (options.json) return { exitCode: 0, text: JSON.stringify({ stops }), forPrograms: true };
  return { exitCode: 0, text: stops.length === 0 ? "no stop is in force" : stops.map(lineOf).join("\n") };
}

function lineOf({ at, person, root, scope, why }: StopJson): string {
  const where = root === null ? "" : " at the root";
  const since = `since ${new Date(at).toISOString()}, by ${visible(person)}${where}`;
  return `${visible(stoppedCalls(scope))}\n  ${since}: ${visible(why)}`;
}
