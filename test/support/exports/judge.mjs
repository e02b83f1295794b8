/** What a verifier in JavaScript says of each target: `judge.mjs VERIFIER < JOBS`, both JSON. */
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { verify } = await import(pathToFileURL(process.argv[2]).href);
const reports = JSON.parse(readFileSync(0, "utf8")).map(({ target, keys, witnesses, chain }) => {
  try {
    return verify(target, keys, witnesses, chain);
  } catch (error) {
    // Of a verifier that was broken on purpose: whatever it throws is an answer.
    return { thrown: String(error) };
  }
});
console.log(JSON.stringify(reports));
