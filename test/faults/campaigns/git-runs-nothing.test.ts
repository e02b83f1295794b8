/**
 * Goal: no sequence of calls that `files` and `git` allow makes git run a command that the agent wrote. Method: the
 * contracts judge each call; the allowed ones are carried out in a temporary folder; then the real git runs there, with a
 * canary in every file where git reads a command. As a control, the same sequences with a rule removed trigger the canary.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, globSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { after, before, suite, test } from "node:test";
import { parse } from "yaml";
import { loadFunctions, type PolicySet } from "../../../packages/readers/src/contract.ts";
import { compile, judge, readReady } from "../../support/contract-kit.ts";
import { control } from "../../support/controls/control.ts";

const temporary = realpathSync(mkdtempSync(join(tmpdir(), "svc-gate-git-")));
after(() => rmSync(temporary, { recursive: true, force: true }));
const canary = join(temporary, "canary");

const environment = {
  PATH: process.env["PATH"],
  HOME: join(temporary, "home"),
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CEILING_DIRECTORIES: temporary,
  GIT_TERMINAL_PROMPT: "0",
};
const hasGit = spawnSync("git", ["--version"]).status === 0;

function git(folder: string, ...args: readonly string[]): string {
  const ran = spawnSync("git", args, { cwd: folder, env: environment, encoding: "utf8" });
  return ran.status === 0 ? ran.stdout : `git ${args.join(" ")} failed: ${ran.stderr}`;
}

function hasRun(): boolean {
  const woken = existsSync(canary);
  rmSync(canary, { force: true });
  return woken;
}

/** Compiles the two contracts without some of their rules. */
async function inForce(...without: readonly string[]): Promise<PolicySet> {
  const sources = ["files", "git"].map((name) => {
    const contract = parse(readReady(name)) as {
      readonly rules: readonly { readonly rule: string }[];
    };
    const rules = contract.rules.filter(({ rule }) => !without.includes(rule));
    return { kept: rules.length, all: contract.rules.length, name, text: JSON.stringify({ ...contract, rules }) };
  });
  assert.equal(
    sources.reduce((removed, { kept, all }) => removed + all - kept, 0),
    without.length,
    `one of the rules ${without.join(", ")} does not exist`,
  );
  const compiled = compile(...sources.map(({ text }) => text));
  await loadFunctions(compiled);
  return compiled;
}

/** The path of a file to write, or of a folder to create if it ends in a slash. Both are below /srv. */
type Step = string;

function callOf(step: Step): { readonly tool: string; readonly input: object } {
  const path = `/srv/${step.replace(/\/$/, "")}`;
  return step.endsWith("/")
    ? { tool: "create_directory", input: { path } }
    : { tool: "write_file", input: { path, content: contentOf(step) } };
}

const script = `touch '${canary}'`;
const configuration = `[core]
  repositoryformatversion = 0
  bare = false
  worktree = .
  fsmonitor = "${script};:"
  pager = "${script};cat"
  sshCommand = "${script};:"
  hooksPath = hooks
[diff]
  external = "${script};:"
[diff "can"]
  textconv = "${script};cat"
[filter "can"]
  clean = "${script};cat"
  smudge = "${script};cat"
[merge "can"]
  driver = "${script};:"
[alias]
  status = "!${script}"
`;

function contentOf(step: Step): string {
  switch (basename(step).toLowerCase()) {
    case "head":
      return "ref: refs/heads/main\n";
    case "commondir":
      return "../.git\n";
    case "gitdir":
      return ".git\n";
    case ".git":
      return "gitdir: ../bare\n";
    case ".gitattributes":
    case "attributes":
      return "* filter=can diff=can merge=can\n";
    case ".gitmodules":
      return `[submodule "x"]\n\tpath = bare\n\turl = ./bare\n\tupdate = "!${script}"\n`;
    case "config":
    case "config.worktree":
    case ".gitconfig":
    case ".lfsconfig":
      return configuration;
    default:
      return `#!/bin/sh\n${script}\n`;
  }
}

/** Makes the working folders of the contract: `app` is a repository as a person set it up, `docs` a plain folder. */
function makeFolders(): string {
  const srv = mkdtempSync(join(temporary, "srv-"));
  const app = join(srv, "app");
  mkdirSync(join(srv, "docs"));
  git(temporary, "init", "-q", "-b", "main", app);
  for (const [key, value] of [
    ["user.name", "A"],
    ["user.email", "a@example.com"],
    ["core.repositoryformatversion", "1"],
    ["extensions.worktreeConfig", "true"],
    // A person's own commands: they run only where attributes or names lead to them.
    ["core.hooksPath", "tools/hooks"],
    ["filter.can.clean", `${script};cat`],
    ["diff.can.textconv", `${script};cat`],
  ] as const)
    git(app, "config", key, value);
  mkdirSync(join(app, "tools/hooks"), { recursive: true });
  for (const hook of ["pre-commit", "post-checkout", "update"]) {
    writeFileSync(join(app, "tools/hooks", hook), "#!/bin/sh\nexit 0\n");
    chmodSync(join(app, "tools/hooks", hook), 0o755);
  }
  mkdirSync(join(app, "src"));
  writeFileSync(join(app, "src/a.ts"), "1\n");
  git(app, "init", "-q", "--bare", join(app, "fixtures/bare"));
  git(app, "add", "-A");
  git(app, "commit", "-qm", "first");
  writeFileSync(join(app, "src/a.ts"), "2\n");
  assert.equal(hasRun(), false, "the canary ran before the agent did anything");
  assert.match(git(app, "status", "--short"), /^ M src\/a\.ts$/m);
  return srv;
}

/** Carries out the calls that the contracts allow. @returns how many wait for a person or are refused */
function carryOut(policySet: PolicySet, srv: string, steps: readonly Step[]): number {
  return steps.filter((step) => {
    if (judge(policySet, callOf(step)).verdict !== "ALLOW") return true;
    try {
      mkdirSync(join(srv, dirname(step)), { recursive: true });
      if (step.endsWith("/")) mkdirSync(join(srv, step), { recursive: true });
      else writeFileSync(join(srv, step), contentOf(step));
    } catch (error) {
      assert.match(String(error), /EEXIST|ENOTDIR|EISDIR/);
    }
    return false;
  }).length;
}

/** Runs the tools of `git` in the repository, and the shell's tasks in each folder that the agent may choose. */
function runGit(policySet: PolicySet, srv: string): void {
  const app = join(srv, "app");
  const tools: readonly (readonly [tool: string, input: object, ...args: readonly string[]])[] = [
    ["git_status", {}, "status"],
    ["git_diff", { target: "main" }, "diff", "main"],
    ["git_log", {}, "log"],
    ["git_create_branch", { branch_name: "agent/x" }, "branch", "agent/x"],
    ["git_checkout", { branch_name: "agent/x" }, "checkout", "agent/x"],
    ["git_add", { files: ["src/a.ts", "tools"] }, "add", "--", "src/a.ts", "tools"],
    ["git_commit", { message: "m" }, "commit", "-m", "m"],
    ["git_checkout", { branch_name: "main" }, "checkout", "main"],
  ];
  for (const [tool, input, ...args] of tools) {
    assert.equal(judge(policySet, { tool, input: { repo_path: "/srv/app", ...input } }).verdict, "ALLOW", tool);
    git(app, ...args);
  }
  const folders = globSync("**/", { cwd: srv, exclude: (name) => /(?:^|\/)\.git(?:\/|$)/.test(name) });
  for (const folder of folders) for (const task of ["status", "diff"]) git(join(srv, folder), task);
}

interface Attack {
  readonly what: string;
  readonly steps: readonly Step[];
  /** The rules that prevent it. */
  readonly rules: readonly string[];
}

const bare = (folder: string): readonly Step[] => [
  `${folder}/HEAD`,
  `${folder}/config`,
  `${folder}/objects/`,
  `${folder}/refs/`,
];

const attacks: readonly Attack[] = [
  { what: "a bare repository in a folder", steps: bare("app/bare"), rules: ["git-may-run-it"] },
  { what: "a listed folder that becomes a bare repository", steps: bare("docs"), rules: ["git-may-run-it"] },
  { what: "a bare repository under a name with `.git`", steps: bare("app/x.git"), rules: ["git-may-run-it"] },
  {
    what: "a bare repository made without folders, by files in them",
    steps: ["app/b/HEAD", "app/b/config", "app/b/objects/x", "app/b/refs/x"],
    rules: ["git-may-run-it"],
  },
  {
    what: "a `.git` file that leads to a bare repository",
    steps: [...bare("app/bare"), "app/w/.git"],
    rules: ["git-may-run-it", "git-keeps-its-own-files"],
  },
  {
    what: "a nested `.git` folder, written file by file",
    steps: bare("app/sub/.git"),
    rules: ["git-may-run-it", "git-keeps-its-own-files"],
  },
  {
    what: "the repository's own configuration",
    steps: ["app/.git/config"],
    rules: ["git-keeps-its-own-files", "git-may-run-it"],
  },
  {
    what: "the configuration of a bare repository that is a fixture of the project",
    steps: ["app/fixtures/bare/config"],
    rules: ["git-may-run-it"],
  },
  {
    what: "the repository's objects (`commondir`) under another `config.worktree`",
    steps: ["app/w/HEAD", "app/w/commondir", "app/w/config.worktree"],
    rules: ["git-may-run-it"],
  },
  { what: "a hook where `core.hooksPath` leads", steps: ["app/tools/hooks/pre-commit"], rules: ["git-may-run-it"] },
  { what: "a hook that a checkout runs", steps: ["app/tools/hooks/post-checkout"], rules: ["git-may-run-it"] },
  { what: "attributes that lead to a person's filter", steps: ["app/src/.gitattributes"], rules: ["runs-by-itself"] },
];

/** The rules about names of the pack `places`, which know some of git's own, too. */
const alsoKnown = ["runs-by-itself", "secrets-stay-closed"];

suite("the real git runs nothing that the agent wrote", { skip: hasGit ? false : "git is not installed" }, () => {
  let policySet: PolicySet;
  before(async () => {
    mkdirSync(join(temporary, "home"));
    policySet = await inForce();
  });

  for (const { what, steps, rules } of attacks) {
    test(`a person is asked about ${what}`, () => {
      const srv = makeFolders();
      assert.notEqual(carryOut(policySet, srv, steps), 0, "every call is allowed");
      runGit(policySet, srv);
      assert.equal(hasRun(), false);
    });

    control(`positive control: without ${rules.join(" and ")}, git runs a command because of ${what}`, async () => {
      const weak = await inForce(...new Set([...rules, ...alsoKnown]));
      const srv = makeFolders();
      assert.equal(carryOut(weak, srv, steps), 0, "another rule is in the way");
      runGit(weak, srv);
      assert.equal(hasRun(), true);
    });
  }

  test("git runs nothing in a bare repository that lacks one of its four parts", async () => {
    const weak = await inForce("git-may-run-it", ...alsoKnown);
    for (const step of bare("app/bare")) {
      const srv = makeFolders();
      carryOut(
        weak,
        srv,
        bare("app/bare").filter((other) => other !== step),
      );
      runGit(weak, srv);
      assert.equal(hasRun(), false, `without ${step}`);
    }
  });

  test("random sequences of calls trigger no canary, and many do without the rules", async (t) => {
    const weak = await inForce("git-may-run-it", ...alsoKnown);
    let woken = 0;
    let allowed = 0;
    for (let seed = 1; seed <= sequences; seed += 1) {
      const steps = randomSteps(seed);
      const srv = makeFolders();
      allowed += steps.length - carryOut(policySet, srv, steps);
      runGit(policySet, srv);
      assert.equal(hasRun(), false, `seed ${seed}: ${steps.join(" ")}`);
      const open = makeFolders();
      carryOut(weak, open, steps);
      runGit(weak, open);
      if (hasRun()) woken += 1;
      for (const folder of [srv, open]) rmSync(folder, { recursive: true });
    }
    t.diagnostic(`${allowed} allowed calls; without the rules ${woken} of ${sequences} sequences trigger the canary`);
    assert.ok(allowed > sequences * 5, `${allowed} allowed`);
    assert.ok(woken > sequences / 4, `${woken} woken`);
  });
});

const sequences = 12;
const folders = [
  "app", "docs", "app/src", "app/bare", "app/x.git", "app/fixtures/bare", "app/tools/hooks", "app/.git", "app/.GIT", "app/w",
  "app/.husky", "app/w/.git", "app/bare/hooks", "app/bare/info", "app/worktrees/x", "app/modules/x",
]; // prettier-ignore
const names = [
  "HEAD", "HEAD", "HEAD", "head", "config", "config", "config", "config.worktree", "commondir", "gitdir", "packed-refs", "index",
  "objects/", "objects/", "objects/", "refs/", "refs/", "refs/", "objects/x", "refs/heads/main", "hooks/", "info/attributes",
  "pre-commit", "post-checkout", "post-index-change", "update", ".git", ".gitattributes", ".gitmodules", ".gitconfig",
  ".lfsconfig", ".envrc", ".gitignore", "a.ts", "fsmonitor-watchman", "reftable/", "worktrees/x/gitdir",
]; // prettier-ignore

/** Forty calls in three folders. One seed always gives the same calls (a linear congruential generator). */
function randomSteps(seed: number): readonly Step[] {
  let state = seed * 2_654_435_761;
  const pick = (from: readonly string[]): string => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return from[Math.floor((state / 2 ** 32) * from.length)] ?? "";
  };
  const chosen = [pick(folders), pick(folders), pick(folders)];
  return Array.from({ length: 40 }, () => `${pick(chosen)}/${pick(names)}`);
}

suite("names that a disk or git reads as part of a repository", () => {
  let policySet: PolicySet;
  before(async () => {
    policySet = await inForce();
  });

  test("the contracts allow the names of a repository's files in no spelling", () => {
    for (const name of [
      "HEAD",
      "Head",
      "head",
      "HEAD.",
      "HEAD ",
      " HEAD",
      "HEAD::$DATA",
      "HE\u200bAD",
      "./HEAD",
      "x//HEAD",
      "x/../HEAD",
      "config",
      "CONFIG",
      "Config.WorkTree",
      "CommonDir",
      "x/Pre-Commit",
      ".git",
      ".GIT",
      ".git/x",
      "x/.git",
      "x/.Git/hooks/y",
      "git~1/x",
      ".git./x",
      ".git /x",
      ".git::$INDEX_ALLOCATION/x",
      ".g\u200cit/x",
      "\uff0egit/x",
      "hooks/update",
      "x/.githooks/y",
    ])
      // prettier-ignore
      assert.notEqual(judge(policySet, callOf(`app/${name}`)).verdict, "ALLOW", name);
  });

  test("no move creates a repository's files without a person", () => {
    for (const [source, destination] of [
      ["/srv/app/a", "/srv/app/bare/HEAD"],
      ["/srv/app/x", "/srv/app/bare"],
      ["/srv/app/a", "/srv/app/tools/hooks/pre-commit"],
      ["/srv/app/git", "/srv/app/.git"],
    ] as const)
      assert.notEqual(
        judge(policySet, { tool: "move_file", input: { source, destination } }).verdict,
        "ALLOW",
        destination,
      );
  });

  test("the contracts allow ordinary names that resemble a repository's files", () => {
    for (const step of [
      "app/src/hooks/useAuth.ts",
      "app/src/objects/a.ts",
      "app/src/refs/a.ts",
      "app/src/config.ts",
      "app/config/app.json",
      "app/config/",
      "app/hooks/",
      "app/objects/",
      "app/src/head.tsx",
      "app/bin/update",
      "app/docs/HEAD.md",
      "app/index",
    ])
      // prettier-ignore
      assert.equal(judge(policySet, callOf(step)).verdict, "ALLOW", step);
  });
});
