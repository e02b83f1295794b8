/**
 * `npm run sbom`: prints the gate's bill of materials as CycloneDX: each package that the lock file names for it, on
 * any platform. npm lists the whole repository; this program keeps the packages that svc-gate needs. npm's own `--omit
 * dev` also removes packages of the gate that a tool needs too (npm/cli#7909).
 */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

interface Component {
  readonly "bom-ref": string;
  readonly name: string;
}

interface Bom {
  readonly metadata: { readonly component: object };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

const root = fileURLToPath(new URL("..", import.meta.url));
const name = "svc-gate";
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

const edges = new Map(all.dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]));
const gate = all.components.find((each) => each.name === name);
if (gate === undefined) throw new Error(`npm names no ${name}`);
const reached = new Set([gate["bom-ref"]]);
for (const ref of reached) for (const each of edges.get(ref) ?? []) reached.add(each);
const components = all.components.filter((each) => each !== gate && reached.has(each["bom-ref"]));
const dependencies = all.dependencies.filter(({ ref }) => reached.has(ref));
const metadata = { ...all.metadata, component: gate };
console.log(JSON.stringify({ ...all, metadata, components, dependencies }, null, 2));
