import { addressFunctions } from "../../../../readers/src/net/address.ts";
import { calendarFunctions } from "./values/calendar.ts";
import { emailFunctions } from "../../../../readers/src/net/email.ts";
import type { ContractFunction } from "../core/function.ts";
import { globFunctions } from "../../../../readers/src/path/glob.ts";
import { hostFunctions } from "../../../../readers/src/net/host.ts";
import { mentionFunctions } from "./text/mentions.ts";
import { patchFunctions } from "../../../../readers/src/path/patch.ts";
import { pathFunctions } from "../../../../readers/src/path/path.ts";
import { shellFunctions } from "../../../../readers/src/shell/shell.ts";
import { similarFunctions } from "./text/similar.ts";
import { sizeFunctions } from "./values/size.ts";
import { sqlFunctions } from "../../../../readers/src/sql/sql.ts";
import { sumFunctions } from "./values/sum.ts";
import { textFunctions } from "./text/text.ts";
import { timeFunctions } from "./values/time.ts";
import { urlFunctions } from "../../../../readers/src/net/url.ts";

/** The functions that conditions may call. To add one, add an entry to its list in the folder `functions`. */
export const functions: readonly ContractFunction[] = [
  ...sizeFunctions,
  ...textFunctions,
  ...timeFunctions,
  ...calendarFunctions,
  ...urlFunctions,
  ...hostFunctions,
  ...addressFunctions,
  ...pathFunctions,
  ...globFunctions,
  ...emailFunctions,
  ...similarFunctions,
  ...shellFunctions,
  ...sqlFunctions,
  ...patchFunctions,
  ...mentionFunctions,
  ...sumFunctions,
];

/** The message and hint for a CEL function that the contract language leaves out. */
export const leftOut: ReadonlyMap<string, string> = new Map([
  ...["int", "uint", "double"].map(
    (name) => [name, `there is one numeric type, and it is exact: remove \`${name}(...)\``] as const,
  ),
  ["string", "compare values of their own type; a reason prints any value with `{...}`"],
  ["bool", "conditions are booleans already; compare texts with `==`"],
  ["bytes", "JSON has text only"],
  ...named("dyn type", "types come from the schemas: give the member a `type`"),
  ...named("orValue value or optMap optFlatMap", "write `.?member.orValue(default)`"),
  ["existsOne", "write `exists_one`, with one name for the item"],
  ["transformList", "write `map`, with one name for the item"],
  ...named("transformMap transformMapEntry", "send the values as a list, or name each member"),
  ...named(
    "charAt format indexOf join lastIndexOf quote replace reverse split substring trim upperAscii",
    "a text is tested as it was sent: `startsWith`, `endsWith`, `contains`, `matches`, `lowerAscii`, `size`",
  ),
  ...named(
    "distinct flatten range slice sort sortBy first last",
    "test lists with `exists`, `all`, `filter`, `map`, `size`",
  ),
  ["getHours", 'write `hour(now, "Europe/Berlin")`, with your time zone'],
  ["getDayOfWeek", 'write `day(now, "Europe/Berlin")`, with your time zone'],
  ...named(
    "getDate getDayOfMonth getDayOfYear getFullYear getMonth",
    'write `date(now, "Europe/Berlin")`, with your time zone: the result looks like 2026-01-31',
  ),
  ...named(
    "getMilliseconds getMinutes getSeconds",
    "compare times with `timestamp(...)` and durations with `duration(...)`",
  ),
]);

function named(names: string, hint: string): readonly (readonly [string, string])[] {
  return names.split(" ").map((name) => [name, hint]);
}
