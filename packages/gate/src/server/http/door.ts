import type { IncomingMessage } from "node:http";
import {
  bad,
  good,
  limits,
  refuse,
  type BegunSignIn,
  type Refusal,
  type Result,
} from "../../../../core/src/wire/mod.ts";
import { digestOf } from "../keys/digest.ts";
import type { ValidKey, KeyRing } from "../keys/keys.ts";
import { Rates } from "../keys/rate.ts";
import { refusalForKind } from "./key-refusals.ts";
import { networkOf } from "./keyless.ts";
import {
  sessionMs,
  type FirstCode,
  type OwnNames,
  type Session,
  type Sessions,
} from "../../../../console/src/server/mod.ts";
import type { ConsoleAddress, OidcSignIn, ReturnedSignIn } from "../../../../console/src/server/oidc/mod.ts";

export interface ConsoleParts {
  readonly names: OwnNames;
  readonly sessions: Sessions;
  readonly code: FirstCode;
  readonly keys: KeyRing;
  readonly basePath: string;
  /** Undefined if nobody can sign in with a provider. */
  readonly oidc: OidcSignIn | undefined;
}

/** A request with a live session. */
export interface AdmittedSession {
  readonly session: Session;
  /** Looks the key up again; undefined after it was revoked, rotated or expired, or after the session has ended. */
  readonly credential: () => ValidKey | undefined;
  /** The field `set-cookie` of the answer, after an act of the person. */
  readonly cookie: string | undefined;
}

/** A person who has signed in. */
export interface SignedIn {
  readonly key: ValidKey;
  readonly session: Session;
  readonly pageSecret: string;
  readonly cookie: string;
  /** For the browser's next sign-in with the provider, after one with it. */
  readonly known?: string;
}

/** Decides which requests of browsers have a session. It keeps none: each replica reads the same sealed cookie. */
export class ConsoleDoor {
  readonly #parts: ConsoleParts;
  readonly #signIns = new Rates({ fallback: () => signInRate });

  constructor(parts: ConsoleParts) {
    this.#parts = parts;
  }

  /** Refuses a request that names another host, or that no page of this gate has sent. */
  refusalFor(request: IncomingMessage): Refusal | undefined {
    const origin = this.#parts.names.originOf(request);
    if (origin === undefined) return wrongHost;
    const { headers, method } = request;
    if (headers["x-svc-console"] !== "1") return notOurs("the header X-Svc-Console is missing");
    const site = headers["sec-fetch-site"];
    if (method === "GET")
      return site === undefined || site === "same-origin" ? undefined : notOurs(`its site is ${site}`);
    if (site !== "same-origin") return notOurs(`the header Sec-Fetch-Site is ${site ?? "missing"}`);
    return headers.origin === origin ? undefined : notOurs(`the header Origin is not ${origin}`);
  }

  /** Refuses a request for the page itself only for its host. */
  refusalForHost(request: IncomingMessage): Refusal | undefined {
    return this.#parts.names.originOf(request) === undefined ? wrongHost : undefined;
  }

  /** @returns the live session of a request, or a refusal */
  async admit(request: IncomingMessage, tenant: string | null): Promise<Result<AdmittedSession, Refusal>> {
    const refusal = this.refusalFor(request);
    if (refusal !== undefined) return bad(refusal);
    const { sessions } = this.#parts;
    const scope = this.#scopeOf(tenant);
    const name = this.#cookieName(request, tenant);
    const session = await sessions.read(
      cookiesOf(request, name),
      String(request.headers["x-svc-session"] ?? ""),
      scope,
    );
    if (session === undefined) return bad(noSession);
    const credential = (): ValidKey | undefined => this.#keyOf(session);
    if (credential() === undefined) return bad(noSession);
    // A page that refreshes itself does not keep the session of an absent person open.
    const renewed =
      request.headers["x-svc-background"] === undefined ? await sessions.renew(session, scope) : undefined;
    return good({ session, credential, cookie: renewed && this.#setCookie(request, name, renewed) });
  }

  /** Opens a session for a key. While the gate has no key that decides calls, the terminal's code is needed too. */
  async signIn(
    request: IncomingMessage,
    { tenant, key: text, code }: { readonly tenant: string | null; readonly key: string; readonly code: string },
  ): Promise<Result<SignedIn, Refusal>> {
    const { keys, code: firstCode } = this.#parts;
    const digest = digestOf(text);
    if (keys.known.findDigest(digest)?.tenant !== tenant) return bad(wrongKey);
    await keys.catchUp(); // Another gate may have just revoked the key, or ended its sessions.
    const key = keys.known.findDigest(digest);
    if (key?.tenant !== tenant) return bad(wrongKey);
    const refusal = key.kind === undefined ? this.#charge(key) : refusalForKind(key);
    if (refusal !== undefined) return bad(refusal);
    if (!keys.known.hasApprover && !firstCode.redeem(code)) {
      firstCode.show();
      return bad(code === "" ? codeNeeded : codeWrong);
    }
    return good(await this.#open(request, tenant, { key, digest }));
  }

  /** The name of the provider with which people can sign in; undefined if there is none. */
  async provider(): Promise<string | undefined> {
    return this.#parts.oidc?.name();
  }

  async startOidc(request: IncomingMessage, tenant: string | null): Promise<Result<BegunSignIn, Refusal>> {
    const address = this.#findAddress(request, tenant);
    return (await this.#parts.oidc?.start(address)) ?? bad(noProvider);
  }

  /** Opens a session for the key of a person who comes back from the provider. Only a key that decides calls has one. */
  async finishOidc(
    request: IncomingMessage,
    { tenant, ...returned }: ReturnedSignIn & { readonly tenant: string | null },
  ): Promise<Result<SignedIn, Refusal>> {
    const { keys, oidc } = this.#parts;
    const confirmed = (await oidc?.finish(this.#findAddress(request, tenant), returned)) ?? bad(noProvider);
    if (!confirmed.ok) return confirmed;
    const { digest, known } = confirmed.value;
    const key = keys.known.findDigest(digest);
    if (key === undefined) return bad(wrongKey);
    const refusal = this.#charge(key);
    if (refusal !== undefined) return bad(refusal);
    return good({ ...(await this.#open(request, tenant, { key, digest })), known });
  }

  #charge(key: ValidKey): Refusal | undefined {
    const charged = this.#signIns.charge({ ...key, rate: null });
    return charged?.ok === false ? { ...tooManySignIns, retrySeconds: charged.nextSeconds } : undefined;
  }

  async #open(
    request: IncomingMessage,
    tenant: string | null,
    { key, digest }: { readonly key: ValidKey; readonly digest: string },
  ): Promise<SignedIn> {
    const { keys, sessions } = this.#parts;
    const { cookie, pageSecret, session } = await sessions.open({
      keyDigest: digest,
      row: keys.known.lastRow,
      scope: this.#scopeOf(tenant),
    });
    return {
      key,
      session,
      pageSecret,
      cookie: this.#setCookie(request, this.#cookieName(request, tenant), cookie),
    };
  }

  /** Call this only after the Host header was checked. */
  #findAddress(request: IncomingMessage, tenant: string | null): ConsoleAddress {
    const origin = this.#parts.names.originOf(request);
    if (origin === undefined) throw new Error("a sign-in started under a name that is not the gate's");
    return { origin, base: this.#scopeOf(tenant), tenant, network: networkOf(request.socket.remoteAddress ?? "") };
  }

  /** The field `set-cookie` that removes the session from the browser. */
  noCookie(request: IncomingMessage, tenant: string | null): string {
    return this.#setCookie(request, this.#cookieName(request, tenant), "", 0);
  }

  #keyOf(session: Session): ValidKey | undefined {
    const { keys, sessions } = this.#parts;
    const key = sessions.isLive(session) ? keys.known.findDigest(session.keyDigest) : undefined;
    return key === undefined || keys.known.isSessionEnded(key, session) ? undefined : key;
  }

  #scopeOf(tenant: string | null): string {
    return `${this.#parts.basePath}${tenant === null ? "" : `/t/${tenant}`}/console`;
  }

  /**
   * A browser accepts `__Host-` only from the host itself, over TLS. Safari refuses such a cookie on plain HTTP, so
   * there the name has the port: two gates on one machine must not sign each other's people out.
   */
  #cookieName(request: IncomingMessage, tenant: string | null): string {
    const path = [...this.#parts.basePath.split("/").filter(Boolean), ...(tenant === null ? [] : [tenant])];
    return this.#isSecure(request)
      ? ["__Host-svc", ...path].join("-")
      : ["svc", request.socket.localPort, ...path].join("-");
  }

  #setCookie(request: IncomingMessage, name: string, value: string, seconds: number = sessionMs / 1000): string {
    const secure = this.#isSecure(request) ? "; Secure" : "";
    return `${name}=${value}${secure}; HttpOnly; SameSite=Strict; Path=/; Max-Age=${seconds}`;
  }

  #isSecure(request: IncomingMessage): boolean {
    return this.#parts.names.originOf(request)?.startsWith("https:") === true;
  }
}

function cookiesOf({ headers }: IncomingMessage, name: string): readonly string[] {
  const pairs = (headers.cookie ?? "").split(";").map((pair) => pair.trim());
  const own = pairs.filter((pair) => pair.startsWith(`${name}=`));
  return own.slice(0, cookiesMax).map((pair) => pair.slice(name.length + 1));
}

/** A page of another port can add cookies of the name, and each costs a decryption. */
const cookiesMax = 8;

const signInRate = { perSecond: 1 / 60, burst: limits.signInsOfKeyMax };

const tooManySignIns = refuse(
  "rate-limited",
  `the key has opened ${limits.signInsOfKeyMax} sessions in a short time: one more is possible each minute`,
);

const wrongHost = refuse(
  "wrong-host",
  "the Host header is not a name of this gate: open the console under 127.0.0.1 or localhost with the gate's own port, " +
    "or set SVC_PUBLIC_URL to the address that people use",
);

function notOurs(why: string): Refusal {
  return refuse("wrong-origin", `no page of this gate's console sent the request: ${why}`);
}

const noSession = refuse("unauthorized", "the session has ended, or there is none: sign in to the console");

const wrongKey = refuse("unauthorized", "the key is wrong, revoked or expired, or it is not a key for this console");

const noProvider = refuse("not-found", "this gate has no sign-in with a provider: sign in with a key");

const codeNeeded = refuse(
  "code-needed",
  "no key of this gate can decide calls yet, so the first sign-in needs a code: the gate's terminal shows it now",
);

const codeWrong = refuse(
  "code-needed",
  "the code is wrong or has expired: read it again from the gate's terminal. Five wrong codes end it, and a new one comes after a minute",
);
