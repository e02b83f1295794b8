import type { FastifyRequest } from "fastify";
import { nearest, quote } from "../../wire/mod.ts";

/** What stands behind a path's question mark. */
export interface Query {
  readonly written: string;
  readonly parameters: URLSearchParams;
}

export function queryOf({ url }: FastifyRequest): Query {
  const written = url.includes("?") ? url.slice(url.indexOf("?") + 1) : "";
  return { written, parameters: new URLSearchParams(written) };
}

/** Why a query cannot be taken: an escape, a name that is not known, or one that stands twice; undefined where it can. */
export function badQuery({ written, parameters }: Query, names: readonly string[]): string | undefined {
  return badEscape(written) ?? unknownParameter(parameters, names);
}

/** What would be read as another text than was meant. */
function badEscape(written: string): string | undefined {
  try {
    decodeURIComponent(written);
    return undefined;
  } catch {
    return "the query has a percent sign that does not stand for UTF-8";
  }
}

function unknownParameter(query: URLSearchParams, names: readonly string[]): string | undefined {
  for (const name of query.keys()) {
    if (!names.includes(name)) {
      if (names.length === 0) return `unknown parameter ${quote(name)}; this path takes none`;
      const near = nearest(name, names);
      return `unknown parameter ${quote(name)}${near === undefined ? `; parameters are ${names.join(", ")}` : `; did you mean "${near}"?`}`;
    }
    if (query.getAll(name).length > 1) return `the parameter "${name}" stands twice`;
  }
  return undefined;
}
