import { h, type JSX } from "preact";
import { useState } from "preact/hooks";
import type { GrantJson, StopJson, StopScope, StopSetJson } from "../../../../core/src/approvals/mod.ts";
import type { KeyJson, SessionJson } from "../../../../core/src/wire/mod.ts";
import { el } from "../elements.ts";
import { Button, Choice, Field, Tick } from "../fields.ts";
import { Dialog, empty, panel, ProblemNote, table, Title, useAct, useAnswer, useFollowed } from "../parts.ts";
import { GrantBounds } from "./grant-bounds.ts";
import { missed } from "../live.ts";
import { link } from "../route.ts";
import { useStops } from "../stops.ts";
import { Text } from "../text.ts";
import { Ago, Countdown } from "../time.ts";

/** Who may do what: grants, the stop, and for administrators the keys. */
export default function Access({ session }: { readonly session: SessionJson }): JSX.Element {
  return el.div(
    h(Title, { text: "Access" }),
    h(StopPanel, { session }),
    session.scopes.some((scope) => scope === "approve" || scope === "receipts") && h(Grants, { session }),
    session.scopes.includes("admin")
      ? h(Keys, { session })
      : panel("Keys", el.p({ class: "quiet" }, "Sign in with a key of scope admin to see and revoke keys here.")),
  );
}

function scopeText(scope: StopScope): string {
  if (scope === "all") return "every call";
  if ("tools" in scope) return `the ${scope.tools.length === 1 ? "tool" : "tools"} ${scope.tools.join(", ")}`;
  if ("key" in scope) return `the key ${scope.key}`;
  return `the session ${scope.session.id} of the key ${scope.session.key}`;
}

function StopPanel({ session }: { readonly session: SessionJson }): JSX.Element {
  const { value, problem, again } = useStops();
  const [isOpen, setOpen] = useState(false);
  const [done, setDone] = useState<StopSetJson | undefined>(undefined);
  const mayStop = session.scopes.includes("admin") || session.scopes.includes("approve");
  const mayLift = session.scopes.includes("admin");
  const stops = value?.stops ?? [];
  return panel(
    "Stop",
    el.p("A stop blocks calls at once, in every mode, until an administrator lifts it."),
    problem !== undefined && h(ProblemNote, { of: problem }),
    stops.map((stop) => h(StopEntry, { key: stop.receipt, stop, mayLift, onLifted: () => again(true) })),
    value !== undefined && stops.length === 0 && el.p({ class: "quiet" }, "Nothing is stopped."),
    mayStop && el.button({ type: "button", class: "danger", onClick: () => setOpen(true) }, "Stop …"),
    done !== undefined && h(StopNote, { of: done }),
    isOpen &&
      h(StopDialog, {
        onClose: (set) => {
          setOpen(false);
          if (set !== undefined) setDone(set);
          again(true);
        },
      }),
  );
}

/** What the stop ended, and the names in it that nobody knows. */
function StopNote({ of: { ended, warnings } }: { readonly of: StopSetJson }): JSX.Element {
  const { approvals, votes, grants } = ended;
  return el.div(
    { role: "status" },
    el.p(
      `Approvals that the stop cancelled: ${approvals}. Approvals that lost their votes: ${votes}. Grants that ended: ${grants}.`,
    ),
    warnings.map((warning) => el.p({ class: "problem", key: warning }, "Warning: ", h(Text, { of: warning }))),
  );
}

interface StopEntryProps {
  readonly stop: StopJson;
  readonly mayLift: boolean;
  readonly onLifted: () => void;
}

function StopEntry({ stop, mayLift, onLifted }: StopEntryProps): JSX.Element {
  const { act, note } = useAct();
  const lift = (): Promise<void> => act("/admin/stop/lift", JSON.stringify({ scope: stop.written }), onLifted);
  return el.div(
    { class: "stopped" },
    el.p(
      el.strong("Stopped: ", h(Text, { of: scopeText(stop.scope) })),
      " by ",
      h(Text, { of: stop.person }),
      " ",
      h(Ago, { at: stop.at }),
      ": ",
      h(Text, { of: stop.why }),
      stop.root === null ? " " : " (set at the root) ",
      el.a({ href: link(`/receipts/${stop.receipt}`) }, `row ${stop.receipt}`),
    ),
    mayLift && stop.root === null && h(Button, { kind: "small", onPress: lift }, "Lift"),
    note,
  );
}

const word = "stop";
const kinds = [
  ["all", "every call"],
  ["tools", "some tools"],
  ["key", "one key"],
  ["session", "one session of a key"],
] as const;

/** The person types a word, so that no stray click stops a system. */
function StopDialog({ onClose }: { readonly onClose: (set?: StopSetJson) => void }): JSX.Element {
  const [kind, setKind] = useState("all");
  const [name, setName] = useState("");
  const [id, setId] = useState("");
  const [why, setWhy] = useState("");
  const [typed, setTyped] = useState("");
  const [keeps, setKeeps] = useState(false);
  const { act, note } = useAct<StopSetJson>();
  const send = (): Promise<void> => {
    const scope = scopeOf(kind, name.trim(), id.trim());
    return act("/admin/stop", JSON.stringify({ scope, why, ...(keeps && { approvals: "keep" }) }), onClose);
  };
  const isReady = typed === word && why.trim() !== "";
  const nameLabel = kind === "tools" ? "The tools, separated by commas" : "The key's name";
  return h(
    Dialog,
    { title: "Stop calls", onClose: () => onClose() },
    h(Choice, { id: "stop-kind", label: "Which calls", value: kind, onText: setKind, choices: kinds }),
    kind !== "all" && h(Field, { id: "stop-name", label: nameLabel, value: name, onText: setName }),
    kind === "session" && h(Field, { id: "stop-session", label: "The session", value: id, onText: setId }),
    h(Field, { id: "stop-why", label: "Why (each blocked call says it)", value: why, onText: setWhy }),
    h(
      Tick,
      { isOn: keeps, onChange: () => setKeeps(!keeps) },
      "keep the open approvals, without their votes: people must decide again",
    ),
    h(Field, { id: "stop-word", label: `Type "${word}" to confirm`, value: typed, onText: setTyped }),
    note,
    el.p({ class: "acts" }, h(Button, { kind: "danger", isOff: !isReady, onPress: send }, "Stop these calls")),
  );
}

function scopeOf(kind: string, name: string, id: string): StopScope {
  if (kind === "all") return "all";
  if (kind === "key") return { key: name };
  return kind === "session" ? { session: { key: name, id } } : { tools: name.split(",").map((each) => each.trim()) };
}

function Grants({ session }: { readonly session: SessionJson }): JSX.Element {
  const { value, note, again } = useAnswer<{ readonly grants: readonly GrantJson[] }>("/grants");
  useFollowed(["grant.", "stop.", missed], again);
  const grants = value?.grants ?? [];
  const mayRevoke = session.scopes.includes("approve");
  return panel(
    "Grants",
    note,
    value !== undefined &&
      grants.length === 0 &&
      empty(
        "No grant is in force",
        "A person who approves a call may let later calls like it through, within bounds. Such grants appear here with their uses.",
      ),
    el.ul(
      { class: "grants" },
      grants.map((grant) => h(GrantOf, { key: grant.id, grant, mayRevoke, onChanged: () => again(true) })),
    ),
  );
}

interface GrantProps {
  readonly grant: GrantJson;
  readonly mayRevoke: boolean;
  readonly onChanged: () => void;
}

function GrantOf({ grant, mayRevoke, onChanged }: GrantProps): JSX.Element {
  const { act, note } = useAct();
  const send = (verb: "approve" | "revoke"): Promise<void> =>
    act(`/grants/${grant.id}/${verb}`, JSON.stringify(verb === "approve" ? { hash: grant.hash } : {}), onChanged);
  const { status, tool_name: tool, key, used, uses, until, at, amounts, spent, decisions, needs, has, source } = grant;
  return el.li(
    el.p(
      el.strong(h(Text, { of: tool })),
      " by key ",
      h(Text, { of: key }),
      ", from ",
      el.a({ href: link(`/receipts/${source}`) }, `receipt ${source}`),
      grant.any_session ? ", in every session. Given by " : ", in its session. Given by ",
      h(Text, { of: decisions.map(({ person }) => person).join(", ") }),
      status === "pending" && `; ${has} of ${needs} people`,
      ".",
    ),
    el.p(`${used} of ${uses} calls used. `, h(Countdown, { until, from: at, label: "left" })),
    Object.entries(amounts).map(([name, most]) =>
      el.p({ key: name }, el.code(h(Text, { of: name })), `: ${spent[name] ?? "0"} of ${most}`),
    ),
    grant.form !== undefined &&
      el.p(
        h(Text, { of: grant.form.member }),
        " of the form ",
        el.code(h(Text, { of: grant.form.shown ?? "unknown" })),
      ),
    h(GrantBounds, { of: { ...grant, sums: Object.keys(amounts) } }),
    mayRevoke &&
      el.p(
        { class: "acts" },
        status === "pending" && h(Button, { kind: "small", onPress: () => send("approve") }, "Approve this grant"),
        h(Button, { kind: "small", onPress: () => send("revoke") }, "Revoke"),
      ),
    note,
  );
}

function Keys({ session }: { readonly session: SessionJson }): JSX.Element {
  const { value, problem, again } = useAnswer<{ readonly keys: readonly KeyJson[] }>("/admin/keys");
  const [revoking, setRevoking] = useState<KeyJson | undefined>(undefined);
  return panel(
    "Keys",
    problem !== undefined && h(ProblemNote, { of: problem }),
    el.div(
      { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Keys" },
      table(
        "list",
        (value?.keys ?? []).map((key) =>
          el.tr(
            { key: `${key.tenant ?? ""}/${key.name}`, class: isRevoked(key) ? "off" : "" },
            h(NameOfKey, { of: key }),
            el.td(h(Text, { of: key.person ?? "" })),
            el.td(key.scopes.join(", ")),
            el.td(h(Text, { of: key.groups.join(", ") })),
            el.td(key.last_used === null ? "never" : h(Ago, { at: Date.parse(key.last_used) })),
            el.td(
              // A path of this console reaches only the keys of its own tenant. A name may exist in several.
              !isRevoked(key) &&
                key.tenant === session.tenant &&
                el.button(
                  { type: "button", class: "small", onClick: () => setRevoking(key) },
                  "Revoke …",
                  el.span({ class: "unseen" }, ` ${key.name}`),
                ),
            ),
          ),
        ),
        { heads: ["Name", "Person", "May", "Groups", "Last used", el.span({ class: "unseen" }, "Acts")] },
      ),
    ),
    revoking !== undefined &&
      h(RevokeDialog, {
        of: revoking,
        onClose: () => {
          setRevoking(undefined);
          again(true);
        },
      }),
  );
}

function NameOfKey({ of: { kind, name, state, tenant } }: { readonly of: KeyJson }): JSX.Element {
  return el.th(
    { scope: "row" },
    tenant !== null && el.span({ class: "quiet" }, tenant, "/"),
    h(Text, { of: name }),
    kind === "host" && el.span({ class: "note" }, "an agent's host"),
    state !== "active" && el.span({ class: "note" }, state),
  );
}

function isRevoked({ state }: KeyJson): boolean {
  return state === "revoked";
}

function RevokeDialog({ of, onClose }: { readonly of: KeyJson; readonly onClose: () => void }): JSX.Element {
  const { act, note } = useAct();
  const revoke = (): Promise<void> => act(`/admin/keys/${of.name}/revoke`, "{}", onClose);
  return h(
    Dialog,
    { title: "Revoke a key", onClose },
    el.p(
      "The key ",
      el.strong(h(Text, { of: of.name })),
      " stops working at once, and its sessions end. This cannot be undone.",
    ),
    note,
    el.p({ class: "acts" }, h(Button, { kind: "danger", onPress: revoke }, "Revoke the key")),
  );
}
