import { h, type ComponentChildren, type JSX } from "preact";
import { useState } from "preact/hooks";
import { Decimal, misreadAs, readJson, type Json, type JsonObject } from "../wire/mod.ts";
import { Text } from "./text.ts";

interface CallTextProps {
  /** The JSON text as the gate received it, without white space outside strings; `null` if there is none. */
  readonly text: string;
  readonly label: string;
  /** Paths of members that the agent may still change, such as `input.note`. */
  readonly mayDiffer?: readonly string[];
  /** The name of the whole in paths: `input` or `platform`. */
  readonly root: string;
}

/**
 * Shows an object of a call whole, as a tree or as the text that was received. The gate's own reader reads it, so every
 * number has its characters.
 */
export function CallText({ text, label, mayDiffer = [], root }: CallTextProps): JSX.Element {
  const [isReceived, setReceived] = useState(false);
  const read = readJson(text);
  if (!read.ok) return h("p", { class: "quiet" }, text === "null" ? "none" : h(Text, { of: text }));
  const choose = (received: boolean, name: string): JSX.Element =>
    h(
      "button",
      { type: "button", class: "tab", "aria-pressed": isReceived === received, onClick: () => setReceived(received) },
      name,
    );
  return h(
    "div",
    { class: "call" },
    h("div", { class: "tabs", role: "group", "aria-label": `${label}: how to show it` }, [
      choose(false, "Members"),
      choose(true, "As received"),
    ]),
    isReceived
      ? h("pre", { class: "received", tabIndex: 0, "aria-label": `${label}, as received` }, h(Text, { of: text }))
      : h(Members, { of: read.value.members, path: root, mayDiffer }),
  );
}

interface MembersProps {
  readonly of: JsonObject;
  readonly path: string;
  readonly mayDiffer: readonly string[];
}

function Members({ of, path, mayDiffer }: MembersProps): JSX.Element {
  if (of.size === 0) return h("p", { class: "quiet" }, "{} (no members)");
  return h(
    "ul",
    { class: "tree" },
    [...of].map(([name, value]) => {
      const own = `${path}.${name}`;
      const free = mayDiffer.includes(own) && h("span", { class: "note" }, "the agent may still change this");
      return h(Branch, { key: name, name, value, path: own, mayDiffer }, free);
    }),
  );
}

interface BranchProps extends Omit<MembersProps, "of"> {
  readonly name: string;
  readonly value: Json;
  readonly children?: ComponentChildren;
}

function Branch({ name, value, path, mayDiffer, children }: BranchProps): JSX.Element {
  const label = h("span", { class: "name" }, h(Text, { of: name }));
  if (value instanceof Map)
    return h("li", null, label, children, h(Members, { of: value as JsonObject, path, mayDiffer }));
  if (!Array.isArray(value)) return h("li", { class: "leaf" }, label, h(Scalar, { of: value }), children);
  const items = value as readonly Json[];
  if (items.length === 0)
    return h("li", { class: "leaf" }, label, h("span", { class: "quiet" }, "[] (empty)"), children);
  return h(
    "li",
    null,
    label,
    children,
    h(
      "ol",
      { class: "tree", start: 0 },
      items.map((item, at) => h(Branch, { key: at, name: String(at), value: item, path: `${path}[${at}]`, mayDiffer })),
    ),
  );
}

/** A value that is neither an object nor a list. */
export function Scalar({ of }: { readonly of: Json }): JSX.Element {
  if (typeof of === "string") return h("span", { class: "value string" }, '"', h(Text, { of }), '"');
  if (typeof of !== "number" && !(of instanceof Decimal)) return h("span", { class: "value word" }, JSON.stringify(of));
  const misread = misreadAs(of);
  return h(
    "span",
    { class: "value number" },
    typeof of === "number" ? String(of) : of.text,
    misread !== undefined && h("span", { class: "note" }, `programs may read this as ${misread}`),
  );
}
