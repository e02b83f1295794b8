import { randomBytes } from "node:crypto";
import { bad, good, quote, refuse, type Refusal, type Result } from "../../../wire/mod.ts";
import { Rates } from "../../keys/rate.ts";
import type { KeyRing } from "../../keys/keys.ts";
import type { Seal } from "../seal.ts";
import { Provider, type Account, type Flow } from "./provider.ts";
import { readOidc, type OidcSettings } from "./settings.ts";

export interface OidcParts {
  /** The file of SVC_OIDC. It is read again at each sign-in, so a new person needs no restart. */
  readonly file: string;
  readonly seal: Seal;
  readonly keys: KeyRing;
  /** Tells the operator why the file cannot be used any more. */
  readonly warn: (sentence: string) => void;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
}

/** The console at which somebody signs in. */
export interface ConsolePlace {
  /** Such as `https://gate.example`; one of the gate's own names. */
  readonly origin: string;
  /** The path of the console, such as `/t/acme/console`. */
  readonly base: string;
  /** Null is the root. */
  readonly tenant: string | null;
  /** The network of the browser, for the rate. */
  readonly network: string;
}

/** A sign-in that has begun. The page keeps `flow` in its origin's storage, and gives it back with the answer. */
export interface BegunSignIn {
  /** The provider's page. */
  readonly location: string;
  readonly flow: string;
}

interface SealedFlow extends Flow {
  readonly issuer: string;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

/** The provider's description, as it was asked for. */
interface Discovered {
  /** The settings that it is for. */
  readonly by: string;
  /** Milliseconds since the epoch. */
  readonly until: number;
  readonly provider: Promise<Result<Provider, Refusal>>;
}

const flowMs = 600_000;
const discoveryMs = 3_600_000;
const rate = { perSecond: 2, burst: 30 };
/** Flows that were used, and could be used again until their time is over. */
const spentMax = 10_000;

/**
 * Signs persons in with a provider of OpenID Connect. A person gets the session of the key that the file maps them to.
 *
 * A cookie would go to every port of a host. So the flow is not in a cookie but in the storage of the page's origin, and
 * the page itself sends the provider's answer. Another server on this host gets neither, and a link with the answer of
 * somebody else opens nothing.
 */
export class OidcSignIn {
  readonly #parts: OidcParts;
  readonly #now: () => number;
  readonly #rates = new Rates({ fallback: () => rate });
  readonly #spent = new Map<string, number>();
  #discovered: Discovered | undefined;

  constructor(parts: OidcParts) {
    this.#parts = parts;
    this.#now = parts.now ?? Date.now;
  }

  /** The name on the page's button; undefined if the file cannot be used now. */
  async name(): Promise<string | undefined> {
    const settings = await this.#settings();
    return settings.ok ? settings.value.name : undefined;
  }

  async begin(place: ConsolePlace): Promise<Result<BegunSignIn, Refusal>> {
    if (!this.#charge(place)) return bad(tooMany);
    const settings = await this.#settings();
    if (!settings.ok) return settings;
    const provider = await this.#provider(settings.value);
    if (!provider.ok) return provider;
    const flow: SealedFlow = {
      state: random(),
      nonce: random(),
      verifier: random(),
      redirect: `${place.origin}${place.base}/oidc/callback`,
      issuer: settings.value.issuer,
      until: this.#now() + flowMs,
    };
    const location = await provider.value.address(flow);
    if (!location.ok) return location;
    return good({ location: location.value.href, flow: await this.#parts.seal.close(flow, place.base) });
  }

  /**
   * Redeems the provider's answer.
   *
   * @param sealed the flow that `begin` gave to the page
   * @param answer the query with which the browser came back, such as `?code=...&state=...`
   * @returns SHA-256 in hex of the person's key
   */
  async finish(place: ConsolePlace, sealed: string, answer: string): Promise<Result<string, Refusal>> {
    const flow = (await this.#parts.seal.open(sealed, place.base)) as SealedFlow | undefined;
    if (flow === undefined || this.#now() >= flow.until) return bad(noFlow);
    if (!this.#charge(place)) return bad(tooMany);
    const settings = await this.#settings();
    if (!settings.ok) return settings;
    if (settings.value.issuer !== flow.issuer || !this.#spend(flow)) return bad(noFlow);
    const provider = await this.#provider(settings.value);
    if (!provider.ok) return provider;
    const account = await provider.value.account(flow, new URLSearchParams(answer));
    return account.ok ? this.#keyOf(account.value, settings.value, place) : account;
  }

  #charge({ network }: ConsolePlace): boolean {
    return this.#rates.charge({ id: network, tenant: null, rate })?.ok === true;
  }

  /** A provider redeems a code once. In case one does not, this process takes no flow twice. */
  #spend({ state, until }: SealedFlow): boolean {
    const now = this.#now();
    for (const [each, end] of this.#spent) if (end <= now) this.#spent.delete(each);
    if (this.#spent.has(state) || this.#spent.size >= spentMax) return false;
    this.#spent.set(state, until);
    return true;
  }

  async #keyOf(
    { subject, groups }: Account,
    { issuer, persons }: OidcSettings,
    { tenant }: ConsolePlace,
  ): Promise<Result<string, Refusal>> {
    const mapped = persons.find((person) => person.subject === subject && person.tenant === tenant);
    if (mapped === undefined) return bad(notMapped(subject, issuer));
    const { keys } = this.#parts;
    const of = { name: mapped.key, tenant };
    await keys.catchUp(); // Another gate may have just revoked the key.
    if (keys.voter(of, this.#now()) === undefined) return bad(noApprover(mapped.key));
    const stated = await keys.stateGroups(of, groups);
    if (!stated.ok) return stated;
    // Recording took time, and the key may have been revoked meanwhile.
    const digest = keys.voter(of, this.#now()) && keys.standing(of)?.record.digest;
    return typeof digest === "string" ? good(digest) : bad(noApprover(mapped.key));
  }

  async #settings(): Promise<Result<OidcSettings, Refusal>> {
    const settings = await readOidc(this.#parts.file);
    if (settings.ok) return settings;
    this.#parts.warn(settings.problem);
    return bad(unreadable);
  }

  /** The provider's description is kept for an hour, unless reading it failed. */
  async #provider({ persons, ...settings }: OidcSettings): Promise<Result<Provider, Refusal>> {
    const by = JSON.stringify({ ...settings, groups: [...(settings.groups ?? [])] });
    const now = this.#now();
    const known = this.#discovered;
    const discovered =
      known?.by === by && now < known.until
        ? known
        : { by, until: now + discoveryMs, provider: Provider.discover({ persons, ...settings }) };
    this.#discovered = discovered;
    const provider = await discovered.provider;
    if (!provider.ok && this.#discovered === discovered) this.#discovered = undefined;
    return provider;
  }
}

function random(): string {
  return randomBytes(32).toString("base64url");
}

const unreadable = refuse(
  "provider-unavailable",
  "the gate cannot use the file of SVC_OIDC any more: its log says why",
);

const noFlow = refuse(
  "sign-in-refused",
  "the sign-in was used already, began over ten minutes ago, or began elsewhere: sign in again",
);

const tooMany = refuse("provider-unavailable", "too many persons sign in with the provider at once: try again");

/** A subject has at most 255 characters of ASCII, so it is shown whole. */
function notMapped(subject: string, issuer: string): Refusal {
  const shown = /^[\x20-\x7e]{1,255}$/.test(subject) ? JSON.stringify(subject) : "that the gate cannot show";
  return refuse(
    "sign-in-refused",
    `no key is mapped to the subject ${shown} of ${issuer}: an administrator adds it to \`persons\` in the file of SVC_OIDC`,
  );
}

function noApprover(key: string): Refusal {
  const wants =
    "a key that is not revoked or expired, with a person and the scope `approve`, and without `check` or `admin`";
  return refuse("sign-in-refused", `the key ${quote(key)} does not open a session this way: that takes ${wants}`);
}
