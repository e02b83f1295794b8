import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";
import { runGit } from "./history.ts";
import { temporaryFolder } from "./ledger-fixture.ts";

/** The environment of git in these repositories. */
export const environment: NodeJS.ProcessEnv = {
  ...process.env,
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_AUTHOR_NAME: "Ada",
  GIT_AUTHOR_EMAIL: "ada@example.com",
  GIT_COMMITTER_NAME: "Ada",
  GIT_COMMITTER_EMAIL: "ada@example.com",
};

/** A small git repository in a temporary folder, without this machine's settings of git. */
export class SmallRepository {
  readonly folder: string;

  constructor(t: TestContext) {
    this.folder = temporaryFolder(t);
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
