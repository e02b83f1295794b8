import { parseVerifierKey, signatureTypes, type VerifierKey } from "../../../../core/src/record/tree/mod.ts";
import { bad, good, type Result } from "../../../../core/src/wire/mod.ts";
import { parseUrl } from "./url.ts";

/** A witness cosigns checkpoints after it has checked that each extends the one before. */
export interface Witness {
  readonly name: string;
  readonly key: VerifierKey;
  /** Its submission prefix, without a slash at the end; undefined if it takes no requests. */
  readonly url: string | undefined;
}

/** The witnesses whose cosignatures are needed to trust a checkpoint: C2SP tlog-policy. */
export interface WitnessPolicy {
  /** The keys of logs in the policy, which may be none. */
  readonly logs: readonly VerifierKey[];
  readonly witnesses: readonly Witness[];
  /** Are cosignatures by these keys, given as their texts, enough? */
  readonly isMet: (signed: ReadonlySet<string>) => boolean;
}

type QuorumRule = WitnessPolicy["isMet"];

/** The definitions of the lines so far. */
interface WitnessPolicyDraft {
  readonly logs: VerifierKey[];
  readonly witnesses: Witness[];
  /** Witnesses and groups by name. */
  readonly rules: Map<string, QuorumRule>;
  /** Members of groups. A name may be a member of only one group. */
  readonly grouped: Set<string>;
  quorum: QuorumRule | undefined;
}

/** More than anyone needs; the specification asks for at least 32. */
const linesMax = 1000;
const witnessesMax = 64;

/**
 * Reads the text of a policy.
 *
 * @returns the policy, or the first wrong line and the reason
 */
export function parsePolicy(text: string): Result<WitnessPolicy, string> {
  if (/[^\t\n\x20-\x7e\x80-\u{10ffff}]/u.test(text))
    return bad("it has control characters: lines end in a line feed alone");
  const lines = text.split("\n");
  if (lines.length > linesMax) return bad(`it has over ${linesMax} lines`);
  const reading: WitnessPolicyDraft = {
    logs: [],
    witnesses: [],
    rules: new Map(),
    grouped: new Set(),
    quorum: undefined,
  };
  for (const [at, line] of lines.entries()) {
    const words = line.split(/[ \t]+/).filter(Boolean);
    const problem = words.length === 0 || words[0]?.startsWith("#") ? undefined : readLine(words, reading);
    if (problem !== undefined) return bad(`line ${at + 1}: ${problem}`);
  }
  const { logs, witnesses, quorum } = reading;
  if (quorum === undefined) return bad("it has no quorum: end it with `quorum NAME`, or `quorum none`");
  const askable = new Set(witnesses.filter(({ url }) => url !== undefined).map(({ key }) => key.text));
  if (!quorum(askable)) return bad("its quorum can never be met by witnesses that have a URL");
  return good({ logs, witnesses, isMet: quorum });
}

function readLine([keyword = "", ...words]: readonly string[], reading: WitnessPolicyDraft): string | undefined {
  if (keyword === "log") return readLog(words, reading);
  if (keyword === "witness") return readWitness(words, reading);
  if (keyword === "group") return readGroup(words, reading);
  if (keyword === "quorum") return readQuorum(words, reading);
  return `"${keyword}" is not a keyword: write log, witness, group or quorum`;
}

function readLog([vkey, , ...more]: readonly string[], { logs }: WitnessPolicyDraft): string | undefined {
  if (vkey === undefined || more.length > 0) return "a log must be written as `log VKEY [URL]`";
  const key = parseVerifierKey(vkey);
  if (!key.ok) return key.problem;
  if (key.value.type !== signatureTypes.ed25519) return `the key of ${key.value.name} is not the key of a log`;
  if (isAmong(key.value, logs)) return `the key of ${key.value.name} appears twice`;
  logs.push(key.value);
  return undefined;
}

function readWitness([name, vkey, url, ...more]: readonly string[], reading: WitnessPolicyDraft): string | undefined {
  const { witnesses, rules } = reading;
  if (name === undefined || vkey === undefined || more.length > 0)
    return "a witness must be written as `witness NAME VKEY [URL]`";
  const key = parseVerifierKey(vkey);
  if (!key.ok) return key.problem;
  const { text, type } = key.value;
  if (type !== signatureTypes.cosignature) return `the key of ${name} is not a key for cosignatures`;
  const known = witnesses.map((witness) => witness.key);
  if (isAmong(key.value, known)) return `the key of ${name} appears twice`;
  if (witnesses.length >= witnessesMax) return `there are over ${witnessesMax} witnesses`;
  const prefix = url === undefined ? undefined : parseUrl(url);
  if (prefix?.ok === false) return `the URL of ${name} cannot be used: ${prefix.problem}`;
  const problem = define(name, (signed) => signed.has(text), rules);
  if (problem !== undefined) return problem;
  witnesses.push({ name, key: key.value, url: prefix?.value.href.replace(/\/+$/, "") });
  return undefined;
}

function readGroup(
  [name, count, ...members]: readonly string[],
  { rules, grouped }: WitnessPolicyDraft,
): string | undefined {
  if (name === undefined || count === undefined || members.length === 0)
    return "a group must be written as `group NAME all|any|NUMBER MEMBER...`";
  const least = { any: 1, all: members.length }[count] ?? (/^[1-9][0-9]{0,3}$/.test(count) ? Number(count) : 0);
  if (least < 1 || least > members.length)
    return `"${count}" must be all, any, or a number from 1 to ${members.length}`;
  const parts: QuorumRule[] = [];
  for (const member of members) {
    const rule = rules.get(member);
    if (rule === undefined) return `"${member}" is not defined above`;
    if (grouped.has(member)) return `"${member}" is a member twice`;
    grouped.add(member);
    parts.push(rule);
  }
  return define(name, (signed) => parts.filter((isMet) => isMet(signed)).length >= least, rules);
}

function readQuorum([name, ...more]: readonly string[], reading: WitnessPolicyDraft): string | undefined {
  if (name === undefined || more.length > 0) return "a quorum must be written as `quorum NAME`";
  if (reading.quorum !== undefined) return "there is a second quorum";
  reading.quorum = name === "none" ? () => true : reading.rules.get(name);
  return reading.quorum === undefined ? `"${name}" is not defined above` : undefined;
}

function define(name: string, rule: QuorumRule, rules: Map<string, QuorumRule>): string | undefined {
  if (name === "none" || rules.has(name)) return `the name "${name}" is taken`;
  rules.set(name, rule);
  return undefined;
}

function isAmong({ publicKey }: VerifierKey, keys: readonly VerifierKey[]): boolean {
  return keys.some((key) => key.publicKey.equals(publicKey));
}
