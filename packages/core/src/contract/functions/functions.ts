import type { ContractFunction } from "../core/function.ts";
import { mentionFunctions } from "./text/mentions.ts";
import { similarFunctions } from "./text/similar.ts";
import { textFunctions } from "./text/text.ts";
import { calendarFunctions } from "./values/calendar.ts";
import { sizeFunctions } from "./values/size.ts";
import { sumFunctions } from "./values/sum.ts";
import { timeFunctions } from "./values/time.ts";

/** The functions of every contract. Those that read texts in a language of their own are in packages/readers. */
export const ownFunctions: readonly ContractFunction[] = [
  ...sizeFunctions,
  ...textFunctions,
  ...timeFunctions,
  ...calendarFunctions,
  ...similarFunctions,
  ...mentionFunctions,
  ...sumFunctions,
];
