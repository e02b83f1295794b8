import { randomBytes } from "node:crypto";
import {
  bad,
  good,
  quote,
  refuse,
  type BegunSignIn,
  type Refusal,
  type Result,
} from "../../../../core/src/wire/mod.ts";
import type { Seal } from "../seal.ts";
import { Provider, type Account, type Flow } from "./provider.ts";
import { readOidc, type OidcSettings, type PrivateJsonReader } from "./settings.ts";

export interface OidcParts {
  /** The file of SVC_OIDC. It is read again at each sign-in, so a new person needs no restart. */
  readonly file: string;
  readonly readJson: PrivateJsonReader;
  readonly seal: Seal;
  readonly keys: PersonKeys;
  readonly enter: LineEntry;
  /** Tells the operator why the file cannot be used any more. */
  readonly warn: (sentence: string) => void;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
}

/** A key by its name, and its tenant; null is the root. */
interface NamedKey {
  readonly name: string;
  readonly tenant: string | null;
}

/** The keys of people, as the gate keeps them. */
interface PersonKeys {
  /** Reads what other gates have recorded. */
  catchUp(): Promise<void>;
  /** Records the groups that the provider states. */
  stateGroups(of: NamedKey, groups: readonly string[]): Promise<Result<void, Refusal>>;
  readonly known: {
    /** Undefined if the key cannot decide at this time, in milliseconds since the epoch. */
    voter(of: NamedKey, at: number): object | undefined;
    findState(of: NamedKey): { readonly record: { readonly digest: unknown } } | undefined;
  };
}

/**
 * Waits for one of `redeemedMax` places in a line, which tenants and their ids get in turn.
 *
 * @param signal aborts if nobody waits for the place any more
 * @returns gives the place back, or a refusal if too many wait
 */
export type LineEntry = (
  owner: { readonly id: string; readonly tenant: string | null },
  signal: AbortSignal,
) => Promise<Result<() => void, Refusal>>;

/** The console at which somebody signs in. */
export interface ConsoleAddress {
  /** Such as `https://gate.example`; one of the gate's own names. */
  readonly origin: string;
  /** The path of the console, such as `/t/acme/console`. */
  readonly base: string;
  /** Null is the root. */
  readonly tenant: string | null;
  /** The network of the browser: each has its turn. */
  readonly network: string;
}

/** What a page posts when the browser came back from the provider. */
export interface ReturnedSignIn {
  /** The flow that `start` gave to the page. */
  readonly flow: string;
  /** The query with which the browser came back, such as `?code=...&state=...`. */
  readonly answer: string;
  /** What the browser got with its last session, if it had one. */
  readonly known: string | undefined;
  /** Aborts if nobody waits for the session any more. */
  readonly signal: AbortSignal;
}

/** A person whom the provider has confirmed. */
export interface ConfirmedPerson {
  /** SHA-256 in hex of the person's key. */
  readonly digest: string;
  /** Lets this browser go before strangers at the next sign-in, and opens nothing. */
  readonly known: string;
}

interface SealedFlow extends Flow {
  readonly issuer: string;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

/** The provider's description, as it was requested. */
interface CachedProvider {
  /** The settings that it is for. */
  readonly by: string;
  /** Milliseconds since the epoch. */
  until: number;
  readonly provider: Promise<Result<Provider, Refusal>>;
}

/** The file of SVC_OIDC, as it was read. */
interface ReadSettings {
  readonly settings: OidcSettings;
  /** All but the people, as a text to compare. */
  readonly by: string;
}

interface SharedRead {
  /** Milliseconds since the epoch. */
  readonly until: number;
  readonly settings: Promise<Result<ReadSettings, Refusal>>;
}

/** A browser in which a person has signed in. */
interface KnownBrowser {
  /** The name of the person's key. */
  readonly key: string;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

const flowMs = 600_000;
const discoveryMs = 3_600_000;
/** One read of the file, or one failure of the provider, answers everybody for so long. */
const sharedMs = 1000;
/** Sign-ins whose code the provider redeems at once. */
export const redeemedMax = 32;
const knownMs = 90 * 86_400_000;

/**
 * Signs people in with a provider of OpenID Connect. A person gets the session of the key that the file maps them to.
 *
 * A cookie would go to every port of a host. So the flow is not in a cookie but in the storage of the page's origin, and
 * the page itself sends the provider's answer. Another server on this host gets neither, and a link with the answer of
 * somebody else opens nothing.
 *
 * Strangers can do all of it except sign in at the provider, and behind a proxy they have the address of people. So a
 * start is cheap, a failed sign-in leaves nothing, and those that ask the provider wait in a line. Browsers in which
 * a person has signed in before and all others take turns there, and so do people, and networks.
 */
export class OidcSignIn {
  readonly #parts: OidcParts;
  readonly #now: () => number;
  /** The states of flows that are being redeemed or have opened a session, with the time until which they are kept. */
  readonly #taken = new Map<string, number>();
  #discovered: CachedProvider | undefined;
  #read: SharedRead | undefined;

  constructor(parts: OidcParts) {
    this.#parts = parts;
    this.#now = parts.now ?? Date.now;
  }

  /** The name on the page's button; undefined if the file cannot be used now. */
  async name(): Promise<string | undefined> {
    const read = await this.#settings();
    return read.ok ? read.value.settings.name : undefined;
  }

  async start(address: ConsoleAddress): Promise<Result<BegunSignIn, Refusal>> {
    const read = await this.#settings();
    if (!read.ok) return read;
    const provider = await this.#provider(read.value);
    if (!provider.ok) return provider;
    const flow: SealedFlow = {
      state: random(),
      nonce: random(),
      verifier: random(),
      redirect: `${address.origin}${address.base}/oidc/callback`,
      issuer: read.value.settings.issuer,
      until: this.#now() + flowMs,
    };
    const location = await provider.value.address(flow);
    if (!location.ok) return location;
    return good({ location: location.value.href, flow: await this.#parts.seal.close(flow, address.base) });
  }

  /** Redeems the provider's answer. */
  async finish(address: ConsoleAddress, returned: ReturnedSignIn): Promise<Result<ConfirmedPerson, Refusal>> {
    const { seal } = this.#parts;
    const flow = (await seal.open(returned.flow, address.base)) as SealedFlow | undefined;
    if (flow === undefined || !this.#take(flow)) return bad(noFlow);
    const person = await this.#inTurn(address, returned, () => this.#redeem(address, flow, returned.answer));
    if (!person.ok) this.#taken.delete(flow.state);
    return person;
  }

  /** A provider redeems a code once. In case one does not, this process opens one session with a flow. */
  #take({ state, until }: SealedFlow): boolean {
    const now = this.#now();
    for (const [each, end] of this.#taken) {
      if (end > now) break;
      this.#taken.delete(each);
    }
    if (now >= until || this.#taken.has(state)) return false;
    this.#taken.set(state, now + flowMs);
    return true;
  }

  async #inTurn(
    { network, base }: ConsoleAddress,
    { known = "", signal }: ReturnedSignIn,
    redeem: () => Promise<Result<ConfirmedPerson, Refusal>>,
  ): Promise<Result<ConfirmedPerson, Refusal>> {
    const browser = (await this.#parts.seal.open(known, knownIn(base))) as KnownBrowser | undefined;
    const isKnown = browser !== undefined && this.#now() < browser.until;
    const owner = isKnown ? { id: `${base} ${browser.key}`, tenant: "known" } : { id: network, tenant: null };
    const place = await this.#parts.enter(owner, signal);
    if (!place.ok) return place;
    try {
      return signal.aborted ? bad(noFlow) : await redeem();
    } finally {
      place.value();
    }
  }

  async #redeem(address: ConsoleAddress, flow: SealedFlow, answer: string): Promise<Result<ConfirmedPerson, Refusal>> {
    const read = await this.#settings();
    if (!read.ok) return read;
    if (read.value.settings.issuer !== flow.issuer) return bad(noFlow);
    const provider = await this.#provider(read.value);
    if (!provider.ok) return provider;
    const account = await provider.value.account(flow, new URLSearchParams(answer));
    if (!account.ok) return account;
    const now = await this.#readSettings(); // An administrator may have just removed the person, or changed the provider.
    if (!now.ok) return now;
    return now.value.by === read.value.by ? this.#personOf(account.value, now.value.settings, address) : bad(noFlow);
  }

  async #personOf(
    { subject, groups }: Account,
    { issuer, people }: OidcSettings,
    { tenant, base }: ConsoleAddress,
  ): Promise<Result<ConfirmedPerson, Refusal>> {
    const mapped = people.find((person) => person.subject === subject && person.tenant === tenant);
    if (mapped === undefined) return bad(notMapped(subject, issuer));
    const { keys, seal } = this.#parts;
    const of = { name: mapped.key, tenant };
    await keys.catchUp(); // Another gate may have just revoked the key.
    if (keys.known.voter(of, this.#now()) === undefined) return bad(noApprover(mapped.key));
    const stated = await keys.stateGroups(of, groups);
    if (!stated.ok) return stated;
    // Recording took time, and the key may have been revoked meanwhile.
    const digest = keys.known.voter(of, this.#now()) && keys.known.findState(of)?.record.digest;
    if (typeof digest !== "string") return bad(noApprover(mapped.key));
    const browser: KnownBrowser = { key: mapped.key, until: this.#now() + knownMs };
    return good({ digest, known: await seal.close(browser, knownIn(base)) });
  }

  #settings(): Promise<Result<ReadSettings, Refusal>> {
    const now = this.#now();
    if (this.#read === undefined || now >= this.#read.until)
      this.#read = { until: now + sharedMs, settings: this.#readSettings() };
    return this.#read.settings;
  }

  async #readSettings(): Promise<Result<ReadSettings, Refusal>> {
    const settings = await readOidc(this.#parts.file, this.#parts.readJson);
    if (settings.ok) {
      const { people: _people, ...others } = settings.value;
      return good({ settings: settings.value, by: JSON.stringify({ ...others, groups: [...(others.groups ?? [])] }) });
    }
    this.#parts.warn(settings.problem);
    return bad(unreadable);
  }

  /** The provider's description is kept for an hour. */
  async #provider({ settings, by }: ReadSettings): Promise<Result<Provider, Refusal>> {
    const now = this.#now();
    const found = this.#discovered;
    const discovered =
      found?.by === by && now < found.until
        ? found
        : { by, until: now + discoveryMs, provider: Provider.discover(settings) };
    this.#discovered = discovered;
    const provider = await discovered.provider;
    if (!provider.ok) discovered.until = Math.min(discovered.until, this.#now() + sharedMs);
    return provider;
  }
}

/** A flow is sealed for another scope, so neither can be given as the other. */
function knownIn(base: string): string {
  return `${base} known`;
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
  "the sign-in was used already, started over ten minutes ago, or started elsewhere: sign in again",
);

/** The refusal of a sign-in that gets no place. */
export const tooMany: Refusal = refuse(
  "provider-unavailable",
  "too many people sign in with the provider at once: try again",
);

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
