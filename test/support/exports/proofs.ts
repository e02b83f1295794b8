/** Proofs of one row, valid and invalid. */
import { chain, proofFile } from "./fixture.ts";
import { key, log, longFiles, longRows, newKey, type Expected } from "./ground.ts";

interface ProofCase {
  readonly name: string;
  readonly text: string;
  readonly keys: readonly string[];
  readonly witnesses: readonly string[];
  /** The number of the row, for a valid proof. */
  readonly expected: Expected | { readonly leaf_seq: number };
}

const checkpoint = longFiles.get("checkpoint")?.toString() ?? "";
const proofOf = (row: number): string => proofFile(longRows, row - 1, checkpoint);
const otherRows = chain(log, [{}, { members: { tool: "other" } }]);

function oneProof(name: string, text: string, expected: ProofCase["expected"], keys = [key.vkey]): ProofCase {
  return { name: `proof: ${name}`, text, expected, keys, witnesses: [] };
}

const lines = (row: number, change: (all: string[]) => void): string => {
  const all = proofOf(row).split("\n");
  change(all);
  return all.join("\n");
};

export const proofCases: readonly ProofCase[] = [
  ...[1, 2, 256, 257, 299, 300].map((row) => oneProof(`row ${row}`, proofOf(row), { leaf_seq: row })),
  oneProof(
    "another row's siblings",
    lines(3, (all) => all.splice(3, 2, ...proofOf(5).split("\n").slice(3, 5))),
    { row: 3, code: "inclusion" },
  ),
  oneProof(
    "a sibling less",
    lines(3, (all) => all.splice(5, 1)),
    { row: 3, code: "inclusion" },
  ),
  oneProof(
    "a sibling more",
    lines(3, (all) => all.splice(5, 0, ...all.slice(5, 6))),
    { row: 3, code: "inclusion" },
  ),
  oneProof(
    "another index",
    lines(3, (all) => (all[2] = "index 3")),
    { row: 4, code: "seq" },
  ),
  oneProof(
    "an index past the end",
    proofFile(
      [
        ...longRows,
        ...chain(
          log,
          Array.from({ length: 301 }, () => ({})),
        ).slice(300),
      ],
      300,
      checkpoint,
    ),
    { row: 301, code: "inclusion" },
  ),
  oneProof(
    "an index that starts with 0",
    lines(3, (all) => (all[2] = "index 02")),
    { row: 0, code: "proof" },
  ),
  oneProof(
    "another leaf",
    lines(2, (all) => (all[1] = `extra ${otherRows[1]?.leaf.toString("base64")}`)),
    { row: 2, code: "inclusion" },
  ),
  oneProof(
    "no leaf",
    lines(2, (all) => all.splice(1, 1)),
    { row: 0, code: "proof" },
  ),
  oneProof(
    "an empty leaf",
    lines(2, (all) => (all[1] = "extra AA==")),
    { row: 2, code: "leaf" },
  ),
  oneProof(
    "a leaf in another spelling of its base64",
    lines(2, (all) => (all[1] = `${all[1]?.replace(/=*$/, "")}====`)),
    { row: 0, code: "proof" },
  ),
  oneProof(
    "a sibling of 31 bytes",
    lines(3, (all) => (all[4] = Buffer.alloc(31).toString("base64"))),
    { row: 0, code: "proof" },
  ),
  oneProof(
    "another first line",
    lines(3, (all) => (all[0] = "c2sp.org/tlog-proof@v2")),
    { row: 0, code: "proof" },
  ),
  oneProof("nothing", "", { row: 0, code: "proof" }),
  oneProof(
    "no checkpoint",
    lines(3, (all) => all.splice(all.indexOf(""))),
    { row: 0, code: "checkpoint" },
  ),
  oneProof("a checkpoint that a stranger signed", proofOf(3), { row: 0, code: "unsigned" }, [newKey.vkey]),
  oneProof("a checkpoint of another size", proofOf(3).replace("\n300\n", "\n301\n"), { row: 0, code: "signature" }),
];
