import { h, type ComponentChildren, type JSX, type VNode } from "preact";

/** The first thing in an element: no object but another element, so that a value of an answer never becomes attributes. */
type First = JSX.Element | VNode<never> | string | number | boolean | null | undefined | readonly First[];

type Attributes<Tag extends keyof JSX.IntrinsicElements> = Omit<
  JSX.IntrinsicElements[Tag],
  "dangerouslySetInnerHTML"
> & {
  readonly [name: `data-${string}`]: string;
};

type Elements = {
  readonly [Tag in keyof JSX.IntrinsicElements]: (
    first?: Attributes<Tag> | First,
    ...children: readonly ComponentChildren[]
  ) => JSX.Element;
};

/** Makes elements, such as `el.p({ class: "quiet" }, "Loading …")` or `el.p("Loading …")`. Texts stay texts. */
export const el: Elements = new Proxy({} as Elements, {
  get:
    (_none, tag: string) =>
    (...all: readonly ComponentChildren[]): JSX.Element => {
      const [first, ...children] = all as readonly (object | undefined)[];
      // An element of Preact has no constructor.
      if (first?.constructor !== Object) return h(tag, null, ...all);
      if ("dangerouslySetInnerHTML" in first) throw new Error("the console parses no text as markup");
      return h(tag, first, ...children);
    },
});
