import { existsSync } from "node:fs";
import { join } from "node:path";
import { hintedKeys, hintName, verifyExport, type ExportReport } from "../export/mod.ts";
import type { VerifierKey } from "../../../core/src/record/tree/mod.ts";
import { visible } from "../../../core/src/wire/mod.ts";
import { decidedLines, differsText, shownDecided, type DecidedFound } from "../deep/found.ts";
import type { Outcome } from "../../../gate/src/cli/mod.ts";
import { progressStride, showProgress, type ProgressBar } from "../../../gate/src/cli/progress.ts";
import { readKeys, type TrustedKeys } from "../trusted-keys.ts";
import type { VerifyOptions } from "./command.ts";

type VerifyExportFlags = Pick<VerifyOptions, "chain" | "deep" | "json"> & TrustedKeys;

/**
 * Does a folder contain an export, rather than a gate's data? The file with its name may be missing: verification does
 * not need it.
 */
export function isExport(folder: string): boolean {
  return [hintName, "tile"].some((name) => existsSync(join(folder, name)));
}

/** `svc-gate verify FOLDER` for an export: offline, with only the folder and the keys. */
export async function verifyExportCommand(folder: string, options: VerifyExportFlags): Promise<Outcome> {
  const { json, chain, key, witness } = options;
  let progress: ProgressBar | undefined;
  const report = await verifyExport({
    folder,
    keys: key.length === 0 ? await hintedKeys(folder) : readKeys(key, "log"),
    witnesses: readKeys(witness, "witness"),
    chainAlone: chain,
    passed: (row, size) => {
      progress ??= showProgress(size);
      progress.at(row);
    },
  });
  progress?.[Symbol.dispose]();
  const isWhole = report.problem === undefined;
  const deep = options.deep && isWhole ? await decideAgain(folder, report.rows) : undefined;
  const exitCode = isWhole && (deep === undefined || deep.differs === 0) ? 0 : 1;
  const shown = json ? JSON.stringify(toExportJson(report, options, deep)) : shownText(report, options, deep);
  return { exitCode, text: shown, forPrograms: json };
}

async function decideAgain(folder: string, size: number): Promise<DecidedFound> {
  const { decideExportAgain } = await import("../deep/export.ts");
  using progress = showProgress(size);
  return await decideExportAgain(folder, size, (seq) => progress.at(seq - (seq % progressStride)));
}

const formatKey = ({ name, id }: VerifierKey): string => `${name}+${id}`;

/** The output of the verifiers in verify/, and `deep` if it was requested. */
function toExportJson(
  report: ExportReport,
  { key, witness, chain }: VerifyExportFlags,
  deep: DecidedFound | undefined,
): object {
  const { checkpoint, problem, signedBy, cosignedBy, rows, contracts, erasedParts } = report;
  return {
    ok: problem === undefined && (deep === undefined || deep.differs === 0),
    problem: problem ?? null,
    origin: checkpoint?.origin ?? null,
    size: checkpoint?.size ?? null,
    root: checkpoint?.root.toString("hex") ?? null,
    key_given: key.length > 0,
    signed_by: signedBy.map(formatKey),
    cosigned_by: cosignedBy.map(formatKey),
    witnesses: witness.length,
    evidence: !chain,
    rows,
    contracts,
    erased_parts: erasedParts,
    ...(deep === undefined ? {} : { deep: shownDecided(deep) }),
  };
}

function shownText(
  report: ExportReport,
  { key, witness, chain }: VerifyExportFlags,
  deep: DecidedFound | undefined,
): string {
  const { checkpoint, problem, signedBy, cosignedBy, rows, contracts, erasedParts } = report;
  const of = checkpoint === undefined ? "" : ` of ${checkpoint.size}`;
  const verdict =
    problem === undefined
      ? `ok: ${rows} rows, ${chain ? "chain and tree" : "chain, tree and evidence"} verified`
      : `BROKEN${problem.row === 0 ? "" : ` at row ${problem.row}${of}`} (${problem.code}): ${visible(problem.text)}`;
  return [
    (deep && differsText(deep)) ?? verdict,
    `  ledger     ${visible(checkpoint?.origin ?? "not known")}`,
    `  signed     ${visible(signedBy.map(formatKey).join(", ")) || "by nobody who counts"}`,
    ...(witness.length === 0 ? [] : [`  cosigned   by ${cosignedBy.length} of the ${witness.length} witnesses given`]),
    ...(chain ? [] : [`  contracts  ${contracts}`, `  erased     ${erasedParts} parts`]),
    ...(deep === undefined ? [] : decidedLines(deep, 11)),
    ...(key.length > 0
      ? []
      : ["  NO KEY WAS GIVEN: the key in log.json proves nothing about who signed; name the log's with --key"]),
  ].join("\n");
}
