import { h, type JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ReceiptJson, ReceiptPage } from "../../../../core/src/wire/mod.ts";
import { el } from "../elements.ts";
import { queryText } from "../gate.ts";
import { listen } from "../live.ts";
import { empty, table, Title, useAnswer, Verdict } from "../parts.ts";
import { link, setQuery, useRoute } from "../route.ts";
import { reasonText, Text } from "../text.ts";
import { Ago, momentText } from "../time.ts";

const texts = [
  ["tool_name", "Tool"],
  ["session_id", "Session"],
  ["key", "Key"],
  ["since", "Since (UTC)"],
  ["until", "Until (UTC)"],
] as const;
const choices = [
  ["verdict", "Verdict", ["ALLOW", "BLOCK", "ESCALATE"]],
  ["answered", "Answered", ["ALLOW", "BLOCK", "ESCALATE"]],
  ["mode", "Mode", ["observe", "assist", "enforce"]],
  ["outcome", "Outcome", ["done", "failed", "unknown", "missing"]],
  ["kind", "Kind", ["change", "result", "all"]],
] as const;
const pageRows = 50;

/** All receipts, the newest first. The filters are in the address, so a view can be shared. */
export default function Receipts(): JSX.Element {
  const { query } = useRoute();
  const [isLive, setLive] = useState(false);
  const names = [...texts.map(([name]) => name), ...choices.map(([name]) => name), "before"];
  const wanted = Object.fromEntries(names.map((name) => [name, query.get(name) ?? undefined]));
  const { value, note, again } = useAnswer<ReceiptPage>(`/receipts${queryText({ ...wanted, limit: pageRows })}`);
  const isFirst = wanted["before"] === undefined;
  useEffect(() => {
    if (!isLive || !isFirst) return undefined;
    const timer = setInterval(() => again(true), 2000);
    const stop = listen(() => again(true));
    return () => {
      clearInterval(timer);
      stop();
    };
  }, [isLive, isFirst, again]);
  return el.div(
    h(
      Title,
      { text: "Receipts" },
      el.button(
        { type: "button", class: "small", "aria-pressed": isLive, disabled: !isFirst, onClick: () => setLive(!isLive) },
        isLive ? "Live: on" : "Live: off",
      ),
    ),
    h(Filters, { query }),
    note,
    value?.receipts.length === 0 &&
      empty(
        "No receipt matches",
        "Each call that an agent asks about gets one row here. Remove a filter, or send a check.",
      ),
    value !== undefined && value.receipts.length > 0 && h(Table, { receipts: value.receipts }),
    value !== undefined &&
      el.nav(
        { class: "pager", "aria-label": "More receipts" },
        !isFirst && el.button({ type: "button", onClick: () => setQuery({ before: undefined }) }, "Newest"),
        value.next !== null &&
          el.button({ type: "button", onClick: () => setQuery({ before: String(value.next) }) }, "Older"),
      ),
  );
}

function Filters({ query }: { readonly query: URLSearchParams }): JSX.Element {
  const submit = (event: Event): void => {
    event.preventDefault();
    const { currentTarget } = event;
    if (!(currentTarget instanceof HTMLFormElement)) return;
    const entries = [...new FormData(currentTarget)].flatMap(([name, value]) =>
      typeof value === "string" ? [[name, value.trim()] as const] : [],
    );
    setQuery({ ...Object.fromEntries(entries), before: undefined });
  };
  return el.form(
    { class: "filters", onSubmit: submit, key: query.toString() },
    texts.map(([name, label]) =>
      el.label(
        { key: name },
        label,
        el.input({
          name,
          defaultValue: query.get(name) ?? "",
          placeholder: name === "since" || name === "until" ? "2026-01-31" : "",
        }),
      ),
    ),
    choices.map(([name, label, values]) =>
      el.label(
        { key: name },
        label,
        el.select(
          { name, defaultValue: query.get(name) ?? "" },
          el.option({ value: "" }, name === "kind" ? "checks" : "any"),
          values.map((each) => el.option({ key: each, value: each, selected: query.get(name) === each }, each)),
        ),
      ),
    ),
    el.button({ type: "submit", class: "primary" }, "Filter"),
    el.a({ class: "button", href: link("/receipts") }, "Clear"),
  );
}

function Table({ receipts }: { readonly receipts: readonly ReceiptJson[] }): JSX.Element {
  const lines = receipts.map((receipt) => h(Line, { key: receipt.seq, receipt }));
  return table("list receipts", lines, {
    caption: el.caption({ class: "unseen" }, "Receipts, the newest first"),
    heads: ["Row", "Answer", "Tool and reason", "Key", "Session", "When"],
  });
}

function Line({ receipt }: { readonly receipt: ReceiptJson }): JSX.Element {
  const { seq, answered, verdict, tool_name: sent, tool = sent, act, reason, key, session_id: session, at } = receipt;
  return el.tr(
    el.td(el.a({ href: link(`/receipts/${seq}`) }, String(seq))),
    el.td(
      typeof answered === "string" ? h(Verdict, { of: answered }) : "",
      verdict !== answered && typeof verdict === "string" && el.small(`the rules say ${verdict}`),
    ),
    el.td(
      { class: "wide" },
      el.strong(h(Text, { of: tool ?? act ?? "" })),
      sent !== tool && el.span({ class: "quiet" }, " sent as ", h(Text, { of: sent ?? "" })),
      " ",
      el.span({ class: "reason" }, h(Text, { of: reasonText(reason ?? null) })),
    ),
    el.td(h(Text, { of: key ?? "" })),
    el.td(h(Text, { of: session ?? "" })),
    el.td(h(Ago, { at }), el.small(momentText(at))),
  );
}
