import { isPrivateUrl, requireKnown, WrongMember, type Members, type Result } from "../../../../core/src/wire/mod.ts";

/** How people sign in with a provider of OpenID Connect, from the file of SVC_OIDC. */
export interface OidcSettings {
  /** The provider, exactly as it writes its own name. */
  readonly issuer: string;
  readonly clientId: string;
  /** Undefined for a public client. */
  readonly clientSecret: string | undefined;
  readonly scopes: readonly string[];
  /** The claim that lists the groups of a person. */
  readonly groupsClaim: string;
  /** The groups that count: their value in the claim, and their name here. Undefined means each that can be a name. */
  readonly groups: ReadonlyMap<string, string> | undefined;
  /** The name on the page's button. */
  readonly name: string;
  readonly people: readonly MappedPerson[];
}

/** Which key a person of the provider uses. */
export interface MappedPerson {
  readonly subject: string;
  /** Null is the root. */
  readonly tenant: string | null;
  /** The name of the key. */
  readonly key: string;
}

/**
 * Reads a file of JSON that only its owner may read.
 *
 * @param variable the setting that names the file
 * @param read reads its members, or throws `WrongMember`
 * @returns its value, or a sentence without anything from the file
 */
export type PrivateJsonReader = <Value>(
  variable: string,
  file: string,
  read: (members: Members) => Value,
) => Promise<Result<Value, string>>;

const known = ["issuer", "client_id", "client_secret", "scopes", "groups_claim", "groups", "name", "persons"];
const peopleMax = 10_000;

/**
 * Reads the file of SVC_OIDC. Only its owner may read it, because it has a secret and the accounts of people.
 *
 * @returns the settings, or a sentence that names the first mistake without any value of the file
 */
export function readOidc(file: string, readJson: PrivateJsonReader): Promise<Result<OidcSettings, string>> {
  return readJson("SVC_OIDC", file, settingsOf);
}

function settingsOf(read: Members): OidcSettings {
  requireKnown(read, known);
  const { client_secret: clientSecret, scopes = ["openid"], groups_claim: groupsClaim = "groups" } = read;
  const found = {
    issuer: issuerOf(read["issuer"]),
    clientId: readTextMember("client_id", read["client_id"], 256),
    clientSecret: clientSecret === undefined ? undefined : readTextMember("client_secret", clientSecret, 1024),
    scopes: readListMember("scopes", scopes, 32).map((each) => readTextMember("scopes", each, 128)),
    groupsClaim: readTextMember("groups_claim", groupsClaim, 128),
    groups: groupsOf(read["groups"]),
    name: readTextMember("name", read["name"] ?? "OpenID Connect", 40),
    people: readListMember("persons", read["persons"], peopleMax).map((each, index) => personOf(each, index)),
  };
  if (!found.scopes.includes("openid") || found.scopes.some((scope) => scope.includes(" ")))
    throw new WrongMember("`scopes` must be a list of scopes, and `openid` one of them");
  requireOnePersonEach(found.people);
  return found;
}

/** Others could read an answer over plain HTTP, and forge it. */
function issuerOf(value: unknown): string {
  const text = readTextMember("issuer", value, 1024);
  const url = URL.parse(text);
  if (url === null || url.username + url.password + url.search + url.hash !== "" || !isPrivateUrl(url))
    throw new WrongMember("`issuer` must be an https address; http is only for a provider on this machine");
  return text;
}

const groupName = /^[a-z0-9][a-z0-9._-]{0,63}$/;

/** Returns true if a group can be named in a contract. */
export function isGroupName(text: string): boolean {
  return groupName.test(text);
}

function groupsOf(value: unknown): ReadonlyMap<string, string> | undefined {
  if (value === undefined) return undefined;
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  const found = Object.entries(isObject ? value : { "": "" }) as readonly (readonly [string, unknown])[];
  const names = found.map(([stated, name]): readonly [string, string] => [stated, String(name)]);
  if (names.length <= peopleMax && names.every(([, name]) => isGroupName(name))) return new Map(names);
  throw new WrongMember(
    "`groups` must be an object from groups of the provider to their names: 1 to 64 of a-z, 0-9 and . _ -, without `oidc:`",
  );
}

function personOf(value: unknown, index: number): MappedPerson {
  const read = Object(value) as Members;
  const [, tenant = null, key] =
    /^(?:([a-z0-9-]{1,63})\/)?([a-z0-9][a-z0-9._-]{0,63})$/.exec(String(read["key"])) ?? [];
  const { subject } = read;
  // OpenID Connect: a subject has at most 255 characters of ASCII.
  if (typeof subject !== "string" || !/^[\x20-\x7e]{1,255}$/.test(subject) || key === undefined)
    throw new WrongMember(
      `person ${index + 1} must have a \`subject\`, and a \`key\` such as anna-laptop or acme/anna-laptop`,
    );
  requireKnown(read, ["subject", "key"]);
  return { subject, tenant, key };
}

/** Two accounts of one key could lend each other their groups. */
function requireOnePersonEach(people: readonly MappedPerson[]): void {
  const seen = new Set<string>();
  for (const [index, { subject, tenant, key }] of people.entries()) {
    for (const each of [`key ${tenant ?? ""}/${key}`, `subject ${tenant ?? ""}/${subject}`]) {
      if (seen.has(each))
        throw new WrongMember(
          `person ${index + 1} has a key or, for the same tenant, a subject that another person has`,
        );
      seen.add(each);
    }
  }
}

function readTextMember(member: string, value: unknown, max: number): string {
  if (typeof value === "string" && value !== "" && value.length <= max && !/\p{C}/u.test(value)) return value;
  throw new WrongMember(`\`${member}\` must be a text of 1 to ${max} visible characters`);
}

function readListMember(member: string, value: unknown, max: number): readonly unknown[] {
  if (Array.isArray(value) && value.length <= max) return value as readonly unknown[];
  throw new WrongMember(`\`${member}\` must be a list of at most ${max}`);
}
