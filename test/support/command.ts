/** The command line in the process of the test: a Node process for each command costs half a second. */
import { Readable, Writable } from "node:stream";
import { main } from "../../packages/svc-gate/src/main.ts";

export interface Commanded {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  /** Variables beside those that the test itself has; its SVC_ variables are not passed on. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * The folder in which a reader would type the command: its `data` is the default, and it is left out of what is
   * printed. Relative paths among the arguments are not below it.
   */
  readonly folder?: string;
  /** Standard input. */
  readonly input?: string;
}

/** Runs a command to its end, as `finish` does in a process of its own. */
export async function command(
  args: readonly string[],
  { env, folder, input = "" }: CommandOptions = {},
): Promise<Commanded> {
  const [stdout, stderr] = [new Kept(), new Kept()];
  const own = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:SVC_|NODE_)/.test(name)));
  const code = await main(args, {
    stdin: Readable.from([input]),
    stdout,
    stderr,
    env: { ...own, ...(folder === undefined ? {} : { SVC_DATA_DIR: `${folder}/./data` }), ...env },
    on: noSignal,
    once: noSignal,
  });
  const printed = ({ text }: Kept): string => (folder === undefined ? text : text.replaceAll(`${folder}/`, ""));
  return { code, stdout: printed(stdout), stderr: printed(stderr) };
}

const noSignal = (): void => undefined;

/** Keeps what is written to it. */
class Kept extends Writable {
  readonly #pieces: Buffer[] = [];

  override _write(piece: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#pieces.push(piece);
    done();
  }

  get text(): string {
    return Buffer.concat(this.#pieces).toString("utf8");
  }
}
