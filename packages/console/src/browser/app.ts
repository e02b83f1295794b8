import { Component, h, type ComponentChildren, type JSX } from "preact";
import { useCallback, useEffect, useState } from "preact/hooks";
import type { SessionJson } from "../../../core/src/wire/mod.ts";
import { el } from "./elements.ts";
import { askConsole, keepPageSecret, onRefused, pageSecret, type Problem } from "./gate.ts";
import { later } from "./later.ts";
import { isLive, listen, onStatus, startLive, stopLive } from "./live.ts";
import { LoadingNote, ProblemNote, Title } from "./parts.ts";
import { go, link, useRoute, type PageRoute } from "./route.ts";
import { useStops } from "./stops.ts";
import { Text } from "./text.ts";
import Inbox from "./pages/inbox.ts";
import { SignIn } from "./pages/sign-in.ts";

const navEntries = [
  ["/", "Inbox", ["approve", "receipts"]],
  ["/receipts", "Receipts", ["receipts"]],
  ["/rollout", "Rollout", ["receipts"]],
  ["/explain", "Explain", ["rules"]],
  ["/contract", "Contract", ["rules"]],
  ["/ledger", "Ledger", ["receipts"]],
  ["/access", "Access", ["approve", "receipts", "admin"]],
] as const;

type NavEntry = (typeof navEntries)[number];

function findNavEntries({ scopes }: SessionJson): readonly NavEntry[] {
  return navEntries.filter(([, , needed]) => needed.some((scope) => scopes.includes(scope)));
}

/** The page that a person sees first. A key of an administrator alone cannot read the inbox. */
function homeOf(session: SessionJson): NavEntry[0] {
  return findNavEntries(session)[0]?.[0] ?? "/";
}

/** The scopes that GET /events needs. */
function mayHearEvents({ scopes }: SessionJson): boolean {
  return scopes.includes("receipts") || scopes.includes("approve");
}

/** The console: who has signed in, the pages, and the stop that is in force. */
export function App(): JSX.Element {
  const [session, setSession] = useState<SessionJson | undefined>(undefined);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [isKnown, setKnown] = useState(false);
  const [hasEnded, setEnded] = useState(false);
  const load = useCallback(async (): Promise<void> => {
    const secret = pageSecret();
    if (secret === undefined) {
      // Another tab of this browser may have signed out.
      setSession(undefined);
      return setKnown(true);
    }
    const answer = await askConsole<SessionJson>("/session", { background: true });
    setKnown(true);
    if (answer.ok) {
      setEnded(false);
      setProblem(undefined);
      return setSession(answer.value);
    }
    if (answer.problem.status !== 401) return setProblem(answer.problem);
    // Another tab may have signed in meanwhile: its session goes on.
    if (pageSecret() !== secret) return load();
    keepPageSecret(undefined);
    setProblem(undefined);
    setSession(undefined);
    setEnded(true);
  }, []);
  useEffect(() => {
    onRefused(() => void load());
    void load();
  }, [load]);
  useEffect(() => {
    if (session === undefined) return undefined;
    if (mayHearEvents(session)) startLive();
    // The key may be revoked, or the person may sign out elsewhere.
    const timer = setInterval(() => void load(), 15_000);
    const stop = listen(({ type }) =>
      type === "keys.changed" || type === "contract.changed" ? void load() : undefined,
    );
    return () => {
      clearInterval(timer);
      stop();
      stopLive();
    };
  }, [session?.key, load]);
  if (!isKnown) return el.main({ class: "sign-in" }, h(LoadingNote, null));
  // A page that is open stays, with all that was typed on it, while the gate does not answer.
  if (problem !== undefined && session === undefined)
    return el.main(
      { class: "sign-in" },
      h(ProblemNote, { of: problem }),
      el.button({ type: "button", onClick: () => void load() }, "Try again"),
    );
  if (session === undefined) return h(SignIn, { hasEnded, onOpened: () => void load() });
  return h(Shell, { session, onEnded: () => setSession(undefined) });
}

interface ShellProps {
  readonly session: SessionJson;
  readonly onEnded: () => void;
}

function Shell({ session, onEnded }: ShellProps): JSX.Element {
  const route = useRoute();
  const home = homeOf(session);
  useEffect(() => {
    if (route.path === "/" && home !== "/") go(home, { replace: true });
  }, [route.path, home]);
  return el.div(
    { class: "shell" },
    el.a({ class: "skip", href: "#title" }, "Skip to the page"),
    h(Side, { session, path: route.path, onEnded }),
    el.main({ id: "main" }, h(StopBanner, null), h(Guard, { key: route.path }, h(Page, { session, route }))),
  );
}

function Side({ session, path, onEnded }: ShellProps & { readonly path: string }): JSX.Element {
  const isHere = (target: string): boolean =>
    target === "/" ? path === "/" || path.startsWith("/approvals") : path.startsWith(target);
  // On a narrow screen the header is one line, and a button opens the rest of it.
  const [isOpen, setOpen] = useState(false);
  useEffect(() => setOpen(false), [path]);
  return el.header(
    { class: isOpen ? "side-bar open" : "side-bar" },
    el.p(
      { class: "brand" },
      "svc-gate",
      session.tenant !== null && el.span({ class: "quiet" }, " ", h(Text, { of: session.tenant })),
    ),
    h(Status, { session }),
    el.button(
      {
        type: "button",
        class: "small",
        "aria-expanded": isOpen,
        "aria-controls": "menu",
        onClick: () => setOpen(!isOpen),
      },
      "Menu",
    ),
    el.div(
      { class: "menu", id: "menu" },
      el.nav(
        { "aria-label": "Pages" },
        el.ul(
          findNavEntries(session).map(([target, label]) =>
            el.li(
              { key: target },
              el.a({ href: link(target), "aria-current": isHere(target) ? "page" : undefined }, label),
            ),
          ),
        ),
      ),
      h(Who, { session, onEnded }),
    ),
  );
}

/** The gate's mode, and whether the page hears of its events. */
function Status({ session }: { readonly session: SessionJson }): JSX.Element {
  const [, setTick] = useState(0);
  useEffect(() => onStatus(() => setTick((tick) => tick + 1)), []);
  return el.p(
    { class: "status" },
    el.span({ class: `mode ${session.mode}` }, session.mode),
    " ",
    mayHearEvents(session) &&
      el.span({ class: isLive ? "live" : "live lost", role: "status" }, isLive ? "live" : "not live"),
  );
}

function Who({ session, onEnded }: ShellProps): JSX.Element {
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const end = async (all: boolean): Promise<void> => {
    const answer = await askConsole("/session/end", { body: JSON.stringify({ all }) });
    // The other sessions go on, so the person must know. This browser forgets its own session in any case.
    if (all && !answer.ok && answer.problem.status !== 401) return setProblem(answer.problem);
    keepPageSecret(undefined);
    onEnded();
  };
  return el.div(
    { class: "who" },
    el.p(
      el.strong(h(Text, { of: session.person ?? session.key })),
      session.person !== null && el.span({ class: "quiet" }, " with ", h(Text, { of: session.key })),
      session.groups.length > 0 && el.span({ class: "quiet" }, ", ", h(Text, { of: session.groups.join(", ") })),
    ),
    el.p(
      { class: "acts" },
      el.button({ type: "button", class: "small", onClick: () => void end(false) }, "Sign out"),
      el.button({ type: "button", class: "small", onClick: () => void end(true) }, "End all sessions"),
    ),
    problem !== undefined && h(ProblemNote, { of: problem }),
  );
}

/** A stop is shown on every page. */
function StopBanner(): JSX.Element | null {
  const { value: stops } = useStops();
  if (stops?.stopped !== true) return null;
  return el.p(
    { class: "stop-banner", role: "alert" },
    stops.stops.length === 1
      ? "A stop is in force: it blocks calls. "
      : `${stops.stops.length} stops are in force: they block calls. `,
    el.a({ href: link("/access") }, "Look at it"),
  );
}

/** Shows a page's own fault instead of the page, so that the rest of the console stays. */
class Guard extends Component<{ readonly children?: ComponentChildren }, { readonly fault?: unknown }> {
  override state: { readonly fault?: unknown } = {};

  override componentDidCatch(fault: unknown): void {
    console.error(fault);
    this.setState({ fault });
  }

  override render(): ComponentChildren {
    if (this.state.fault === undefined) return this.props.children;
    const detail = "This page has a fault and shows nothing. The browser's console has it. Load the page again.";
    return h(ProblemNote, { of: { status: 0, code: "", detail } });
  }
}

/** Only the inbox is loaded with the console itself. */
const ApprovalPage = later(() => import("./pages/approval.ts"));
const ReceiptPage = later(() => import("./pages/receipt.ts"));
const pages: Readonly<Record<string, (props: { readonly session: SessionJson }) => JSX.Element>> = {
  "/": Inbox,
  "/receipts": later(() => import("./pages/receipts.ts")),
  "/rollout": later(() => import("./pages/rollout.ts")),
  "/explain": later(() => import("./pages/explain.ts")),
  "/contract": later(() => import("./pages/contract.ts")),
  "/ledger": later(() => import("./pages/ledger.ts")),
  "/access": later(() => import("./pages/access.ts")),
};

/** The page of an address. */
function Page({ session, route: { path } }: { readonly session: SessionJson; readonly route: PageRoute }): JSX.Element {
  const [, id] = /^\/approvals\/(apr_[1-9][0-9]*_[0-9a-f]{32})$/.exec(path) ?? [];
  if (id !== undefined) return h(ApprovalPage, { key: id, id, session });
  const [, seq] = /^\/receipts\/([1-9][0-9]*)$/.exec(path) ?? [];
  if (seq !== undefined) return h(ReceiptPage, { key: seq, seq: Number(seq), session });
  if (path === "/" && homeOf(session) !== "/") return h(LoadingNote, {});
  const page = pages[path];
  if (page !== undefined) return h(page, { key: path, session });
  return el.div(h(Title, { text: "No such page" }), el.p(el.a({ href: link("/") }, "Inbox")));
}
