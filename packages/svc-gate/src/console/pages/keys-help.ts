import { h, type JSX } from "preact";
import { Dialog } from "../parts.ts";

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
    h(
      "table",
      { class: "keys" },
      h(
        "tbody",
        null,
        keys.map(([key, what]) =>
          h("tr", { key }, h("th", { scope: "row" }, h("kbd", null, key)), h("td", null, what)),
        ),
      ),
    ),
  );
}
