import { readFile, stat } from "node:fs/promises";
import { parseLeaf } from "../../../core/src/record/entry/mod.ts";
import { verifyProof, type ProvenRow } from "../../../core/src/record/tree/mod.ts";
import { visible } from "../../../core/src/wire/mod.ts";
import { BadInput, type Outcome } from "../../../gate/src/cli/mod.ts";
import { readKeys, type TrustedKeys } from "../trusted-keys.ts";

/** A leaf, a checkpoint and 63 hashes are much shorter. */
const bytesMax = 2 ** 20;

/** `svc-gate verify FILE.tlog-proof`: offline, with only the file and the keys. */
export async function verifyProofCommand(file: string, trusted: TrustedKeys, json: boolean): Promise<Outcome> {
  if (trusted.key.length === 0)
    throw new BadInput(
      "a proof needs a trusted key: name the ledger's verifier key with --key; its operator has it (`svc-gate keygen`)",
    );
  const keys = { log: readKeys(trusted.key, "log"), witnesses: readKeys(trusted.witness, "witness") };
  if ((await stat(file)).size > bytesMax)
    throw new BadInput(`${file} is not a proof: a proof has at most ${bytesMax} bytes`);
  const proven = verifyProof(await readFile(file, "utf8"), keys.log, keys.witnesses);
  const problem = proven.ok ? strangeLeaf(proven.value) : proven.problem;
  if (!proven.ok || problem !== undefined) {
    const text = json ? JSON.stringify({ ok: false, problem }) : `NOT PROVEN: ${problem}`;
    return { exitCode: 1, text, forPrograms: json };
  }
  return {
    exitCode: 0,
    text: json ? JSON.stringify(toProofJson(proven.value)) : formatProof(proven.value),
    forPrograms: json,
  };
}

/** Why the proven leaf is not a row of this ledger at its number; undefined if it is. */
function strangeLeaf({ leaf, seq, checkpoint }: ProvenRow): string | undefined {
  const read = parseLeaf(leaf);
  if (read === undefined) return "the proven leaf is not a leaf of version 1";
  if (read.seq !== seq || read.log !== checkpoint.origin)
    return `its leaf is row ${read.seq} of ${read.log}, not row ${seq} of ${checkpoint.origin}`;
  return undefined;
}

function signers({ checkpoint }: ProvenRow): readonly string[] {
  return checkpoint.signed.map(({ key, time }) => {
    const at = time === undefined ? "" : ` at ${new Date(time * 1000).toISOString()}`;
    return `${key.name} (${key.id})${at}`;
  });
}

function toProofJson(proven: ProvenRow): object {
  const { seq, hash, leaf, checkpoint } = proven;
  const { origin, size, root } = checkpoint;
  return { ok: true, log: origin, seq, hash, size, root: root.toString("base64"), signed: signers(proven), leaf };
}

function formatProof(proven: ProvenRow): string {
  const { seq, hash, leaf, checkpoint } = proven;
  const { at = 0, verdict, answered, tool, rule } = parseLeaf(leaf) ?? {};
  return [
    `ok: row ${seq} is in the ledger ${checkpoint.origin}, in its tree of ${checkpoint.size} rows`,
    `  hash    ${hash}`,
    `  signed  ${signers(proven).join(", ")}`,
    `  says    ${verdict ?? "an act"} on ${visible(tool ?? "a tool that no contract routes")} by ${visible(rule ?? "-")}, ` +
      `answered ${answered ?? "-"}, at ${new Date(at).toISOString()}`,
  ].join("\n");
}
