import { h, type JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Session } from "../answers.ts";
import { askConsole, base, keepPageSecret, type Problem } from "../gate.ts";
import { ProblemNote } from "../parts.ts";

interface Opened extends Session {
  /** The page's own secret. */
  readonly session: string;
}

interface Methods {
  readonly oidc: { readonly name: string } | null;
}

/** Takes a key and opens a session. The key is sent once, in a body, and the page does not keep it. */
export function SignIn({ onOpened }: { readonly onOpened: () => void }): JSX.Element {
  const [key, setKey] = useState("");
  const [code, setCode] = useState("");
  const [needsCode, setNeedsCode] = useState(false);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const [provider, setProvider] = useState<string | undefined>(undefined);
  useEffect(() => {
    document.title = "Sign in - svc-gate";
    void askConsole<Methods>("/methods").then((answer) => setProvider(answer.ok ? answer.value.oidc?.name : undefined));
  }, []);
  const send = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    const body = JSON.stringify({ key: key.trim(), ...(code !== "" && { code }) });
    const answer = await askConsole<Opened>("/session", { body });
    setBusy(false);
    if (!answer.ok) {
      setNeedsCode(needsCode || answer.problem.code === "code-needed");
      return setProblem(answer.problem);
    }
    keepPageSecret(answer.value.session);
    setKey("");
    onOpened();
  };
  const isPlain = location.protocol === "http:";
  return h(
    "main",
    { class: "sign-in" },
    h("h1", null, "svc-gate"),
    h("p", { class: "quiet" }, "The console for persons who decide what agents may do."),
    h(
      "form",
      { onSubmit: (event: Event) => void send(event) },
      h("label", { for: "key" }, "Your key"),
      h("input", {
        id: "key",
        type: "password",
        autocomplete: "current-password",
        required: true,
        value: key,
        onInput: ({ currentTarget }: { currentTarget: HTMLInputElement }) => setKey(currentTarget.value),
      }),
      needsCode && h("label", { for: "code" }, "The code that the gate's terminal shows"),
      needsCode &&
        h("input", {
          id: "code",
          autocomplete: "one-time-code",
          spellcheck: false,
          value: code,
          onInput: ({ currentTarget }: { currentTarget: HTMLInputElement }) => setCode(currentTarget.value),
        }),
      problem !== undefined && h(ProblemNote, { of: problem }),
      h("button", { type: "submit", class: "primary", disabled: isBusy }, "Sign in"),
    ),
    provider !== undefined &&
      h("p", null, h("a", { class: "button", href: `${base}/oidc`, target: "_self" }, `Sign in with ${provider}`)),
    isPlain &&
      h("p", { class: "quiet" }, "This page came over plain HTTP. That is safe only on the gate's own machine."),
  );
}
