import { h, type JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { el } from "./elements.ts";
import { LoadingNote } from "./parts.ts";

type Shows<Props> = (props: Props) => JSX.Element;

/** Returns a component whose module is loaded when a page first shows it. The component is the module's default. */
export function later<Props extends object>(load: () => Promise<{ readonly default: Shows<Props> }>): Shows<Props> {
  let loaded: Shows<Props> | undefined;
  let fault: unknown;
  return function Later(props) {
    const [state, setState] = useState<"failed" | "loaded" | "loading">("loading");
    useEffect(() => {
      load().then(
        (module) => {
          loaded = module.default;
          setState("loaded");
        },
        (error: unknown) => {
          console.error(error);
          fault = error;
          setState("failed");
        },
      );
    }, []);
    if (loaded !== undefined) return h(loaded, props);
    if (state === "loading") return h(LoadingNote, {});
    // The browser rejects with a TypeError if a file does not come.
    const why = fault instanceof TypeError ? "the gate was changed or does not answer" : String(fault);
    return el.p({ class: "problem", role: "alert" }, `This part cannot be loaded: ${why}. Load the page again.`);
  };
}
