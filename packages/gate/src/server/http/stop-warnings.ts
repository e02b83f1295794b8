import type { StopScope } from "../../../../core/src/approvals/mod.ts";
import { nearest, quote } from "../../../../core/src/wire/mod.ts";
import type { Gate } from "../service/gate.ts";
import type { Service } from "../service/service.ts";

interface StopLedger {
  readonly service: Service;
  readonly gate: Gate;
  readonly tenant: string | null;
}

/**
 * Says which names of a stop nobody knows, and which name is near. The stop is in force all the same: a later key, tool or
 * session may have the name.
 */
export async function warningsOf(scope: StopScope, ledger: StopLedger): Promise<readonly string[]> {
  if (scope === "all") return [];
  if ("tools" in scope) {
    const known = listKnownTools(ledger);
    return scope.tools
      .filter((tool) => !known.has(tool))
      .map((tool) => unknown("tool", "is in a contract that this gate has open", tool, known));
  }
  const { keys } = ledger.service;
  await keys.catchUp(); // Another gate may have made the key.
  const { tenant } = ledger;
  const key = "key" in scope ? scope.key : scope.session.key;
  if (keys.known.findState({ name: key, tenant }) === undefined) {
    const all = (await keys.list()).filter(({ record }) => record.tenant === tenant);
    return [
      unknown(
        "key",
        "exists",
        key,
        all.map(({ record }) => record.name),
      ),
    ];
  }
  return "key" in scope ? [] : sessionWarnings(scope.session, ledger);
}

/** The tools of the contracts that are open, with their aliases. A stop of the root is in force in its tenants too. */
function listKnownTools({ service, gate, tenant }: StopLedger): ReadonlySet<string> {
  const others = tenant === null ? [...(service.tenants?.open.values() ?? [])].map(({ gate: open }) => open) : [];
  return new Set(
    [gate, ...others].flatMap(({ policy: { policySet } }) => [...policySet.tools.keys(), ...policySet.aliases.keys()]),
  );
}

/** How many rows of a key are read for the names of its sessions. A row may be large, and the answer must come at once. */
const readMax = 20;

async function sessionWarnings(
  { id, key }: { readonly id: string; readonly key: string },
  { gate }: StopLedger,
): Promise<readonly string[]> {
  const query = { before: Number.MAX_SAFE_INTEGER, key, kind: "check" as const };
  const [found] = await collectReceipts(gate.ledger.rows.receipts({ ...query, session: id, limit: 1 }));
  if (found !== undefined) return [];
  const rows = await collectReceipts(gate.ledger.rows.receipts({ ...query, limit: readMax }));
  const sessions = rows.flatMap(
    (json) => (JSON.parse(json) as { readonly session_id: string | null }).session_id ?? [],
  );
  return [unknown("session", `of the key ${quote(key)} has a row`, id, sessions)];
}

async function collectReceipts(slices: ReturnType<Gate["ledger"]["rows"]["receipts"]>): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const slice of slices) found.push(...slice.map(({ json }) => json));
  return found;
}

function unknown(kind: string, wants: string, name: string, known: Iterable<string>): string {
  const near = nearest(name, known);
  const hint = near === undefined ? "" : `; did you mean ${quote(near)}?`;
  return `no ${kind} with the name ${quote(name)} ${wants}${hint}`;
}
