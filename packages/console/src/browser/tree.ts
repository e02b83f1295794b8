import { h, type ComponentChildren, type JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { Decimal, memberBelow, misreadAs, readJson, type Json, type JsonObject } from "../../../core/src/wire/mod.ts";
import { el } from "./elements.ts";
import { elementsOf, isShownWhole, runsLeftward, Text } from "./text.ts";

interface CallTextProps {
  /** The JSON text as the gate received it, without white space outside strings; `null` if there is none. */
  readonly text: string;
  readonly label: string;
  /** Paths of members that the agent may still change, such as `input.note`. */
  readonly mayDiffer?: readonly string[];
  /** The name of the whole in paths: `input` or `platform`. */
  readonly root: string;
  /** The most elements before a person opens more. */
  readonly room?: number;
}

/** The most elements of a call before a person opens more of it. A slow browser makes them in a second. */
export const callRoom = 4000;
/** Each time that a person asks for more, the room grows by this factor. */
const growth = 4;
/** In a call without room, one object or list gets this part of it, so that a long list hides none of its neighbours. */
const shareOfOne = 1 / 16;

/**
 * Shows an object of a call, as a tree or as the text that was received. The gate's own reader reads it, so every number
 * has its characters. A person opens the rest of a large call.
 */
export function CallText({
  text,
  label,
  mayDiffer = [],
  root,
  room: firstRoom = callRoom,
}: CallTextProps): JSX.Element {
  const [isReceived, setReceived] = useState(false);
  const [room, setRoom] = useState(firstRoom);
  const read = useMemo(() => readJson(text), [text]);
  const view = useMemo(() => viewOf(read.ok ? read.value.members : new Map(), room), [read, room]);
  if (!read.ok) return el.p({ class: "quiet" }, text === "null" ? "none" : h(Text, { of: text }));
  const choose = (received: boolean, name: string): JSX.Element =>
    el.button(
      { type: "button", class: "tab", "aria-pressed": isReceived === received, onClick: () => setReceived(received) },
      name,
    );
  return el.div(
    { class: "call" },
    el.div({ class: "tabs", role: "group", "aria-label": `${label}: how to show it` }, [
      choose(false, "Members"),
      choose(true, "As received"),
    ]),
    isReceived
      ? el.pre({ class: "received", tabIndex: 0, "aria-label": `${label}, as received` }, h(Text, { of: text }))
      : h(Entries, { of: read.value.members, path: root, level: 1, mayDiffer, view }),
    !isReceived &&
      view.left > 0 &&
      el.button(
        { type: "button", onClick: () => setRoom(room * growth) },
        `Show more of the ${view.left.toLocaleString("en-US")} values that are not shown`,
      ),
  );
}

/** What a page says beside its buttons if it does not show all of a call. */
export const opensText = "Parts open on request. Open them before you decide.";

/** Does a page show all of a call's text, such as `tool_input`, before a person opens more of it? */
export function isCallShownWhole(text: string, room: number = callRoom): boolean {
  const read = readJson(text);
  return !read.ok || viewOf(read.value.members, room).isWhole;
}

/** The part of a call that a page shows. */
interface View {
  /** The number of first entries that are shown, for each object and list that is not shown whole. */
  readonly shown: ReadonlyMap<Json, number>;
  /** The entries that are not shown, without those inside them. */
  readonly left: number;
  /** True if each entry and each text is shown whole. */
  readonly isWhole: boolean;
}

function viewOf(call: JsonObject, room: number): View {
  const view = fill(call, room, room);
  return view.left === 0 ? view : fill(call, room, room * shareOfOne);
}

/** Fills the room from the outside to the inside, so that no inner entry hides an outer one. */
function fill(call: JsonObject, room: number, roomOfOne: number): View {
  const shown = new Map<Json, number>();
  const containers: Json[] = [call];
  let [used, left, isWhole] = [0, 0, true];
  for (const container of containers) {
    const entries = entriesOf(container);
    const end = Math.min(room, used + roomOfOne);
    let at = 0;
    for (; at < entries.length && used < end; at += 1) {
      const [name, value] = entries[at] ?? ["", null];
      const cost = elementsOfEntry + elementsOf(name) + (typeof value === "string" ? elementsOf(value) : 0);
      if (at > 0 && used + cost > end) break;
      used += cost;
      isWhole &&= isShownWhole(name) && (typeof value !== "string" || isShownWhole(value));
      if (hasEntries(value)) containers.push(value);
    }
    if (at === entries.length) continue;
    shown.set(container, at);
    left += entries.length - at;
  }
  return { shown, left, isWhole: isWhole && left === 0 };
}

/** A line, its name, its value and a note. */
const elementsOfEntry = 5;

function hasEntries(value: Json): boolean {
  return value instanceof Map ? value.size > 0 : Array.isArray(value) && value.length > 0;
}

function entriesOf(value: Json): readonly (readonly [name: string, value: Json])[] {
  if (value instanceof Map) return [...(value as JsonObject)];
  return Array.isArray(value) ? (value as readonly Json[]).map((item, at) => [String(at), item]) : [];
}

interface EntriesProps {
  readonly of: Json;
  /** Undefined inside a list: contracts have no path for what is in one. */
  readonly path: string | undefined;
  /** 1 for the members of the call. */
  readonly level: number;
  readonly mayDiffer: readonly string[];
  readonly view: View;
}

/** Deeper levels are not indented, because a phone has no room for them. Each line has the number of its level. */
const indentsMax = 6;

/** The members of an object, or the items of a list. */
function Entries({ of, path, level, mayDiffer, view }: EntriesProps): JSX.Element {
  const entries = entriesOf(of);
  const isObject = of instanceof Map;
  if (entries.length === 0) return el.p({ class: "quiet" }, isObject ? "{} (no members)" : "[] (empty)");
  const shown = view.shown.get(of) ?? entries.length;
  const lines = entries.slice(0, shown).map(([name, value]) => {
    const own = isObject && path !== undefined ? memberBelow(path, name) : undefined;
    const free =
      own !== undefined && mayDiffer.includes(own) && el.span({ class: "note" }, "the agent may still change this");
    return h(Entry, { key: name, name, value, path: own, level, mayDiffer, view }, free);
  });
  const rest = shown < entries.length && el.li({ class: "note" }, `${entries.length - shown} more are not shown`);
  const style = level > indentsMax ? "tree deep" : "tree";
  return isObject ? el.ul({ class: style }, lines, rest) : el.ol({ class: style, start: 0 }, lines, rest);
}

interface EntryProps extends Omit<EntriesProps, "of"> {
  readonly name: string;
  readonly value: Json;
  readonly children?: ComponentChildren;
}

/** Another name is in quotes, so that it cannot look like a name with its value. */
const plainName = /^[\p{L}\p{N}\p{M}_.$-]+$/u;

function Entry({ name, value, level, children, ...rest }: EntryProps): JSX.Element {
  const quotes = plainName.test(name) ? "" : '"';
  const depth = level > indentsMax && el.span({ class: "note" }, `level ${level} `);
  const label = el.span({ class: "name" }, depth, quotes, h(Text, { of: name }), quotes, leftwardNote(name));
  if (hasEntries(value)) return el.li(label, children, h(Entries, { of: value, level: level + 1, ...rest }));
  return el.li({ class: "leaf" }, label, h(Scalar, { of: value }), children);
}

function leftwardNote(text: string): ComponentChildren {
  return runsLeftward(text) && el.span({ class: "note" }, "has letters that run from right to left");
}

/** A value that has no entries. */
export function Scalar({ of }: { readonly of: Json }): JSX.Element {
  if (of instanceof Map) return el.span({ class: "quiet" }, "{} (no members)");
  if (Array.isArray(of)) return el.span({ class: "quiet" }, "[] (empty)");
  if (typeof of === "string") return el.span({ class: "value string" }, '"', h(Text, { of }), '"', leftwardNote(of));
  if (typeof of !== "number" && !(of instanceof Decimal)) return el.span({ class: "value word" }, JSON.stringify(of));
  const misread = misreadAs(of);
  return el.span(
    { class: "value number" },
    typeof of === "number" ? String(of) : of.text,
    misread !== undefined && el.span({ class: "note" }, `programs may read this as ${misread}`),
  );
}
