import {
  boolean,
  type ContractFunction,
  EvaluationError,
  library,
  type PatternProblem,
} from "../../../core/src/contract/function.ts";
import { isPlainIpv4 } from "./address.ts";

const tldts = library("tldts", () => import("tldts"));

export const loadDomains: () => Promise<void> = tldts.load;

/** Host names. */
export const hostFunctions: readonly ContractFunction[] = [
  {
    name: "underDomain",
    style: "method",
    parameters: ["string", "string"],
    result: boolean,
    doc:
      "Is the host the domain or one of its subdomains, label by label (`endsWith` would accept `evil-example.com` for " +
      "`example.com`)? In lower case or upper case. A text that is not a host name is an error; an IP address is under no domain.",
    examples: [
      ['"api.example.com".underDomain("example.com")', "true"],
      ['"evil-example.com".underDomain("example.com")', "false"],
    ],
    checkLiteral: domainProblem,
    run: ([host, domain]) => {
      const problem = domainProblem(domain as string);
      if (problem !== undefined) throw new EvaluationError(problem.message);
      const name = (host as string).toLowerCase();
      if (isPlainIpv4(name) || /^[0-9a-f]*:[0-9a-f:]+$/.test(name)) return false;
      if (!isHostName(name)) throw new EvaluationError(`"${name.slice(0, 64)}" is not the name of a host`);
      return `.${name}`.endsWith(`.${(domain as string).toLowerCase()}`);
    },
  },
];

/**
 * Is it a host name of RFC 1123, without a dot at the end? Only letters, digits and hyphens: other alphabets are
 * written `xn--`, so that a name has one spelling.
 */
export function isHostName(text: string): boolean {
  if (text.length > 253 || endsInNumber(text)) return false;
  return text.split(".").every((label) => /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/.test(label));
}

/** Such a host is either an IP address in some spelling or invalid. */
function endsInNumber(host: string): boolean {
  return /^(?:[0-9]+|0[xX][0-9A-Fa-f]*)$/.test(host.slice(host.lastIndexOf(".") + 1));
}

/**
 * The domain that somebody registered, or received under a suffix for other people's names (`evil.github.io`), in lower
 * case. Empty for such a suffix, and for names under no suffix of the public list (`localhost`, `db.internal`).
 */
export function registrableDomain(host: string): string {
  const found = tldts.use().parse(host, { allowPrivateDomains: true, extractHostname: false });
  return found.isIcann === true || found.isPrivate === true ? (found.domain ?? "") : "";
}

function domainProblem(text: string): PatternProblem | undefined {
  if (isHostName(text)) return undefined;
  return {
    message: `"${text.slice(0, 64)}" is not a domain`,
    hint: 'write it without a dot before or after it, such as "example.com"',
  };
}
