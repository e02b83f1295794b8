import { ownFunctions, type ContractFunction } from "../../core/src/contract/function.ts";
import { commandFunctions } from "./commands/functions.ts";
import { addressFunctions } from "./net/address.ts";
import { emailFunctions } from "./net/email.ts";
import { hostFunctions } from "./net/host.ts";
import { urlFunctions } from "./net/url.ts";
import { globFunctions } from "./path/glob.ts";
import { patchFunctions } from "./path/patch.ts";
import { pathFunctions } from "./path/path.ts";
import { shellFunctions } from "./shell/functions.ts";
import { sqlFunctions } from "./sql/functions.ts";

/** All functions that conditions may call: those of every contract, and the readers. */
export const functions: readonly ContractFunction[] = [
  ...ownFunctions,
  ...urlFunctions,
  ...hostFunctions,
  ...addressFunctions,
  ...pathFunctions,
  ...globFunctions,
  ...emailFunctions,
  ...shellFunctions,
  ...commandFunctions,
  ...sqlFunctions,
  ...patchFunctions,
];
