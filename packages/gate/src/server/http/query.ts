import type { FastifyRequest } from "fastify";
import { didYouMean, limits, quote, refuse } from "../../../../core/src/wire/mod.ts";
import { RefusalError } from "../request/body.ts";
import { readMoment } from "../settings/moment.ts";

/** The query of a request's target. */
export interface Query {
  readonly written: string;
  readonly parameters: URLSearchParams;
}

export function queryOf({ url }: FastifyRequest): Query {
  const written = url.includes("?") ? url.slice(url.indexOf("?") + 1) : "";
  return { written, parameters: new URLSearchParams(written) };
}

/** Returns why a query is wrong: a bad escape, or an unknown or repeated parameter; undefined if it is not. */
export function badQuery({ written, parameters }: Query, names: readonly string[]): string | undefined {
  return badEscape(written) ?? unknownParameter(parameters, names);
}

/**
 * Reads the query of a path.
 *
 * @throws {RefusalError} if it, or the value of one of its parameters, is wrong
 */
export function readQuery(request: FastifyRequest, parameters: Parameters = {}): URLSearchParams {
  const query = queryOf(request);
  const problem = badValue(query, parameters);
  if (problem !== undefined) throw new RefusalError(refuse("invalid-query", problem));
  return query.parameters;
}

/** The parameters of a path, each with a function that returns the mistake in a value; undefined if it is valid. */
export type Parameters = Readonly<Record<string, (value: string, name: string) => string | undefined>>;

/** For a parameter that may have any value. */
export const anyText = (): undefined => undefined;

/** Returns why a text is not the number of seconds that a request may wait for a person; undefined if it is. */
export function waitProblem(value: string): string | undefined {
  if (/^[1-9][0-9]?$/.test(value) && Number(value) <= limits.waitSecondsMax) return undefined;
  return `"wait" must be a whole number of seconds from 1 to ${limits.waitSecondsMax}`;
}

/** Returns why a query or the value of one of its parameters is wrong; undefined if none is. */
export function badValue(query: Query, parameters: Parameters): string | undefined {
  const problem = badQuery(query, Object.keys(parameters));
  if (problem !== undefined) return problem;
  for (const [name, value] of query.parameters) {
    const wrong = parameters[name]?.(value, name);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

/**
 * Reads `since` and `until`, in milliseconds since the epoch; undefined if they are absent.
 *
 * @param query with valid values
 * @throws {RefusalError} if the period ends before it starts
 */
export function readPeriod(query: URLSearchParams): Period {
  const moment = (name: string): number | undefined => readMoment(query.get(name) ?? "");
  const [since, until] = [moment("since"), moment("until")];
  if (since !== undefined && until !== undefined && since > until)
    throw new RefusalError(refuse("invalid-query", '"since" must not be after "until"'));
  return { since, until };
}

interface Period {
  readonly since: number | undefined;
  readonly until: number | undefined;
}

/** Finds a percent sign that the decoder would leave as it is. */
function badEscape(written: string): string | undefined {
  try {
    decodeURIComponent(written);
    return undefined;
  } catch {
    return "the query has a percent sign that does not start an escape of UTF-8";
  }
}

function unknownParameter(query: URLSearchParams, names: readonly string[]): string | undefined {
  for (const name of query.keys()) {
    if (!names.includes(name)) {
      if (names.length === 0) return `unknown parameter ${quote(name)}; this path takes none`;
      return `unknown parameter ${quote(name)}; ${didYouMean(name, names, `parameters are ${names.join(", ")}`, '"')}`;
    }
    if (query.getAll(name).length > 1) return `the parameter "${name}" appears twice`;
  }
  return undefined;
}

/** Returns why a value is not a whole number from 1 to a maximum. */
export function badNumber(value: string, name: string, max: number): string | undefined {
  if (/^[1-9][0-9]{0,15}$/.test(value) && Number(value) <= max) return undefined;
  return `"${name}" must be a whole number from 1 to ${max}`;
}

export function badMoment(value: string, name: string): string | undefined {
  if (readMoment(value) !== undefined) return undefined;
  const hint = value.includes(" ") ? "; write a + as %2B in a query" : "";
  return (
    `"${name}" must be a moment such as 2026-01-31T12:00:00Z, a day such as 2026-01-31, or milliseconds since the epoch as ` +
    `in \`at\` of a receipt${hint}`
  );
}
