import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";
import { runGit } from "./history.ts";

/** The environment of git in these repositories. */
export const environment: NodeJS.ProcessEnv = {
  ...process.env,
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_NOSYSTEM: "1",
  // A commit would start another process.
  GIT_CONFIG_COUNT: "1",
  GIT_CONFIG_KEY_0: "maintenance.auto",
  GIT_CONFIG_VALUE_0: "false",
  GIT_AUTHOR_NAME: "Ada",
  GIT_AUTHOR_EMAIL: "ada@example.com",
  GIT_COMMITTER_NAME: "Ada",
  GIT_COMMITTER_EMAIL: "ada@example.com",
};

/** Makes a folder that is removed with the test. */
export function newFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-git-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A small git repository in a temporary folder, without this machine's settings of git. */
export class SmallRepository {
  readonly folder: string;

  constructor(t: TestContext) {
    this.folder = newFolder(t);
    this.git("init", "--quiet", "--initial-branch=main");
  }

  git(...given: string[]): string {
    return runGit(this.folder, given, environment);
  }

  commit(message: string, file = message, text = message): void {
    const path = join(this.folder, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    this.git("add", "--", file);
    this.git("commit", "--quiet", "-m", message);
  }

  branch(name: string, from: string): void {
    this.git("switch", "--quiet", "--create", name, from);
  }

  merge(subject: string, branch: string): void {
    this.git("merge", "--quiet", "--no-ff", "-m", subject, branch);
  }
}
