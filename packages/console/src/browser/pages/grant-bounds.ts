import { h, type JSX } from "preact";
import { restWords } from "../../../../core/src/wire/mod.ts";
import { el } from "../elements.ts";
import { Text } from "../text.ts";

interface GrantBoundsProps {
  readonly of: Readonly<Record<"free" | "least" | "most" | "pins" | "sums", readonly string[]>> & {
    readonly form?: object;
  };
}

/** What a grant binds in the calls that it lets through, and all that may differ. */
export function GrantBounds({ of }: GrantBoundsProps): JSX.Element {
  const bounds = [
    ["The same in each call", of.form === undefined ? of.pins : [restWords]],
    ["At most as in the source call", [...of.sums, ...of.most]],
    ["At least as in the source call", of.least],
  ] as const;
  return el.p(
    { class: "quiet" },
    bounds.map(
      ([words, names]) =>
        names.length > 0 && el.span({ key: words }, `${words}: `, h(Text, { of: names.join(", ") }), ". "),
    ),
    "May differ: ",
    h(Text, { of: of.free.join(", ") || "nothing" }),
    ".",
  );
}
