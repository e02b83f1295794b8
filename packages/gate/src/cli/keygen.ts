import { readdirSync } from "node:fs";
import { dataFolder, readLedger, type LedgerHistory } from "../ledger/mod.ts";
import {
  isKeyText,
  makeSigningKey,
  readSigningKeys,
  Signer,
  writeSigningKeys,
  type SigningKeys,
} from "../ledger/signing/mod.ts";
import { visible } from "../../../core/src/wire/mod.ts";
import { io } from "./io.ts";
import { BadInput, type Outcome } from "./outcome.ts";

export interface KeygenOptions {
  readonly dataDir: string;
  readonly signingKey: string | undefined;
  readonly rotate: boolean;
  readonly retire: boolean;
  readonly name: string | undefined;
}

/** `svc-gate keygen`: creates the key that signs heads if there is none, and prints its verifier key. */
export async function keygenCommand(options: KeygenOptions): Promise<Outcome> {
  const { dataDir, rotate, retire } = options;
  if (rotate && retire) throw new BadInput("--rotate starts a rotation and --retire ends it: choose one");
  const file = options.signingKey ?? dataFolder.signingKeyOf({ folder: dataDir });
  if (isKeyText(file))
    throw new BadInput("SVC_SIGNING_KEY is the key itself: put it into a file, and name that with --signing-key");
  const before = await readSigningKeys(file);
  const ledger = await onRecord(dataDir);
  if (rotate && before !== undefined) refuseOtherKey(before, ledger, file);
  if (retire && before !== undefined) refuseEarly(before, ledger);
  const isFirst = before === undefined && ledger === undefined && !io().env["SVC_DATABASE_URL"];
  if (isFirst && options.signingKey === undefined) refuseOtherFolder(dataDir);
  const keys = before === undefined ? makeFirst(options, file) : changeKeys(before, options, file);
  if (keys !== before) await writeSigningKeys(file, keys);
  const said = before === undefined ? `made ${file}` : sentence(keys, before, file);
  const what = isFirst
    ? [`  ${dataDir} has no ledger yet: the key is for the ledger that the first start creates`]
    : [];
  return {
    exitCode: 0,
    text: [said, ...what, ...describeKeys(keys, options.name ?? ledger?.name, ledger?.signer)].join("\n"),
  };
}

/**
 * Files that a gate, a restore or an operator may have left in a folder before its first ledger, and files of file
 * systems.
 */
function isLeft(name: string): boolean {
  const isOwn = dataFolder.ownFiles.has(name.replace(/\.lost$/, "")) && !dataFolder.databaseFiles.includes(name);
  return isOwn || name.startsWith(".") || name === "lost+found";
}

/** In the wrong folder no gate finds the key, and anyone who can read that folder can. */
function refuseOtherFolder(dataDir: string): void {
  const [other] = listDataFolder(dataDir).filter((name) => !isLeft(name));
  if (other === undefined) return;
  throw new BadInput(
    `${dataDir} is not a data folder: it contains ${visible(other)}, but no ledger. Name the gate's with --data-dir, or the key's file ` +
      "with --signing-key",
  );
}

function listDataFolder(folder: string): readonly string[] {
  try {
    return readdirSync(folder).toSorted();
  } catch {
    return []; // It is created with the key.
  }
}

function makeFirst({ rotate, retire }: KeygenOptions, file: string): SigningKeys {
  if (rotate || retire) throw new BadInput(`${file} has no key yet`);
  return { current: makeSigningKey(), before: undefined };
}

function changeKeys(keys: SigningKeys, { rotate, retire }: KeygenOptions, file: string): SigningKeys {
  if (retire) return keys.before === undefined ? keys : { current: keys.current, before: undefined };
  if (!rotate) return keys;
  if (keys.before !== undefined)
    throw new BadInput(`${file} still has the previous key: end that rotation first, with --retire`);
  return { current: makeSigningKey(), before: keys.current };
}

function sentence(keys: SigningKeys, before: SigningKeys, file: string): string {
  if (keys === before) return `${file} is there`;
  return keys.before === undefined
    ? `${file} has one key again: from the gate's next start on, the previous key does not sign`
    : `${file} has a new key, and the previous one signs too: restart the gate, which records the new key in the ledger`;
}

/** A rotation starts with the key on record: no gate would start with a new key next to another one. */
function refuseOtherKey(keys: SigningKeys, ledger: OnRecord | undefined, file: string): void {
  if (ledger?.signer === undefined) return;
  const { current, before } = new Signer(ledger.name, keys);
  if (current === ledger.signer || before === ledger.signer) return;
  throw new BadInput(
    `the ledger's heads are signed by the key ${ledger.signer}, but ${file} has ${current}: put the ledger's own key there first; ` +
      "if it is lost, start the gate once with --accept signing-key",
  );
}

/** Only the previous key may sign until a row of the ledger names the new one. */
function refuseEarly({ before }: SigningKeys, ledger: OnRecord | undefined): void {
  if (before === undefined || ledger?.signer === undefined) return;
  if (new Signer(ledger.name, { current: before, before: undefined }).current !== ledger.signer) return;
  throw new BadInput(
    "no gate has recorded the new key yet, so the previous one is still the ledger's: start the gate once, then use --retire",
  );
}

function describeKeys(keys: SigningKeys, known: string | undefined, recorded: string | undefined): readonly string[] {
  if (known === undefined)
    return ["  the verifier key needs the ledger's name: run this again after the gate's first start, or with --name"];
  const signer = new Signer(known, keys);
  const lines = [`  verifier key  ${signer.current}`];
  if (signer.before === undefined) return lines;
  const isDue = signer.before === recorded;
  return [
    `${lines.join("")}${isDue ? "  from the gate's next start on" : ""}`,
    `  ${isDue ? "until then" : "and before"}    ${signer.before}`,
  ];
}

/** The name of the folder's ledger, and the verifier key whose signatures count. */
type OnRecord = Pick<LedgerHistory, "name" | "signer">;

async function onRecord(dataDir: string): Promise<OnRecord | undefined> {
  if (!dataFolder.hasLedger(dataDir)) return undefined;
  await using ledger = await readLedger(dataDir);
  return ledger;
}
