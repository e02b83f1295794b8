import { main } from "./program.ts";

const exitCode = await main(process.argv.slice(2), process);
// Resources that a library leaves open (a solver's threads) must not keep a finished command running.
process.exit(exitCode);
