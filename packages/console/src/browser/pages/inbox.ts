import { h, type JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ApprovalJson } from "../../../../core/src/approvals/mod.ts";
import type { SessionJson } from "../../../../core/src/wire/mod.ts";
import { el } from "../elements.ts";
import { ask, queryText, type Problem } from "../gate.ts";
import { later } from "../later.ts";
import { listen } from "../live.ts";
import { empty, LoadingNote, ProblemNote, State, tabs, Title, toggleName } from "../parts.ts";
import { go, link, setQuery, useRoute } from "../route.ts";
import { reasonText, Text } from "../text.ts";
import { Ago, Countdown } from "../time.ts";
import { KeysHelp } from "./keys-help.ts";

const BatchDialog = later(() => import("./batch.ts"));
const FirstSteps = later(() => import("./first-steps.ts"));

const shows = [
  ["", "Waiting"],
  ["approved", "Approved, not used"],
  ["closed", "Closed"],
] as const;

const pageMax = 100;
const pagesMax = 20;

interface InboxState {
  readonly approvals: readonly ApprovalJson[];
  /** Approvals that arrived since the person looked; the list shows them when the person asks for them. */
  readonly fresh: readonly ApprovalJson[];
  readonly problem: Problem | undefined;
  readonly isLoaded: boolean;
}

/** The approvals that wait for a person: first those that this person may decide. */
export default function Inbox({ session }: { readonly session: SessionJson }): JSX.Element {
  const { query } = useRoute();
  const show = query.get("show") ?? "";
  const found = useApprovals(show);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [isHelp, setHelp] = useState(false);
  const list = useRef<HTMLDivElement>(null);
  const approvals = filterApprovals(found.approvals, query);
  const mine = approvals.filter(({ may_decide: may }) => may);
  const others = approvals.filter(({ may_decide: may }) => !may);
  const toggle = (id: string): void => setChosen((old) => toggleName(old, id));
  useKeys(list, mine, { toggle, help: () => setHelp(true) });
  const isWaiting = show === "";
  return el.div(
    h(Head, { show, count: waitingFor(found), onHelp: () => setHelp(true) }),
    h(Filters, { query }),
    found.problem !== undefined && h(ProblemNote, { of: found.problem }),
    !found.isLoaded && found.problem === undefined && h(LoadingNote, {}),
    el.div(
      { class: "fresh", role: "status" },
      found.fresh.length > 0 &&
        el.button({ type: "button", onClick: found.showFresh }, `Show ${found.fresh.length} new`),
    ),
    found.isLoaded &&
      approvals.length === 0 &&
      found.fresh.length === 0 &&
      (query.has("tool") || query.has("key")
        ? empty("No call matches", "Remove a filter to see the other calls.")
        : h(EmptyInbox, { session, show })),
    el.div(
      { ref: list, class: "inbox" },
      mine.length > 0 &&
        h(Section, { title: isWaiting ? "You may decide" : "", show, approvals: mine, chosen, toggle }),
      others.length > 0 &&
        h(Section, { title: isWaiting ? "Others decide" : "", show, approvals: others, chosen, toggle }),
    ),
    h(Selection, {
      approvals: mine.filter(({ id, batch, status }) => chosen.has(id) && batch && status === "pending"),
      onClear: () => setChosen(new Set()),
    }),
    isHelp && h(KeysHelp, { onClose: () => setHelp(false) }),
  );
}

function filterApprovals(approvals: readonly ApprovalJson[], query: URLSearchParams): readonly ApprovalJson[] {
  const [tool, key] = [query.get("tool") ?? "", query.get("key") ?? ""];
  return approvals.filter((each) => (tool === "" || each.tool_name === tool) && (key === "" || each.key === key));
}

/** The calls that this person may decide, also those that the list does not show yet. */
function waitingFor({ approvals, fresh }: InboxState): number {
  return [...approvals, ...fresh].filter(({ may_decide: may, status }) => may && status === "pending").length;
}

interface HeadProps {
  readonly show: string;
  readonly count: number;
  readonly onHelp: () => void;
}

function Head({ show, count, onHelp }: HeadProps): JSX.Element {
  return h(
    Title,
    { text: "Inbox", count },
    tabs({ label: "Which approvals", all: shows, shown: show }, (name) => (name === "" ? "/" : `/?show=${name}`)),
    el.button({ type: "button", class: "small", onClick: onHelp }, "Keyboard ", el.kbd("?")),
  );
}

interface SelectionProps {
  readonly approvals: readonly ApprovalJson[];
  readonly onClear: () => void;
}

/** The calls that the person has selected. The dialog shows each whole call before it decides. */
function Selection({ approvals, onClear }: SelectionProps): JSX.Element | null {
  const [isDeciding, setDeciding] = useState(false);
  // The dialog stays, with the words that were typed, if others decide its calls meanwhile.
  if (approvals.length === 0 && !isDeciding) return null;
  return el.div(
    { class: "bar", role: "region", "aria-label": "Selected calls" },
    el.span(`${approvals.length} selected`),
    el.button({ type: "button", class: "primary", onClick: () => setDeciding(true) }, "Look at each and decide …"),
    el.button({ type: "button", onClick: onClear }, "Clear"),
    isDeciding && h(BatchDialog, { approvals, onClose: () => setDeciding(false) }),
  );
}

function EmptyInbox({ session, show }: { readonly session: SessionJson; readonly show: string }): JSX.Element {
  if (show === "approved")
    return empty(
      "No approved call waits to be used",
      "An approved call is here until the agent asks again, or until its time is over.",
    );
  if (show === "closed")
    return empty("No approval has been closed yet", "Calls that were used, denied, cancelled or expired appear here.");
  return h(FirstSteps, { session });
}

/** The filters in the address. */
function Filters({ query }: { readonly query: URLSearchParams }): JSX.Element | null {
  const names = ["tool", "key"].filter((name) => query.has(name));
  return names.length === 0
    ? null
    : el.p(
        { class: "filters" },
        names.map((name) => h(Filter, { key: name, name, value: query.get(name) ?? "" })),
      );
}

function Filter({ name, value }: { readonly name: string; readonly value: string }): JSX.Element {
  return el.button(
    {
      type: "button",
      class: "filter",
      onClick: () => setQuery({ [name]: undefined }),
      "aria-label": `Remove the filter ${name}`,
    },
    `${name}: `,
    h(Text, { of: value }),
    " ✕",
  );
}

interface Group {
  readonly name: string;
  readonly rule: string;
  readonly key: string;
  readonly approvals: readonly ApprovalJson[];
}

/**
 * Calls of one rule and one key are together, the oldest first, because its time ends first. Questions about the same call follow
 * each other.
 */
function groupsOf(approvals: readonly ApprovalJson[]): readonly Group[] {
  const groups = new Map<string, ApprovalJson[]>();
  const ofCalls = new Map<string, string>();
  for (const approval of approvals.toSorted((one, other) => one.decide_by - other.decide_by)) {
    const name = ofCalls.get(approval.call) ?? JSON.stringify([approval.rules, approval.key]);
    ofCalls.set(approval.call, name);
    groups.set(name, [...(groups.get(name) ?? []), approval]);
  }
  return [...groups].map(([name, all]) => ({
    name,
    rule: all[0]?.rules.join(", ") ?? "",
    key: all[0]?.key ?? "",
    approvals: [...Map.groupBy(all, ({ call }) => call).values()].flat(),
  }));
}

interface SectionProps {
  readonly title: string;
  /** The tab that is open, so that links stay on it. */
  readonly show: string;
  readonly approvals: readonly ApprovalJson[];
  readonly chosen: ReadonlySet<string>;
  readonly toggle: (id: string) => void;
}

function Section({ title, show, approvals, chosen, toggle }: SectionProps): JSX.Element {
  const waiting = approvals.filter(({ status }) => status === "pending").length;
  return el.section(
    { "aria-label": title === "" ? "Approvals" : title },
    el.h2(
      { class: title === "" ? "unseen" : "section" },
      title === "" ? "Approvals" : title,
      el.span({ class: "count" }, title === "" ? approvals.length : waiting),
    ),
    groupsOf(approvals).map(({ name, rule, key, approvals: all }) =>
      el.div(
        { key: name, class: "group" },
        el.h3(
          h(Text, { of: rule }),
          el.span(
            { class: "quiet" },
            " asked by key ",
            el.a({ href: link(`/${queryText({ show, key })}`) }, h(Text, { of: key })),
          ),
        ),
        el.ul(
          { class: "rows" },
          all.map((approval, index) => {
            const isSame = all[index - 1]?.call === approval.call;
            return h(Row, { key: approval.id, approval, isSame, isChosen: chosen.has(approval.id), toggle });
          }),
        ),
      ),
    ),
  );
}

interface RowProps {
  readonly approval: ApprovalJson;
  /** Does it ask about the same call as the row above? */
  readonly isSame: boolean;
  readonly isChosen: boolean;
  readonly toggle: (id: string) => void;
}

function Row({ approval, isSame, isChosen, toggle }: RowProps): JSX.Element {
  const {
    id,
    tool_name: tool,
    reason,
    session_id: session,
    asked,
    needs,
    has,
    at,
    decide_by: until,
    status,
  } = approval;
  const mayChoose = approval.may_decide && approval.batch && status === "pending";
  const amounts = Object.entries(approval.amounts);
  return el.li(
    { class: `row ${status}`, "data-id": id },
    mayChoose
      ? el.input({
          type: "checkbox",
          checked: isChosen,
          onChange: () => toggle(id),
          "aria-label": `Select the call of ${tool}`,
        })
      : el.span({ class: "unchosen" }),
    el.a(
      { href: link(`/approvals/${id}`), class: "what" },
      el.span({ class: "tool" }, h(Text, { of: tool })),
      el.span({ class: "reason" }, h(Text, { of: reasonText(reason) })),
    ),
    el.span(
      { class: "amount" },
      amounts.map(([name, value]) => el.span({ key: name }, value, el.small(name.slice(name.lastIndexOf(".") + 1)))),
    ),
    el.span(
      { class: "about" },
      isSame && el.span("the same call as above"),
      session !== null && el.span("session ", h(Text, { of: session })),
      asked > 1 && el.span(`asked ${asked} times`),
      needs > 1 && el.span(`${has} of ${needs} people`),
    ),
    el.span(
      { class: "when" },
      status === "pending" ? h(Countdown, { until, from: at, label: "left" }) : h(State, { of: status }),
      el.span({ class: "quiet" }, "asked ", h(Ago, { at })),
    ),
  );
}

/** Loads approvals and follows the gate's events. The list under the pointer does not move by itself. */
function useApprovals(show: string): InboxState & { readonly showFresh: () => void } {
  const [found, setFound] = useState<InboxState>({ approvals: [], fresh: [], problem: undefined, isLoaded: false });
  const seen = useRef<ReadonlySet<string>>(new Set());
  useEffect(() => {
    let isGone = false;
    let isFirst = true;
    let isLoading = false;
    let isStale = false;
    const load = async (): Promise<void> => {
      const answer = await allApprovals(show, !isFirst);
      if (isGone) return;
      if ("problem" in answer) return setFound((old) => ({ ...old, problem: answer.problem }));
      const isNew = isFirst;
      isFirst = false;
      if (isNew) seen.current = new Set(answer.map(({ id }) => id));
      const now = new Map(answer.map((each) => [each.id, each]));
      // An approval that is closed now stays in its row, with its new state.
      setFound((old) => ({
        approvals: isNew ? answer : old.approvals.map((each) => now.get(each.id) ?? closedNow(each)),
        fresh: answer.filter(({ id }) => !seen.current.has(id)),
        problem: undefined,
        isLoaded: true,
      }));
    };
    // One request at a time, so that no older answer replaces a newer one.
    const refresh = async (): Promise<void> => {
      isStale = isLoading;
      if (isLoading) return;
      isLoading = true;
      await load();
      isLoading = false;
      if (isStale && !isGone) void refresh();
    };
    setFound({ approvals: [], fresh: [], problem: undefined, isLoaded: false });
    void refresh();
    let timer = 0;
    const stop = listen(({ type }) => {
      if (timer !== 0 || !["approval.", "stop.", "ledger."].some((each) => type.startsWith(each))) return;
      timer = window.setTimeout(() => {
        timer = 0;
        void refresh();
      }, 150);
    });
    return () => {
      isGone = true;
      clearTimeout(timer);
      stop();
    };
  }, [show]);
  return useMemo(
    () => ({
      ...found,
      showFresh: () => {
        seen.current = new Set([...seen.current, ...found.fresh.map(({ id }) => id)]);
        // The list moves now in any case, so calls that are over leave it. Otherwise it would grow all day.
        const isOver = ({ status }: ApprovalJson): boolean => status === overStatus;
        setFound((old) => ({
          ...old,
          approvals: [...old.fresh, ...old.approvals.filter((each) => !isOver(each))],
          fresh: [],
        }));
      },
    }),
    [found],
  );
}

/** The status of a call that has left the list that was requested. The list does not say how it ended. */
const overStatus = "over";

function closedNow(approval: ApprovalJson): ApprovalJson {
  const isOpen = approval.status === "pending" || approval.status === "approved";
  return isOpen ? { ...approval, status: overStatus } : approval;
}

async function allApprovals(
  show: string,
  background: boolean,
): Promise<readonly ApprovalJson[] | { readonly problem: Problem }> {
  const state = show === "closed" ? "" : `&state=${show === "" ? "pending" : show}`;
  const all: ApprovalJson[] = [];
  let before: number | null | undefined;
  for (let page = 0; page < (show === "closed" ? 1 : pagesMax); page += 1) {
    const from = before === undefined ? "" : `&before=${before}`;
    const answer = await ask<{ readonly approvals: readonly ApprovalJson[]; readonly next: number | null }>(
      `/approvals?limit=${pageMax}${state}${from}`,
      { background },
    );
    if (!answer.ok) return { problem: answer.problem };
    all.push(...answer.value.approvals);
    before = answer.value.next;
    if (before === null) break;
  }
  return show === "closed" ? all.filter(({ status }) => status !== "pending" && status !== "approved") : all;
}

interface KeyActs {
  readonly toggle: (id: string) => void;
  readonly help: () => void;
}

/** j and k move, Enter opens, x selects, a and d open the decision. No key decides. */
function useKeys(
  list: { readonly current: HTMLDivElement | null },
  approvals: readonly ApprovalJson[],
  acts: KeyActs,
): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const isTyping =
        event.target instanceof HTMLElement &&
        event.target.closest("input:not([type=checkbox]),textarea,select,dialog") !== null;
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "?") return acts.help();
      const rows = [...(list.current?.querySelectorAll<HTMLElement>("li.row") ?? [])];
      const at = rows.findIndex((row) => row.contains(document.activeElement));
      const id = rows[at]?.dataset["id"];
      if (event.key === "j") rows[Math.min(at + 1, rows.length - 1)]?.querySelector("a")?.focus();
      else if (event.key === "k") rows[Math.max(at - 1, 0)]?.querySelector("a")?.focus();
      else if (id !== undefined && event.key === "x" && approvals.some((each) => each.id === id && each.may_decide))
        acts.toggle(id);
      else if (id !== undefined && (event.key === "a" || event.key === "d")) go(`/approvals/${id}?decide=1`);
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });
}
