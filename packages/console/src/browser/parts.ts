import { h, type ComponentChildren, type JSX } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { el } from "./elements.ts";
import { listen } from "./live.ts";
import { ask, commandText, type RouteAnswer, type Problem, type RawTexts } from "./gate.ts";
import { link } from "./route.ts";
import { Text } from "./text.ts";

const shapes: Readonly<Record<string, string>> = {
  ALLOW: "M3 8.5l3.2 3.2L13 5",
  BLOCK: "M4 4l8 8M12 4l-8 8",
  ESCALATE: "M8 3v6M8 12v.6",
};

/** A verdict: a word and a shape, not only a colour. */
export function Verdict({ of }: { readonly of: string }): JSX.Element {
  return el.span(
    { class: `badge ${of.toLowerCase()}` },
    el.svg({ viewBox: "0 0 16 16", "aria-hidden": "true" }, el.path({ d: shapes[of] ?? "M3 8h10" })),
    of,
  );
}

const states: Readonly<Record<string, string>> = {
  pending: "waits for a person",
  approved: "approved, not used yet",
  used: "approved and used",
  denied: "denied",
  expired: "expired: nobody decided in time, or the agent did not use the approval in time",
  cancelled: "cancelled",
  superseded: "replaced by a later call",
  over: "decided or over",
};

/** The state of an approval, in words. */
export function State({ of }: { readonly of: string }): JSX.Element {
  return el.span({ class: `state ${of}` }, states[of] ?? of);
}

export function ProblemNote({ of }: { readonly of: Problem }): JSX.Element {
  return el.div({ class: "problem", role: "alert" }, h(Text, { of: of.detail }));
}

export function LoadingNote(): JSX.Element {
  return el.p({ class: "quiet", role: "status" }, "Loading …");
}

/** A list without items says what would appear in it. */
export function empty(title: string, text: string): JSX.Element {
  return el.div({ class: "empty" }, el.h2(title), el.p(text));
}

interface PanelHead {
  readonly title: string;
  readonly more?: ComponentChildren;
  readonly class?: string;
}

export function panel(head: PanelHead | string, ...children: readonly ComponentChildren[]): JSX.Element {
  const { title, more, class: name = "" }: PanelHead = typeof head === "string" ? { title: head } : head;
  return el.section({ class: `panel ${name}` }, el.header(el.h2(title), more), ...children);
}

interface TitleProps {
  readonly text: string;
  /** What waits, for the title of the browser's tab. */
  readonly count?: number;
  readonly children?: ComponentChildren;
}

/** The title of a page. It takes the focus when the page opens, so that a screen reader says where it is. */
export function Title({ text, count = 0, children }: TitleProps): JSX.Element {
  const element = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${count === 0 ? "" : `(${count}) `}${text} - svc-gate`;
  }, [text, count]);
  useEffect(() => {
    // A person who has moved on while the page loaded keeps the focus.
    const at = document.activeElement;
    if (at === null || at === document.body || at.closest("nav") !== null)
      element.current?.focus({ preventScroll: true });
  }, []);
  return el.div(
    { class: "title" },
    el.h1({ ref: element, tabIndex: -1, id: "title" }, h(Text, { of: text })),
    children,
  );
}

interface Views {
  readonly label: string;
  readonly all: readonly (readonly [name: string, text: string])[];
  readonly shown: string;
}

/** Links to the views of a page. */
export function tabs({ label, all, shown }: Views, pathOf: (name: string) => string): JSX.Element {
  return el.nav(
    { class: "tabs", "aria-label": label },
    all.map(([name, text]) => {
      const current = shown === name ? "page" : undefined;
      return el.a({ key: name, class: "tab", href: link(pathOf(name)), "aria-current": current }, text);
    }),
  );
}

/** A command with a button that copies it. */
export function Command({ text: words }: { readonly text: string }): JSX.Element {
  const text = commandText(words);
  const [isCopied, setCopied] = useState(false);
  const copy = (): void => {
    void navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  };
  return el.div(
    { class: "command" },
    el.code({ tabIndex: 0 }, text),
    el.button({ type: "button", class: "small", onClick: copy }, isCopied ? "Copied" : "Copy"),
  );
}

/** The names and values of a thing. */
export function Facts({
  of,
}: {
  readonly of: readonly (readonly [name: string, value: ComponentChildren])[];
}): JSX.Element {
  return el.dl(
    { class: "facts" },
    of.flatMap(([name, value]) => [el.dt({ key: `${name}.` }, name), el.dd({ key: name }, value)]),
  );
}

interface TableHead {
  readonly caption?: JSX.Element;
  readonly heads?: readonly ComponentChildren[];
}

export function table(name: string, rows: readonly JSX.Element[], { caption, heads }: TableHead = {}): JSX.Element {
  const head = heads?.map((each, at) => el.th({ key: at, scope: "col" }, each));
  return el.table({ class: name }, caption, head && el.thead(el.tr(head)), el.tbody(rows));
}

/** A link to a page of the console. */
export function textLink(path: string, text: string): JSX.Element {
  return el.a({ href: link(path) }, h(Text, { of: text }));
}

/** A set with one name more, or without it. */
export function toggleName(names: ReadonlySet<string>, name: string): ReadonlySet<string> {
  const next = new Set(names);
  if (!next.delete(name)) next.add(name);
  return next;
}

export interface AnswerState<Value> {
  /** Undefined before the first answer. */
  readonly value: Value | undefined;
  readonly raw: RawTexts;
  readonly problem: Problem | undefined;
  /** Shown instead of the value: that it loads, or the problem. */
  readonly note: JSX.Element | false;
  /** Asks again. In the background the old answer stays until the new one is there. */
  readonly again: (background?: boolean) => void;
}

/** Loads an answer of the gate for a component; undefined asks nothing. */
export function useAnswer<Value>(
  path: string | undefined,
  raw: readonly string[] = [],
  body?: string,
): AnswerState<Value> {
  const [found, setFound] = useState<{ readonly path: string; readonly answer: RouteAnswer<Value> } | undefined>(
    undefined,
  );
  const latest = useRef(0);
  const load = useCallback(
    (background = false): void => {
      if (path === undefined) return;
      const turn = ++latest.current;
      void ask<Value>(path, { raw, background, ...(body !== undefined && { body }) }).then((answer) => {
        if (turn !== latest.current) return;
        setFound((old) => (background && isShort(answer) && old?.path === path ? old : { path, answer }));
      });
    },
    [path, body],
  );
  useEffect(() => load(), [load]);
  const answer = found?.path === path ? found?.answer : undefined;
  return {
    value: answer?.ok === true ? answer.value : undefined,
    raw: answer?.ok === true ? answer.raw : {},
    problem: answer?.ok === false ? answer.problem : undefined,
    note:
      answer === undefined
        ? path !== undefined && h(LoadingNote, {})
        : !answer.ok && h(ProblemNote, { of: answer.problem }),
    again: load,
  };
}

interface ActState<Value> {
  readonly act: (path: string, body: string | undefined, done: (value: Value) => void) => Promise<void>;
  /** Shows a problem that the page finds itself. */
  readonly refuse: (problem: Problem) => void;
  /** True until the gate answers. */
  readonly isBusy: boolean;
  /** Why the gate refused the last act. */
  readonly note: JSX.Element | false;
}

/** Sends what a person does, and keeps the gate's refusal for the page. */
export function useAct<Value>(): ActState<Value> {
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const act = async (path: string, body: string | undefined, done: (value: Value) => void): Promise<void> => {
    setBusy(true);
    const answer = await ask<Value>(path, { ...(body !== undefined && { body }) });
    setBusy(false);
    setProblem(answer.ok ? undefined : answer.problem);
    if (answer.ok) done(answer.value);
  };
  return { act, refuse: setProblem, isBusy, note: problem !== undefined && h(ProblemNote, { of: problem }) };
}

/** The members of an answer that contain a call, which the page shows with their characters. */
export const callMembers: readonly string[] = ["tool_input", "platform_state"];

/** Loads again when an event of one of these types arrives. */
export function useFollowed(types: readonly string[], again: (background: boolean) => void): void {
  useEffect(
    () => listen(({ type }) => (types.some((each) => type.startsWith(each)) ? again(true) : undefined)),
    [again],
  );
}

/** A gate that does not answer for a moment, or that has too many requests, takes nothing off the page. */
function isShort(answer: RouteAnswer<unknown>): boolean {
  return !answer.ok && (answer.problem.status === 0 || answer.problem.status === 429 || answer.problem.status >= 500);
}

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children?: ComponentChildren;
}

/** A modal dialog. The browser keeps the focus inside, and Escape closes it. */
export function Dialog({ title, onClose, children }: DialogProps): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    element.current?.showModal();
    return () => element.current?.close();
  }, []);
  return el.dialog(
    { ref: element, "aria-label": title, onClose, onCancel: onClose },
    el.header(
      el.h2(title),
      el.button({ type: "button", class: "small", onClick: onClose, "aria-label": "Close" }, "Close"),
    ),
    children,
  );
}

/** Marks facts that a key of kind `host` has sent: the agent itself can read that key. */
export function FactsSource({ kind }: { readonly kind: string | undefined }): JSX.Element | null {
  return kind === "host" ? el.span({ class: "note" }, "said by the agent's machine") : null;
}
