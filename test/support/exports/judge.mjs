/** Prints a JavaScript verifier's result for each target: `judge.mjs VERIFIER < JOBS`, both JSON. */
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { verify } = await import(pathToFileURL(process.argv[2]).href);
const reports = JSON.parse(readFileSync(0, "utf8")).map(({ target, keys, witnesses, chain }) => {
  try {
    return verify(target, keys, witnesses, chain);
  } catch (error) {
    // For a verifier that was broken on purpose, any exception counts as an answer.
    return { thrown: String(error) };
  }
});
console.log(JSON.stringify(reports));
