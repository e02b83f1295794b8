import { h, render } from "preact";
import { App } from "./app.ts";
import { followLinks } from "./route.ts";

const root = document.querySelector("#app");
if (root === null) throw new Error("the page has no element for the console");
followLinks();
render(h(App, null), root);
