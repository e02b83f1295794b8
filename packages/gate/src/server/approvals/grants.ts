import {
  parsePresenceName,
  allElseText,
  grantsMax,
  inputMembers,
  memberOf,
  memberText,
  sessionName,
  type Approval,
  type ComparedCall,
  type FormOffer,
  type Grant,
  type GrantBody,
  type GrantForm,
  type GrantOffer,
  type WidthJson,
} from "../../../../core/src/approvals/mod.ts";
import { grantRows, parseLeaf, type StoredRow } from "../../../../core/src/record/entry/mod.ts";
import type { Route } from "../../../../core/src/contract/ir.ts";
import {
  bad,
  formText,
  good,
  isAmong,
  isPartOf,
  lengthText,
  nearest,
  overlaps,
  pathNames,
  quote,
  refuse,
  type Json,
  type JsonObject,
  type Refusal,
  type Result,
} from "../../../../core/src/wire/mod.ts";
import { invalid } from "../request/body.ts";

/** What a person asks a grant to be. */
export interface GrantRequest {
  /** Milliseconds since the epoch; undefined means as long as the rules let it. */
  readonly until: number | undefined;
  /** Undefined means as many as the rules let it. */
  readonly uses: number | undefined;
  /** True for every session of the key. */
  readonly anySession: boolean;
  /** Members besides those that the rules pin. */
  readonly pins: readonly string[];
  /** Members of the input that the call lacks, and that later calls may have. */
  readonly free: readonly string[];
  /** How far the command line may differ; undefined if it may not. */
  readonly width: string | undefined;
  /** The most that all uses may add, by the name of the number; decimals. */
  readonly amounts: Readonly<Record<string, string>>;
}

type Schemas = Route["schemas"];

interface BoundMembers extends Partial<Omit<GrantOffer, "form">> {
  readonly form?: object | undefined;
}

/**
 * What may differ in a call of a grant: members of the source's input that nothing binds, members that the person freed,
 * and facts that the rules or their reasons read.
 */
export function freeMembers(
  { input }: ComparedCall,
  { pins = [], sums = [], most = [], least = [], free = [], form }: BoundMembers,
): readonly string[] {
  const bound = [...pins, ...sums, ...most, ...least];
  // A form binds all that is not listed.
  const members = input === undefined || form !== undefined ? [] : inputMembers(input);
  const paths = members.map(({ path }) => path);
  // The members of an object follow it.
  const isAround = (path: string, index: number): boolean => isPartOf(paths[index + 1] ?? "", path);
  const found = paths.filter((path, index) => !isAmong(path, bound) && !isAround(path, index));
  return [...new Set([...found, ...free])].toSorted();
}

/**
 * Makes the body of a grant from a call that a person was asked about.
 *
 * @param contract SHA-256 of the contract in force, in hex
 */
export function grantBody(
  { approval, row }: { readonly approval: Approval; readonly row: StoredRow },
  wanted: GrantRequest,
  {
    person,
    at,
    contract,
    digest,
    routes,
  }: {
    readonly person: string;
    readonly at: number;
    readonly contract: string;
    readonly digest: grantRows.Digester;
    readonly routes: readonly Route[];
  },
): Result<GrantBody, Refusal> {
  const { asking, key, session, tool } = approval;
  const offer = asking.grants;
  if (offer === undefined) return bad(refuse("grant-refused", noGrantReason(approval, routes)));
  if (parseLeaf(row.leaf)?.contract !== `sha256:${contract}`)
    return bad(
      refuse("grant-refused", "the contract has changed since the call was asked: make the grant from a later call"),
    );
  const schemas = routes.map((route) => route.schemas);
  const length = lengthFor(offer, wanted, at);
  if (!length.ok) return length;
  const source = grantRows.recordedCall(row);
  const bounds = boundsFor(source, offer, wanted, { digest, schemas });
  if (!bounds.ok) return bounds;
  const amounts = amountsFor(source, offer.sums, wanted.amounts);
  if (!amounts.ok) return amounts;
  return good({
    ...length.value,
    ...bounds.value,
    amounts: amounts.value,
    asked: approval.at,
    causes: asking.causes,
    key,
    needs: asking.needs,
    person,
    place: wanted.anySession ? null : digest(sessionName(key, session)),
    ...(asking.self === true && { self: true as const }),
    source: approval.row,
    tool,
  });
}

/** Why no grant can be made from a call: a rule that permits none, or what the call does. */
export function noGrantReason({ asking }: Approval, routes: readonly Route[]): string {
  const causes = Object.keys(asking.causes);
  const rules = new Map(routes.flatMap((route) => route.rules.map((rule) => [rule.id, rule.terms])));
  const firm = causes.find((cause) => rules.get(cause)?.grants === undefined);
  const kinds = new Set(
    causes.map((cause) => [cause.split(".", 1), rules.get(cause)?.grants?.form === undefined].join()),
  );
  const own = kinds.size > 1 ? "its rules permit grants of different kinds" : "a command in it may delete something";
  const why = firm === undefined ? own : `the rule ${quote(firm)} asked for it and has no \`grants\``;
  return `${why}, so each call needs its own decision`;
}

function lengthFor(
  offer: GrantOffer,
  { until: end, uses = offer.uses }: GrantRequest,
  at: number,
): Result<Pick<GrantBody, "until" | "uses">, Refusal> {
  const until = end ?? at + offer.at_most;
  const longest = `${lengthText(offer.at_most)} from now, which the rules permit`;
  if (until <= at || until > at + offer.at_most) return invalid(`"until" must be at most ${longest}`);
  if (uses > offer.uses) return invalid(`"uses" must be at most ${offer.uses}, which the rules permit`);
  return good({ until, uses });
}

/** What each call must share with the source, and what may differ. */
function boundsFor(
  source: ComparedCall,
  { pins: own, sums, most = [], least = [], free: offered = [], form: offeredForm }: GrantOffer,
  wanted: GrantRequest,
  { digest, schemas }: { readonly digest: grantRows.Digester; readonly schemas: readonly Schemas[] },
): Result<Pick<GrantBody, "form" | "free" | "least" | "most" | "pins">, Refusal> {
  const { width = exact } = wanted;
  const line = lineFor(offeredForm, width);
  const pins = [...new Set([...own, ...wanted.pins])].toSorted();
  const bound = [...pins, ...sums, ...most, ...least, ...(line === undefined ? [] : [line.member])];
  const [problem] = [
    ...widthProblem(width, offeredForm, pins),
    ...wanted.pins.flatMap((member) => pinProblem(member, source, schemas)),
    ...wanted.free.flatMap((member) => freeProblem(member, source, schemas, bound)),
  ];
  if (problem !== undefined) return bad(refuse("grant-refused", problem));
  const free = [...new Set([...wanted.free, ...offered.filter((member) => !pins.includes(member))])].toSorted();
  const digests = pins.map((pin) => [pin, grantRows.pinDigest(pin, memberText(source, pin), digest)] as const);
  const form = line && { ...line, rest: digest(allElseText(source, [...free, line.member])) };
  return good({ ...(form !== undefined && { form }), free, least, most, pins: Object.fromEntries(digests) });
}

/** The narrowest width: the command line is the same. */
const exact = "same";

function lineFor(offer: FormOffer | undefined, width: string): Omit<GrantForm, "rest"> | undefined {
  const found = offer?.widths.find(({ name }) => name === width);
  return offer && found && { member: offer.member, width: found.name, digest: found.digest };
}

/** What each width of a grant covers, the narrowest first. */
export function shownWidths({ member, widths }: FormOffer, source: ComparedCall): readonly WidthJson[] {
  const text = memberOf(source, member);
  if (typeof text !== "string") return [];
  return widths.map(({ name, open }) => ({ name, shown: formText(text, open) }));
}

/** Why a grant cannot have a width. */
function widthProblem(width: string, offer: FormOffer | undefined, pins: readonly string[]): readonly string[] {
  if (width === exact) return [];
  const known = (offer?.widths ?? [{ name: exact }]).map(({ name }) => name);
  if (!known.includes(width))
    return [`a grant from this call cannot have the width ${quote(width)}; it can have: ${known.join(", ")}`];
  return pins
    .filter((pin) => pin === offer?.member)
    .map((pin) => `${quote(pin)} cannot be pinned beside the width ${quote(width)}: leave one of them out`);
}

/** Why a person cannot pin a member. */
function pinProblem(member: string, source: ComparedCall, schemas: readonly Schemas[]): readonly string[] {
  const hope = memberText(source, member) === undefined ? hopeOf(member, schemas) : "named";
  if (hope === "named") return [];
  const hint = hintFor(member, source);
  if (hope === "other" && hint === "") return [];
  return [`neither the call nor a schema of its tool has ${quote(member)}${hint}`];
}

/** Why a person cannot free a member. */
function freeProblem(
  member: string,
  source: ComparedCall,
  schemas: readonly Schemas[],
  bound: readonly string[],
): readonly string[] {
  const name = quote(member);
  if (hopeOf(member, schemas) === "none") return [`a call of the tool cannot have ${name}${hintFor(member, source)}`];
  if (bound.some((each) => binds(each, member)))
    return [`a grant cannot free ${name}: it is bound, or it contains a member that is`];
  return memberText(source, member) === undefined
    ? []
    : [`the call has ${name}, and a grant frees only members that the call lacks`];
}

/** Is a member bound, or an object that contains it, or a part of it? If only its presence is, its parts are not. */
function binds(bound: string, member: string): boolean {
  const present = parsePresenceName(bound);
  return present === undefined ? overlaps(bound, member) : isPartOf(present, member);
}

function hintFor(member: string, { input, platform }: ComparedCall): string {
  const known = [...inputMembers(input ?? new Map()), ...inputMembers(platform ?? new Map(), "platform")];
  const near = nearest(
    member,
    known.map(({ path }) => path),
  );
  return near === undefined ? "" : `; did you mean ${quote(near)}?`;
}

/** Could a call that all schemas accept have a member: do they refuse it, does one name it, or is it among others? */
function hopeOf(member: string, schemas: readonly Schemas[]): "named" | "none" | "other" {
  const [root, ...names] = pathNames(member) ?? [];
  const hopes = schemas.map(({ input, platform }) => hopeIn(root === "input" ? input : platform, names));
  return hopes.find((hope) => hope === "none") ?? hopes.find((hope) => hope === "named") ?? "other";
}

function hopeIn(schema: Json | undefined, [name, ...names]: readonly string[]): ReturnType<typeof hopeOf> {
  if (name === undefined) return "named";
  if (!(schema instanceof Map)) return "other";
  const [types, properties, others] = ["type", "properties", "additionalProperties"].map((keyword) =>
    (schema as JsonObject).get(keyword),
  );
  if (types !== undefined && ![types].flat().includes("object")) return "none";
  // The schema is elsewhere, and this does not look for it.
  if (schema.has("$ref") || schema.has("anyOf")) return "named";
  const own: Json | undefined = properties instanceof Map ? (properties as JsonObject).get(name) : undefined;
  if (own !== undefined) return hopeIn(own, names);
  return others === false ? "none" : "other";
}

function amountsFor(
  source: ComparedCall,
  sums: readonly string[],
  wanted: GrantRequest["amounts"],
): Result<Readonly<Record<string, string>>, Refusal> {
  if (grantRows.sourceNumbers(sums, source) === undefined)
    return bad(refuse("grant-refused", `the call does not have each of these numbers: ${sums.join(", ")}`));
  const stranger = Object.keys(wanted).find((member) => !sums.includes(member));
  if (stranger !== undefined) return invalid(`"amounts" has ${quote(stranger)}, which no counter of the tool adds up`);
  const missing = sums.find((member) => wanted[member] === undefined);
  if (missing !== undefined)
    return invalid(`"amounts" must have ${quote(missing)}: how much all calls of the grant may add together`);
  return good(Object.fromEntries(sums.map((member) => [member, wanted[member] ?? "0"])));
}

/** Refuses a grant if too many are in force. */
export function requireRoom(grants: readonly Grant[], at: number): Result<void, Refusal> {
  const inForce = grants.filter(({ until }) => at < until).length;
  return inForce < grantsMax
    ? good(undefined)
    : bad(refuse("grant-refused", `${grantsMax} grants are in force: revoke some of them`));
}
