import type { FastifyRequest } from "fastify";
import { nearest, quote } from "../../wire/mod.ts";

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

/** Finds a percent sign that the decoder would leave as it is. */
function badEscape(written: string): string | undefined {
  try {
    decodeURIComponent(written);
    return undefined;
  } catch {
    return "the query has a percent sign that does not begin an escape of UTF-8";
  }
}

function unknownParameter(query: URLSearchParams, names: readonly string[]): string | undefined {
  for (const name of query.keys()) {
    if (!names.includes(name)) {
      if (names.length === 0) return `unknown parameter ${quote(name)}; this path takes none`;
      const near = nearest(name, names);
      return `unknown parameter ${quote(name)}${near === undefined ? `; parameters are ${names.join(", ")}` : `; did you mean "${near}"?`}`;
    }
    if (query.getAll(name).length > 1) return `the parameter "${name}" appears twice`;
  }
  return undefined;
}
