import type { ClientAuth, Configuration, IDToken } from "openid-client";
import { bad, good, isPrivateUrl, quote, refuse, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import { askProvider, askSeconds } from "./ask.ts";
import { isGroupName, type OidcSettings } from "./settings.ts";

/** One sign-in, as it started. Nobody but the gate can read it. */
export interface Flow {
  readonly state: string;
  readonly nonce: string;
  /** The secret whose digest the provider knows (RFC 7636). */
  readonly verifier: string;
  /** Where the provider sends the browser back to. */
  readonly redirect: string;
}

/** Who has signed in, as the provider states it. */
export interface Account {
  readonly subject: string;
  /** The names of groups, without a prefix. */
  readonly groups: readonly string[];
}

type Client = typeof import("openid-client");

/** A key has at most as many other groups. */
const groupsMax = 16;

/** How far the provider's clock may be ahead of this one, in seconds. */
const clockAheadMax = 60;

/** A provider of OpenID Connect: the code flow with PKCE. */
export class Provider {
  readonly #client: Client;
  readonly #config: Configuration;
  readonly #settings: OidcSettings;

  private constructor(client: Client, config: Configuration, settings: OidcSettings) {
    this.#client = client;
    this.#config = config;
    this.#settings = settings;
  }

  /** Reads the provider's own description. The package is loaded only here. */
  static discover(settings: OidcSettings): Promise<Result<Provider, Refusal>> {
    return catchProviderErrors(async () => {
      const client = await import("openid-client");
      const issuer = new URL(settings.issuer);
      const config = await client.discovery(issuer, settings.clientId, undefined, authenticationOf(client, settings), {
        timeout: askSeconds,
        [client.customFetch]: askProvider,
        execute: [
          client.enableNonRepudiationChecks,
          // `askProvider` then still refuses plain HTTP to other machines.
          ...(issuer.protocol === "http:" ? [client.allowInsecureRequests] : []),
        ],
      });
      const stated = config.serverMetadata().issuer;
      if (stated !== settings.issuer)
        return bad(refuse("sign-in-refused", `the provider calls itself ${quote(stated)}: SVC_OIDC must name it so`));
      return good(new Provider(client, config, settings));
    });
  }

  /** Where the browser goes. */
  async address({ state, nonce, verifier, redirect }: Flow): Promise<Result<URL, Refusal>> {
    const url = this.#client.buildAuthorizationUrl(this.#config, {
      redirect_uri: redirect,
      scope: this.#settings.scopes.join(" "),
      state,
      nonce,
      code_challenge: await this.#client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
    });
    if (isPrivateUrl(url)) return good(url);
    return bad(refuse("sign-in-refused", "the provider's page has an address without TLS"));
  }

  /**
   * Redeems the code of an answer, and checks the ID token: its signature, issuer, audience, client, nonce and times.
   *
   * @param answer the query with which the browser came back
   */
  account({ state, nonce, verifier, redirect }: Flow, answer: URLSearchParams): Promise<Result<Account, Refusal>> {
    return catchProviderErrors(async () => {
      const url = new URL(`${redirect}?${answer.toString()}`);
      const tokens = await this.#client.authorizationCodeGrant(this.#config, url, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (claims === undefined) return bad(refuse("sign-in-refused", "the provider's answer has no ID token"));
      const fault = faultInToken(claims, this.#settings);
      if (fault !== undefined) return bad(refuse("sign-in-refused", fault));
      const { groupsClaim } = this.#settings;
      const asks = claims[groupsClaim] === undefined && this.#config.serverMetadata().userinfo_endpoint !== undefined;
      const stated = asks
        ? (await this.#client.fetchUserInfo(this.#config, tokens.access_token, claims.sub))[groupsClaim]
        : claims[groupsClaim];
      const groups = groupsIn(stated, this.#settings);
      return groups.ok ? good({ subject: claims.sub, groups: groups.value }) : groups;
    });
  }
}

/** RFC 8414: a provider that lists no methods takes the secret in the Authorization header. */
function authenticationOf(client: Client, { clientSecret }: OidcSettings): ClientAuth {
  if (clientSecret === undefined) return client.None();
  return (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported;
    const isBasic = methods === undefined || methods.includes("client_secret_basic");
    return (isBasic ? client.ClientSecretBasic : client.ClientSecretPost)(clientSecret)(server, ...rest);
  };
}

/** What `openid-client` leaves to its caller (OpenID Connect Core, section 3.1.3.7, steps 5 and 10). */
function faultInToken({ azp, iat }: IDToken, { clientId }: OidcSettings): string | undefined {
  if (azp !== undefined && azp !== clientId)
    return "the provider made the ID token for another client (azp): sign in again";
  if (iat <= Date.now() / 1000 + clockAheadMax) return undefined;
  return "the ID token is from the future (iat): compare the provider's clock with the gate's";
}

function groupsIn(stated: unknown, { groups, groupsClaim }: OidcSettings): Result<readonly string[], Refusal> {
  const list = typeof stated === "string" ? [stated] : (stated ?? []);
  if (!Array.isArray(list) || list.some((each) => typeof each !== "string"))
    return bad(
      refuse("sign-in-refused", `the provider's claim ${quote(groupsClaim)} is not a list of names of groups`),
    );
  const names = (list as readonly string[]).flatMap((each) => {
    const name = groups === undefined ? each : groups.get(each);
    return name !== undefined && isGroupName(name) ? [name] : [];
  });
  const found = [...new Set(names)];
  if (found.length <= groupsMax) return good(found);
  return bad(
    refuse(
      "sign-in-refused",
      `the provider states over ${groupsMax} groups: an administrator lists those that count as \`groups\` in SVC_OIDC`,
    ),
  );
}

/** Failures of the provider are refusals. No sentence has a token, a code, or a text of the provider. */
async function catchProviderErrors<Value>(
  work: () => Promise<Result<Value, Refusal>>,
): Promise<Result<Value, Refusal>> {
  try {
    return await work();
  } catch (error) {
    return bad(problemOf(error as ProviderError));
  }
}

/** What errors of `openid-client` and of Node have. */
interface ProviderError extends Error {
  readonly code?: unknown;
  /** The provider's own word for a refusal, such as `access_denied`. */
  readonly error?: unknown;
}

function problemOf({ code, error, cause }: ProviderError): Refusal {
  const unavailable = (why: string): Refusal => refuse("provider-unavailable", `the provider of the sign-in ${why}`);
  if (code === "OAUTH_TIMEOUT") return unavailable(`did not answer within ${askSeconds} s: try again`);
  if (error !== undefined) return refuse("sign-in-refused", `the provider refused the sign-in (${wordOf(error)})`);
  if (typeof code === "string" && unreadable.includes(code))
    return unavailable(`gave an answer that is not one of OpenID Connect (${code})`);
  if (code === undefined)
    return unavailable(`cannot be reached (${wordOf((cause as ProviderError | undefined)?.code)})`);
  const claim = (cause as { readonly cause?: { readonly claim?: unknown } } | undefined)?.cause?.claim;
  const which = claim === undefined ? "" : `, ${wordOf(claim)}`;
  return refuse("sign-in-refused", `the provider's answer cannot be trusted (${wordOf(code)}${which}): sign in again`);
}

const unreadable: readonly string[] = [
  "OAUTH_RESPONSE_IS_NOT_CONFORM",
  "OAUTH_RESPONSE_IS_NOT_JSON",
  "OAUTH_PARSE_ERROR",
];

function wordOf(value: unknown): string {
  return typeof value === "string" && /^\w{1,64}$/.test(value) ? value : "no code";
}
