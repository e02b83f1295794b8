import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

// The peers are installed, not committed: each from its own package source, in a version that is pinned here.

const ours = JSON.parse(readFileSync(join(import.meta.dirname, "..", "..", "package.json"), "utf8")) as {
  readonly devDependencies: Readonly<Record<string, string>>;
};

export const versions = {
  opa: "1.22.0",
  cerbos: "0.55.0",
  cedar: ours.devDependencies["@cedar-policy/cedar-wasm"] ?? "",
  agt: "5.0.0",
} as const;

export const cache: string = join(import.meta.dirname, ".cache");
const platform = `${process.platform}-${process.arch}`;
const cerbosPackage = `@cerbos/cerbos-${platform}`;

export const opaBinary: string = join(cache, "bin", "opa");
export const cerbosBinary: string = join(cache, "cerbos", "node_modules", cerbosPackage, `cerbos-${platform}`);
export const python: string = join(cache, "agt", "bin", "python3");

interface Step {
  readonly what: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

const steps: readonly Step[] = [
  {
    what: "OPA, compiled from its module (Go 1.26; some minutes)",
    command: "go",
    args: ["install", "-trimpath", `github.com/open-policy-agent/opa@v${versions.opa}`],
    environment: { GOBIN: join(cache, "bin"), GOFLAGS: "-p=1 -buildvcs=false" },
  },
  {
    what: "Cerbos, the binary of its npm package",
    command: "npm",
    args: [
      "install",
      "--prefix",
      join(cache, "cerbos"),
      "--no-save",
      "--ignore-scripts",
      "--no-audit",
      "--no-fund",
      `${cerbosPackage}@${versions.cerbos}`,
    ],
  },
  { what: "a Python environment", command: "python3", args: ["-m", "venv", join(cache, "agt")] },
  {
    what: "Microsoft's Agent Governance Toolkit, from the Python index",
    command: join(cache, "agt", "bin", "pip"),
    args: ["install", "--quiet", `agent-governance-toolkit-core[server]==${versions.agt}`],
  },
];

/**
 * Installs every peer into a folder that git ignores. If a peer cannot be installed, prints why and installs the
 * others.
 */
export function setUpPeers(): void {
  mkdirSync(join(cache, "cerbos"), { recursive: true });
  for (const { what, command, args, environment } of steps) {
    console.log(`- ${what}`);
    const { status, error } = spawnSync(command, args, { stdio: "inherit", env: { ...process.env, ...environment } });
    if (status === 0) continue;
    console.log(
      `  ${command} ${args.join(" ")}\n  ${error?.message ?? `ended with ${status}`}: this peer will be skipped`,
    );
    process.exitCode = 1;
  }
}
