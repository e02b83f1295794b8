import {
  boolean,
  library,
  recordType,
  size,
  string,
  type ContractFunction,
} from "../../../core/src/contract/function.ts";
import { loadAddresses } from "./address.ts";
import { loadDomains } from "./host.ts";

const reader = library("the reader of URLs", async () => {
  await Promise.all([loadAddresses(), loadDomains()]);
  return import("./read-url.ts");
});

/** Web addresses. */
export const urlFunctions: readonly ContractFunction[] = [
  {
    name: "url",
    style: "function",
    parameters: ["string"],
    result: recordType({
      scheme: string,
      host: string,
      port: size,
      path: string,
      query: string,
      domain: string,
      isAddress: boolean,
      public: boolean,
    }),
    doc:
      "A URL of http, https, ws, wss or ftp that every parser reads alike: `scheme` and `host` in lower case, `port`, " +
      "`path`, `query` (as written, or empty), `domain` (the registered one, or empty), `isAddress` (the host is an IP " +
      "address), `public` (an address routed on the internet; a name never is, because it may resolve to any address).",
    examples: [
      ['url("https://API.example.co.uk/v1?x=1").domain', '"example.co.uk"'],
      ['url("http://169.254.169.254/latest/").public', "false"],
    ],
    load: reader.load,
    cost: ([text]) => 16 + ((text as string).length >> 2),
    run: ([text]) => reader.use().readUrl(text as string),
  },
];
