import { visible, type EndpointJson, type EndpointsJson } from "../../../core/src/wire/mod.ts";
import { io } from "./io.ts";
import { adminPath, askGate, type OperatorOptions, type WorkTarget } from "./operator.ts";
import { BadInput, type Outcome } from "./outcome.ts";

export interface NotifyReplayOptions extends OperatorOptions {
  readonly from: string;
  readonly endpoint?: string;
}

/** `svc-gate notify list` */
export async function listCommand(options: OperatorOptions): Promise<Outcome> {
  const body = await askGate(targetOf(options), "GET", adminPath(options.tenant, "notify"));
  if (options.json) return { exitCode: 0, text: JSON.stringify(body) };
  const { rows, endpoints } = body as unknown as EndpointsJson;
  if (endpoints.length === 0) return { exitCode: 0, text: noEndpoint };
  return { exitCode: 0, text: endpoints.flatMap((endpoint) => describeEndpoint(endpoint, rows)).join("\n") };
}

function describeEndpoint({ endpoint, row, waiting, died, dead }: EndpointJson, rows: number): readonly string[] {
  const reached = row === null ? "another gate sends" : `through row ${row} of ${rows}`;
  const [first] = waiting.filter(({ due }) => due !== null).toSorted((a, b) => Number(a.due) - Number(b.due));
  const next = first === undefined ? "" : `, the next attempt at ${timeOf(Number(first.due))}`;
  return [
    `${endpoint}: ${reached}; ${waiting.length} waiting${next}; ${died} dead`,
    ...dead.map(({ id, at, why }) => `  ${id}  given up at ${timeOf(at)}: ${visible(why)}`),
  ];
}

/** `svc-gate notify replay` */
export async function replayCommand({ from, endpoint, ...options }: NotifyReplayOptions): Promise<Outcome> {
  if (!/^[1-9][0-9]{0,15}$/.test(from)) throw new BadInput("--from must be the number of a row");
  const wanted = { from: Number(from), ...(endpoint !== undefined && { endpoint }) };
  const body = await askGate(targetOf(options), "POST", adminPath(options.tenant, "notify/replay"), wanted);
  if (options.json) return { exitCode: 0, text: JSON.stringify(body) };
  const names = (body["endpoints"] as readonly string[]).join(", ");
  return { exitCode: 0, text: `all events from row ${from} on are sent again to ${names}; their ids stay the same` };
}

const noEndpoint =
  "no endpoint gets the events of this ledger: a running gate, or this command, reads them from SVC_NOTIFY";

/** In a ledger that no gate serves, the endpoints are those of SVC_NOTIFY. The next gate sends. */
function targetOf(options: OperatorOptions): WorkTarget {
  return { ...options, notify: io().env["SVC_NOTIFY"] || undefined };
}

function timeOf(at: number): string {
  return new Date(at).toISOString();
}
