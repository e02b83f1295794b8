import { useEffect, useState } from "preact/hooks";
import { base } from "./gate.ts";

/** The address of a page: its path below the console, and its query. */
export interface PageRoute {
  /** Such as `/approvals/apr_1_...`; `/` is the inbox. */
  readonly path: string;
  readonly query: URLSearchParams;
}

const listeners = new Set<() => void>();

export function routeNow(): PageRoute {
  const { pathname, search } = location;
  const path = pathname.startsWith(base) ? pathname.slice(base.length) : "";
  return { path: path === "" ? "/" : path, query: new URLSearchParams(search) };
}

/** The full path of a page, for links. */
export function link(path: string): string {
  return path === "/" ? base : base + path;
}

/** Opens a page. The browser's back button returns to the page before. */
export function go(path: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  const url = link(path);
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  if (!replace) scrollTo(0, 0);
  for (const listener of listeners) listener();
}

/** Changes the query of the page that is open. */
export function setQuery(values: Readonly<Record<string, string | undefined>>): void {
  const { path, query } = routeNow();
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  go(path + (text === "" ? "" : `?${text}`), { replace: true });
}

export function useRoute(): PageRoute {
  const [route, setRoute] = useState(routeNow);
  useEffect(() => {
    const change = (): void => setRoute(routeNow());
    listeners.add(change);
    addEventListener("popstate", change);
    return () => {
      listeners.delete(change);
      removeEventListener("popstate", change);
    };
  }, []);
  return route;
}

/** Opens links to the console's own pages without a new document. */
export function followLinks(): void {
  document.addEventListener("click", (event) => {
    const found = event.target instanceof Element ? event.target.closest("a[href]") : null;
    if (!(found instanceof HTMLAnchorElement) || found.target !== "" || found.hasAttribute("download")) return;
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    const { origin, pathname, search, hash } = found;
    const isOurs = origin === location.origin && (pathname === base || pathname.startsWith(`${base}/`));
    if (!isPlain || event.defaultPrevented || !isOurs || hash !== "") return;
    event.preventDefault();
    go((pathname.slice(base.length) || "/") + search);
  });
}
