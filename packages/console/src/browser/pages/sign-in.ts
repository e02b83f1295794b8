import { h, type JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { OpenedJson, SignInMethods } from "../../../../core/src/wire/mod.ts";
import { el } from "../elements.ts";
import { askConsole, keepPageSecret, type Problem } from "../gate.ts";
import { ProblemNote } from "../parts.ts";
import { startSignIn, finishSignIn } from "../provider.ts";

const endedText =
  "Your session has ended: it was idle for too long or signed out elsewhere, or the key was revoked. Sign in again.";

interface SignInProps {
  /** True if the gate has ended the session that this page had. */
  readonly hasEnded: boolean;
  readonly onOpened: () => void;
}

/** Takes a key and opens a session. The key is sent once, in a body, and the page does not keep it. */
export function SignIn({ hasEnded, onOpened }: SignInProps): JSX.Element {
  const [key, setKey] = useState("");
  const [code, setCode] = useState("");
  const [needsCode, setNeedsCode] = useState(false);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    document.title = "Sign in - svc-gate";
    void finishSignIn().then((answer) => {
      if (answer?.ok === true) onOpened();
      else setProblem(answer?.problem);
    });
  }, []);
  const send = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    const body = JSON.stringify({ key: key.trim(), ...(code !== "" && { code }) });
    const answer = await askConsole<OpenedJson>("/session", { body });
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
  return el.main(
    { class: "sign-in" },
    el.h1("svc-gate"),
    hasEnded && el.p({ class: "problem", role: "alert" }, endedText),
    el.p({ class: "quiet" }, "The console for people who decide what agents may do."),
    el.form(
      { onSubmit: (event) => void send(event) },
      el.label({ for: "key" }, "Your key"),
      el.input({
        id: "key",
        type: "password",
        autocomplete: "current-password",
        required: true,
        value: key,
        onInput: (event) => setKey(event.currentTarget.value),
      }),
      el.p(
        { class: "quiet" },
        "The key of a person who decides. On a new gate: the text of the file first-key in its data folder.",
      ),
      needsCode && el.label({ for: "code" }, "The code that the gate's terminal shows"),
      needsCode &&
        el.input({
          id: "code",
          autocomplete: "one-time-code",
          spellcheck: false,
          value: code,
          onInput: (event) => setCode(event.currentTarget.value),
        }),
      problem !== undefined && h(ProblemNote, { of: problem }),
      el.button({ type: "submit", class: "primary", disabled: isBusy }, "Sign in"),
    ),
    h(ProviderButton, { onProblem: setProblem }),
    isPlain && el.p({ class: "quiet" }, "This page came over plain HTTP. That is safe only on the gate's own machine."),
  );
}

/** Signs in with the provider of OpenID Connect, if the gate has one. */
function ProviderButton({
  onProblem,
}: {
  readonly onProblem: (problem: Problem | undefined) => void;
}): JSX.Element | null {
  const [name, setName] = useState<string | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    void askConsole<SignInMethods>("/methods").then((answer) =>
      setName(answer.ok ? answer.value.oidc?.name : undefined),
    );
  }, []);
  if (name === undefined) return null;
  const leave = async (): Promise<void> => {
    setBusy(true);
    onProblem(await startSignIn());
    setBusy(false);
  };
  return el.p(el.button({ type: "button", disabled: isBusy, onClick: () => void leave() }, `Sign in with ${name}`));
}
