import { h, type JSX } from "preact";
import { el } from "../elements.ts";
import { Dialog, table } from "../parts.ts";

const keys = [
  ["j", "the next call"],
  ["k", "the call before"],
  ["Enter", "open the call"],
  ["x", "select the call, to decide several together"],
  ["a or d", "open the call at its decision; no key decides"],
  ["?", "this list"],
  ["Escape", "close a dialog"],
] as const;

export function KeysHelp({ onClose }: { readonly onClose: () => void }): JSX.Element {
  return h(
    Dialog,
    { title: "Keyboard", onClose },
    table(
      "keys",
      keys.map(([key, what]) => el.tr({ key }, el.th({ scope: "row" }, el.kbd(key)), el.td(what))),
    ),
  );
}
