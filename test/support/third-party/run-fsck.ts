import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import { temporaryFolder } from "../gate.ts";
import { runProgram } from "./programs.ts";

/** The result of Tessera's fsck for a log. */
export interface Fscked {
  readonly whole: boolean;
  /** The rows that it checked, if it printed them. */
  readonly size: number | undefined;
  readonly said: string;
}

export interface Target {
  /** A folder, or an address. */
  readonly at: string;
  readonly vkey: string;
  readonly token?: string;
}

/**
 * It exits with 0 whatever it found, so its output decides: only its own sentence of success counts. With its default
 * of one worker it hangs after a difference in any but the last tiles, because each difference ends a worker.
 */
export async function fsck(t: TestContext, program: string, { at, vkey, token }: Target): Promise<Fscked> {
  const keyFile = join(temporaryFolder(t), "log.vkey");
  writeFileSync(keyFile, vkey);
  const storage = at.startsWith("http:") ? `${at}/` : pathToFileURL(at).href;
  const bearer = token === undefined ? [] : [`--bearer_token=${token}`];
  const args = [
    `--storage_url=${storage}`,
    `--public_key=${keyFile}`,
    "--ui=false",
    "--logtostderr",
    "--N=16",
    ...bearer,
  ];
  const { code, stdout, stderr } = await runProgram(program, args);
  const said = stdout + stderr;
  const size = /Successfully fsck'd log with size (\d+)/.exec(said)?.[1];
  const whole = code === 0 && size !== undefined && !/fsck failed|^[EF]\d{4} /m.test(said);
  return { whole, size: size === undefined ? undefined : Number(size), said };
}
