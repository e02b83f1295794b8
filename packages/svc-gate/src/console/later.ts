import { h, type JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Loading } from "./parts.ts";

type Shows<Props> = (props: Props) => JSX.Element;

/** Returns a component whose module is loaded when a page first shows it. The component is the module's default. */
export function later<Props extends object>(load: () => Promise<{ readonly default: Shows<Props> }>): Shows<Props> {
  let loaded: Shows<Props> | undefined;
  return function Later(props) {
    const [state, setState] = useState<"failed" | "loaded" | "loading">("loading");
    useEffect(() => {
      load().then(
        (module) => {
          loaded = module.default;
          setState("loaded");
        },
        () => setState("failed"),
      );
    }, []);
    if (loaded !== undefined) return h(loaded, props);
    if (state === "loading") return h(Loading, {});
    const sentence = "This page cannot be loaded: the gate was changed or does not answer. Load the page again.";
    return h("p", { class: "problem", role: "alert" }, sentence);
  };
}
