/** The message and hint for a CEL function that the contract language leaves out. */
export const leftOut: ReadonlyMap<string, string> = new Map([
  ...["int", "uint", "double"].map(
    (name) => [name, `there is one numeric type, and it is exact: remove \`${name}(...)\``] as const,
  ),
  ["string", "compare values of their own type; a reason prints any value with `{...}`"],
  ["bool", "conditions are booleans already; compare texts with `==`"],
  ["bytes", "JSON has text only"],
  ...pairWithHint("dyn type", "types come from the schemas: give the member a `type`"),
  ...pairWithHint("orValue value or optMap optFlatMap", "write `.?member.orValue(default)`"),
  ["existsOne", "write `exists_one`, with one name for the item"],
  ["transformList", "write `map`, with one name for the item"],
  ...pairWithHint("transformMap transformMapEntry", "send the values as a list, or name each member"),
  ...pairWithHint(
    "charAt format indexOf join lastIndexOf quote replace reverse split substring trim upperAscii",
    "a text is tested as it was sent: `startsWith`, `endsWith`, `contains`, `matches`, `lowerAscii`, `size`",
  ),
  ...pairWithHint(
    "distinct flatten range slice sort sortBy first last",
    "test lists with `exists`, `all`, `filter`, `map`, `size`",
  ),
  ["getHours", 'write `hour(now, "Europe/Berlin")`, with your time zone'],
  ["getDayOfWeek", 'write `day(now, "Europe/Berlin")`, with your time zone'],
  ...pairWithHint(
    "getDate getDayOfMonth getDayOfYear getFullYear getMonth",
    'write `date(now, "Europe/Berlin")`, with your time zone: the result looks like 2026-01-31',
  ),
  ...pairWithHint(
    "getMilliseconds getMinutes getSeconds",
    "compare times with `timestamp(...)` and durations with `duration(...)`",
  ),
]);

function pairWithHint(names: string, hint: string): readonly (readonly [string, string])[] {
  return names.split(" ").map((name) => [name, hint]);
}
