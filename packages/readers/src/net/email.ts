import { type ContractFunction, EvaluationError, recordType, string } from "../../../core/src/contract/function.ts";
import { isHostName, loadDomains, registrableDomain } from "./host.ts";

/** RFC 5321, 4.5.3.1: the maximum lengths of a mailbox and a path, without the angle brackets. */
const localMax = 64;
const addressMax = 254;

/** Email addresses. */
export const emailFunctions: readonly ContractFunction[] = [
  {
    name: "email",
    style: "function",
    parameters: ["string"],
    result: recordType({ local: string, host: string, domain: string }),
    doc:
      "One bare e-mail address: `local` (as written), `host` (in lower case), `domain` (the registered one, or empty). Display " +
      "names, comments, quotes, routes (`%`, `!`), lists, other alphabets and IP addresses are errors.",
    examples: [
      ['email("ann@Mail.Example.com").host', '"mail.example.com"'],
      ['email("ann@mail.example.com").domain == "example.com"', "true"],
    ],
    load: loadDomains,
    run: ([text]) => {
      const { local, host } = readEmail(text as string);
      return new Map([
        ["local", local],
        ["host", host],
        ["domain", registrableDomain(host)],
      ]);
    },
  },
];

/** @throws {EvaluationError} if two mail programs could send to different addresses */
function readEmail(text: string): { readonly local: string; readonly host: string } {
  if (text.length > addressMax) refuse(`it is over ${addressMax} characters long`);
  const parts = /^([^@]+)@([^@]+)$/.exec(text);
  if (parts === null) refuse("it is not one name, one `@` and one host");
  const [, local = "", host = ""] = parts;
  if (local.length > localMax) refuse(`its name is over ${localMax} characters long`);
  if (!/^[A-Za-z0-9_+'-]+(?:\.[A-Za-z0-9_+'-]+)*$/.test(local))
    refuse("its name has characters other than letters, digits and `_+'-`, with single dots between them");
  // Exchange decodes `IMCEASMTP-bob+40evil+2Ecom` to `bob@evil.com`. Without `=`, SRS and list addresses contain no
  // other address.
  if (/^imcea/i.test(local)) refuse("its name contains another address (IMCEA)");
  if (local.startsWith("-")) refuse("it starts like an option");
  if (!host.includes(".") || !isHostName(host)) refuse("its host is not a name with a dot in it");
  return { local, host: host.toLowerCase() };
}

function refuse(why: string): never {
  throw new EvaluationError(`an e-mail address that is in doubt: ${why}`);
}
