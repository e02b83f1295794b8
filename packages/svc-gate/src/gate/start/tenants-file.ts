import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { readYaml, renderDiagnostic, Report, type YamlMap, type YamlNode } from "../../contract/mod.ts";
import { bad, good, isMode, modes, nearest, type Mode, type Result } from "../../wire/mod.ts";
import { whyNot } from "../core/contracts.ts";
import type { Rate } from "../admin/keys/record.ts";
import { parseRate } from "../admission/rate.ts";

/** One tenant, as the file of tenants describes it. */
export interface TenantEntry {
  readonly id: string;
  /** The file of its mandate, or of its one contract. */
  readonly mandate: string;
  /** Undefined: the mode that a reload put in force last, else observe. */
  readonly mode: Mode | undefined;
  /** Checks of each of its keys, such as `200/s`; undefined is what holds for all. */
  readonly rate: Rate | undefined;
}

/** What stands in a path, in a file's name and in a label. */
export const tenantId: RegExp = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

const known = ["mandate", "mode", "rate"];

/**
 * Reads a file of tenants: `tenants:`, then for each id `mandate`, and if it must be `mode` and `rate`. Paths are relative
 * to the file.
 *
 * @returns every error with its source, as text for a terminal
 */
export async function readTenants(name: string): Promise<Result<readonly TenantEntry[], string>> {
  const read = await readFile(name, "utf8").then(good, (error: unknown) =>
    bad(`the file of tenants ${name} cannot be read: ${whyNot(error)}`),
  );
  if (!read.ok) return read;
  const file = { name, text: read.value };
  const report = new Report();
  const tenants = entriesOf(readYaml(file, report), name, report);
  if (report.size === 0) return good(tenants);
  const problems = report.sorted([file]);
  const errors = problems.length === 1 ? "1 error" : `${problems.length} errors`;
  return bad(`${problems.map(renderDiagnostic).join("\n\n")}\n\n${errors} in the file of tenants`);
}

function entriesOf(node: YamlNode | undefined, name: string, report: Report): readonly TenantEntry[] {
  if (node === undefined) return [];
  const tenants = node.kind === "map" ? node.entries.get("tenants")?.value : undefined;
  if (node.kind !== "map" || tenants === undefined) {
    report.add("missing", node.span, "a file of tenants lists them under `tenants:`");
    return [];
  }
  for (const [key, entry] of node.entries)
    if (key !== "tenants") report.add("unknown-key", entry.key.span, `a file of tenants has no \`${key}\``);
  if (tenants.kind !== "map") {
    report.add("shape", tenants.span, "`tenants` is a map from each tenant's id to its settings");
    return [];
  }
  return [...tenants.entries].flatMap(([id, { key, value }]) => {
    if (!tenantId.test(id))
      report.add("name", key.span, "a tenant's id is 1 to 63 of a-z, 0-9 and -, with no - at either end");
    return value.kind === "map" ? [tenantOf(id, value, name, report)] : misshapen(value, report);
  });
}

function misshapen(value: YamlNode, report: Report): readonly TenantEntry[] {
  report.add("shape", value.span, "a tenant has settings: `mandate`, and if it must be `mode` and `rate`");
  return [];
}

function tenantOf(id: string, map: YamlMap, name: string, report: Report): TenantEntry {
  for (const [key, entry] of map.entries) {
    const near = nearest(key, known);
    const hint = near === undefined ? `it has ${known.join(", ")}` : `did you mean \`${near}\`?`;
    if (!known.includes(key)) report.add("unknown-key", entry.key.span, `a tenant has no \`${key}\``, hint);
  }
  const text = (key: string): string | undefined => {
    const value = map.entries.get(key)?.value;
    if (value === undefined) return undefined;
    if (value.kind === "scalar" && typeof value.value === "string" && value.text !== "") return value.text;
    report.add("shape", value.span, `\`${key}\` is a text`);
    return undefined;
  };
  const mandate = text("mandate");
  if (!map.entries.has("mandate")) report.add("missing", map.span, `the tenant \`${id}\` names no mandate`);
  const mode = text("mode");
  const modeNode = map.entries.get("mode")?.value;
  if (mode !== undefined && modeNode !== undefined && !isMode(mode))
    report.add("mode", modeNode.span, `\`${mode}\` is no mode`, `it is one of ${modes.join(", ")}`);
  const rateText = text("rate");
  const rateNode = map.entries.get("rate")?.value;
  const rate = rateText === undefined ? undefined : parseRate(rateText);
  if (rate?.ok === false && rateNode !== undefined) report.add("shape", rateNode.span, rate.problem);
  return {
    id,
    mandate: resolve(dirname(name), mandate ?? ""),
    mode: mode !== undefined && isMode(mode) ? mode : undefined,
    rate: rate?.ok === true ? rate.value : undefined,
  };
}
