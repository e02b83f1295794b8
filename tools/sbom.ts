/**
 * `npm run sbom`: what is in the gate, as CycloneDX on standard output: each package that the lock file names for it, on any
 * platform. npm makes the list; what only development needs is taken out here, because npm's own `--omit dev` takes out what
 * the gate needs too where a tool needs it as well (npm/cli#7909).
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

interface Component {
  readonly "bom-ref": string;
  readonly properties?: readonly { readonly name: string; readonly value: string }[];
}

interface Bom {
  readonly metadata: { readonly component: object };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

const root = fileURLToPath(new URL("..", import.meta.url));
const { name }: { readonly name: string } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const npm = process.env["npm_execpath"];
const [program, first] = npm === undefined ? ["npm", []] : [process.execPath, [npm]];
const flags = ["--sbom-format=cyclonedx", "--sbom-type=application", "--package-lock-only"];
const all: Bom = JSON.parse(
  execFileSync(program, [...first, "sbom", ...flags], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 2 ** 26,
    stdio: ["ignore", "pipe", "ignore"],
  }),
);

const isKept = ({ properties = [] }: Component): boolean =>
  !properties.some((each) => each.name === "cdx:npm:package:development" && each.value === "true");
const components = all.components.filter(isKept);
const left = new Set(all.components.filter((each) => !isKept(each)).map((each) => each["bom-ref"]));
const dependencies = all.dependencies
  .filter(({ ref }) => !left.has(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((each) => !left.has(each)) }));
const metadata = { ...all.metadata, component: { ...all.metadata.component, name } }; // npm names it after the folder
console.log(JSON.stringify({ ...all, metadata, components, dependencies }, null, 2));
