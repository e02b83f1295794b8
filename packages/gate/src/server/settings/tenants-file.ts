import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { readYaml, renderDiagnostic, Report, type YamlMap, type YamlNode } from "../../../../core/src/contract/mod.ts";
import { bad, didYouMean, good, isMode, modes, type Mode, type Result } from "../../../../core/src/wire/mod.ts";
import { whyNot } from "../errors.ts";
import { parseRate, type Rate } from "./rate.ts";

export interface TenantEntry {
  readonly id: string;
  /** The file of its mandate or of its only contract. */
  readonly mandate: string;
  /** Undefined means the mode that a reload last put in force, else observe. */
  readonly mode: Mode | undefined;
  /** The rate of each of its keys, such as `200/s`; undefined means the rate of the gate. */
  readonly rate: Rate | undefined;
}

/** An id is used in paths, in names of files and in labels. */
export const tenantId: RegExp = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

const known = ["mandate", "mode", "rate"];

/**
 * Reads a tenants file: `tenants:`, and for each id `mandate` and optionally `mode` and `rate`. Paths are relative to
 * the file.
 *
 * @returns the tenants, or all errors with their lines, as text for a terminal
 */
export async function readTenants(name: string): Promise<Result<readonly TenantEntry[], string>> {
  const read = await readFile(name, "utf8").then(good, (error: unknown) =>
    bad(`the tenants file ${name} cannot be read: ${whyNot(error)}`),
  );
  if (!read.ok) return read;
  const file = { name, text: read.value };
  const report = new Report();
  const tenants = entriesOf(readYaml(file, report), name, report);
  if (report.size === 0) return good(tenants);
  const problems = report.sorted([file]);
  const errors = problems.length === 1 ? "1 error" : `${problems.length} errors`;
  return bad(`${problems.map(renderDiagnostic).join("\n\n")}\n\n${errors} in the tenants file`);
}

function entriesOf(node: YamlNode | undefined, name: string, report: Report): readonly TenantEntry[] {
  if (node === undefined) return [];
  const tenants = node.kind === "map" ? node.entries.get("tenants")?.value : undefined;
  if (node.kind !== "map" || tenants === undefined) {
    report.add("missing", node.span, "the tenants file has no `tenants:`");
    return [];
  }
  for (const [key, entry] of node.entries)
    if (key !== "tenants") report.add("unknown-key", entry.key.span, `the tenants file does not allow \`${key}\``);
  if (tenants.kind !== "map") {
    report.add("shape", tenants.span, "`tenants` must be a map from each tenant's id to its settings");
    return [];
  }
  return [...tenants.entries].flatMap(([id, { key, value }]) => {
    if (!tenantId.test(id))
      report.add("name", key.span, "a tenant's id must be 1 to 63 of a-z, 0-9 and -, without - at either end");
    return value.kind === "map" ? [tenantOf(id, value, name, report)] : misshapen(value, report);
  });
}

function misshapen(value: YamlNode, report: Report): readonly TenantEntry[] {
  report.add("shape", value.span, "a tenant must be a map with `mandate`, and optionally `mode` and `rate`");
  return [];
}

function tenantOf(id: string, map: YamlMap, name: string, report: Report): TenantEntry {
  for (const [key, entry] of map.entries) {
    const hint = didYouMean(key, known, `the settings are ${known.join(", ")}`);
    if (!known.includes(key))
      report.add("unknown-key", entry.key.span, `a tenant does not have the setting \`${key}\``, hint);
  }
  const text = (key: string): string | undefined => {
    const value = map.entries.get(key)?.value;
    if (value === undefined) return undefined;
    if (value.kind === "scalar" && typeof value.value === "string" && value.text !== "") return value.text;
    report.add("shape", value.span, `\`${key}\` must be a text`);
    return undefined;
  };
  const mandate = text("mandate");
  if (!map.entries.has("mandate")) report.add("missing", map.span, `the tenant \`${id}\` does not name a mandate`);
  const mode = text("mode");
  const modeNode = map.entries.get("mode")?.value;
  if (mode !== undefined && modeNode !== undefined && !isMode(mode))
    report.add("mode", modeNode.span, `\`${mode}\` is not a mode`, `a mode is one of ${modes.join(", ")}`);
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
