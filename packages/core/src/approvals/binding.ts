import {
  charactersOf,
  Decimal,
  findMembers,
  inputText,
  memberBelow,
  numberByValue,
  pathNames,
  type Json,
  type JsonObject,
} from "../wire/mod.ts";
import type { Approval } from "./approval.ts";
import { plain } from "./decimals.ts";

/** A call, as an approval is bound to it. */
export interface BoundCall {
  /** The ledger's name. */
  readonly log: string;
  readonly key: string;
  /** True for every session of the key. */
  readonly session: string | true | null;
  readonly tool: string;
  readonly input: JsonObject;
  /** The members of the input that do not count, such as `input.note`. */
  readonly unbound: readonly string[];
  /** The facts that the call is bound to, with their JSON texts; null if a fact is absent. */
  readonly subject: Readonly<Record<string, string | null>>;
}

/**
 * The text of which a binding is the keyed digest. Members are sorted by code units. Numbers have the characters that
 * were sent, because a tool receives characters.
 */
export function bindingText({ log, key, session, tool, input, unbound, subject }: BoundCall): string {
  const bound = inputText(input, charactersOf, unbound);
  const parts = [key, log, session, tool].map((part) => JSON.stringify(part));
  const [ofKey, ofLog, ofSession, ofTool] = parts;
  const members = `"input":${bound},"key":${ofKey},"log":${ofLog},"session":${ofSession}`;
  return `svc-gate/binding/1\n{${members},"subject":${factsText(subject)},"tool":${ofTool}}`;
}

/** The text of which the digest of a call's subject is made; undefined for a call without one. */
export function subjectText(subject: BoundCall["subject"]): string | undefined {
  return Object.keys(subject).length === 0 ? undefined : `svc-gate/subject/1\n${factsText(subject)}`;
}

function factsText(facts: BoundCall["subject"]): string {
  const names = Object.keys(facts).toSorted();
  return JSON.stringify(names.map((name) => [name, facts[name] ?? null]));
}

/**
 * The text of which the coarser digest is made: calls with one such digest share an approval, and a denial. It has
 * numbers by their value, and no session.
 */
export function attachText({ log, key, tool, input, unbound }: Omit<BoundCall, "session" | "subject">): string {
  const names = [key, log, tool].map((part) => JSON.stringify(part));
  const text = inputText(input, numberByValue, unbound);
  return `svc-gate/attach/1\n{"input":${text},"key":${names[0]},"log":${names[1]},"tool":${names[2]}}`;
}

/** A call, as grants compare it. A part that was erased is undefined. */
export interface ComparedCall {
  readonly input: JsonObject | undefined;
  readonly platform: JsonObject | null | undefined;
  readonly session: string | null | undefined;
}

/**
 * The text of a whole member outside lists, such as `input.payee`, by which grants compare calls; of `has(input.payee)`,
 * whether the member is there, also of `has(platform)` and `has(session)`. Numbers have the characters that were sent.
 *
 * @returns undefined if the call does not have the member
 */
export function memberText(call: ComparedCall, member: string): string | undefined {
  const presence = parsePresenceName(member);
  if (presence === "platform" || presence === "session") return String((call[presence] ?? null) !== null);
  const value = memberOf(call, presence ?? member);
  if (presence !== undefined) return String(value !== undefined);
  return value === undefined ? undefined : inputText(value, charactersOf);
}

/** Returns a number of a call as a decimal; undefined if it is not a number. */
export function memberNumber(call: ComparedCall, member: string): string | undefined {
  const value = memberOf(call, member);
  return typeof value === "number" || value instanceof Decimal ? plain(charactersOf(value)) : undefined;
}

/** A member of an input outside lists. */
export interface InputMember {
  /** Such as `input.opts.fast`. */
  readonly path: string;
  /** Is it an object, whose members follow? */
  readonly isObject: boolean;
}

/** All members of an input, or of facts, at every depth. */
export function inputMembers(input: JsonObject, of = "input"): readonly InputMember[] {
  return [...input].flatMap(([name, value]) => {
    const path = memberBelow(of, name);
    return value instanceof Map
      ? [{ path, isObject: true }, ...inputMembers(value as JsonObject, path)]
      : [{ path, isObject: false }];
  });
}

/**
 * The text of an input and facts without some members. Two calls have one text if and only if all else in them is equal, with the
 * characters of numbers.
 */
export function allElseText({ input, platform }: ComparedCall, without: readonly string[]): string {
  const texts = Object.entries({ input, platform }).map(([root, value]) => {
    return `"${root}":${inputText(value ?? null, charactersOf, without, root)}`;
  });
  return `svc-gate/rest/1\n{${texts.join(",")}}`;
}

/** The name of a member's presence. */
export function presenceOf(member: string): string {
  return `has(${member})`;
}

/** The member whose presence has this name, such as `has(input.payee)`; undefined for the name of a value. */
export function parsePresenceName(name: string): string | undefined {
  return /^has\((.*)\)$/s.exec(name)?.[1];
}

/** The value of a member outside lists, such as `input.payee`; undefined if the call does not have it. */
export function memberOf({ input, platform }: ComparedCall, member: string): Json | undefined {
  const [root, ...path] = pathNames(member) ?? [];
  let value: Json | undefined = root === "input" ? input : platform;
  for (const name of path) value = value instanceof Map ? (value as JsonObject).get(name) : undefined;
  return value;
}

/** Returns the JSON texts of facts such as `platform.wallet_id`, or of `platform` itself; null for absent ones. */
export function factTexts(
  names: readonly string[],
  platformText: string | null,
): Readonly<Record<string, string | null>> {
  const paths = names.map((name) => (pathNames(name) ?? []).slice(1));
  const spans = platformText === null ? [] : findMembers(platformText, paths);
  return Object.fromEntries(
    names.map((name, index) => {
      if (name === "platform") return [name, platformText];
      const span = spans[index];
      return [name, span === undefined || platformText === null ? null : platformText.slice(span.from, span.to)];
    }),
  );
}

/** An approval's id: `apr_`, the row that asked, and the first 32 digits of its hash. */
export function approvalId(row: number, hash: string): string {
  return `apr_${row}_${hash.slice(0, 32)}`;
}

/** The path of the console's page where a person decides an approval. */
export function cardPath(id: string, tenant: string | null): string {
  return `${tenant === null ? "" : `/t/${tenant}`}/console/approvals/${id}`;
}

/** Returns the row in an approval's id, and the digits of its hash; undefined if the text is not an id. */
export function readApprovalId(id: string): { readonly row: number; readonly digits: string } | undefined {
  const [, row, digits] = /^apr_([1-9][0-9]{0,14})_([0-9a-f]{32})$/.exec(id) ?? [];
  return row === undefined || digits === undefined ? undefined : { row: Number(row), digits };
}

/** A name for a session, which is unique over the keys. It starts with its domain, since only its digest is kept. */
export function sessionName(key: string, session: string | null): string {
  return `svc-gate/session/1\n${JSON.stringify([key, session])}`;
}

/** A name for a tool in a session of a key. */
export function sessionToolName({ key, session, tool }: Pick<Approval, "key" | "session" | "tool">): string {
  return `svc-gate/denied/1\n${JSON.stringify([key, session, tool])}`;
}
