import { visible, type InForceJson } from "../../../core/src/wire/mod.ts";
import { adminPath, findGate, refusalOf, type OperatorOptions } from "./operator.ts";
import { BadInput, type Outcome } from "./outcome.ts";

export interface ReloadOptions extends OperatorOptions {
  readonly mode?: string;
}

/** The answer of POST /admin/reload. */
interface ReloadResponse {
  readonly changed: boolean;
  readonly before: InForceJson;
  readonly now: InForceJson;
  readonly counters: readonly {
    readonly counter: string;
    readonly counts: string;
    readonly receipts: number;
    readonly unknown_through: number | null;
  }[];
}

/** `svc-gate reload`: puts the current files of a serving gate in force. */
export async function reloadCommand(options: ReloadOptions): Promise<Outcome> {
  const { mode, tenant, json, dataDir } = options;
  const gate = await findGate(options);
  if (gate === undefined)
    throw new BadInput(`no gate serves ${dataDir}: name its data folder with --data-dir, or the gate with --url`);
  const answer = await gate.ask("POST", adminPath(tenant, "reload"), mode === undefined ? {} : { mode });
  if (answer.status !== 200) {
    if (!json && answer.body["code"] !== "contract-refused") throw new BadInput(refusalOf(answer));
    const text = json ? JSON.stringify(answer.body) : refusalOf(answer);
    return { exitCode: 2, text, forPrograms: json };
  }
  const reloaded = answer.body as unknown as ReloadResponse;
  return { exitCode: 0, text: json ? JSON.stringify(reloaded) : describeReload(reloaded, tenant) };
}

function describeReload({ changed, before, now, counters }: ReloadResponse, tenant: string | undefined): string {
  // The reload opens a tenant that could not be served, with its present files. No row records a change.
  if (!changed && tenant !== undefined)
    return `tenant ${visible(tenant)} serves ${now.contract} in mode ${now.mode}; no change had to be recorded`;
  if (!changed) return `nothing has changed: ${now.contract} in mode ${now.mode} was in force already`;
  return [
    "put in force",
    `  contract  ${now.contract}${now.contract === before.contract ? ", as before" : `\n  before    ${before.contract}`}`,
    `  mode      ${now.mode}${now.mode === before.mode ? ", as before" : `, before ${before.mode}`}`,
    ...counters.map(({ counter, counts, receipts, unknown_through: through }) => {
      const from = through === null ? counts : `after ${new Date(through).toISOString()}`;
      return `  counter   ${visible(counter)} counts ${from} (${receipts} receipts were folded)`;
    }),
  ].join("\n");
}
