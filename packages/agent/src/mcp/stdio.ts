/** Starts a server as a child process and stands between it and the client of this process. */
import { spawn, type ChildProcessByStdio } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { Catalogue } from "./catalogue.ts";
import { readLines, writeLine, type LineFault } from "./lines.ts";
import * as messages from "./message.ts";
import type { Ports, RelayContext } from "./context.ts";
import { Relay } from "./relay.ts";
import { serverEnv } from "./settings.ts";

/** How long a server may take to end after its input has ended, and again after SIGTERM. */
const endMs = 5000;
/** How long a process that the server has left behind may keep its output open. */
const lastLinesMs = 1000;
/** How long the reports of the last calls may take. */
const reportMs = 2000;

/** @returns the server's exit code */
export async function proxyStdio(context: RelayContext, command: readonly string[]): Promise<number> {
  const [program = "", ...words] = command;
  const child = spawn(program, words, { stdio: ["pipe", "pipe", "inherit"], env: serverEnv(process.env) });
  const relay = new Relay(context, new Catalogue(context.pins, context.say));
  // Who does not take the answers to its messages must not fill the memory with more of them.
  const portsOf = (source: Readable): Ports => ({
    toServer: (text) => writeLine(child.stdin, text, source),
    toClient: (text) => writeLine(process.stdout, text, source),
  });
  const [ports, serverPorts] = [portsOf(process.stdin), portsOf(child.stdout)];
  child.stdin.on("error", () => undefined);
  process.stdout.on("error", () => child.stdin.end());
  readLines(process.stdin, {
    line: (text) => fromClient(relay, ports, text),
    fault: (why) => ports.toClient(unreadable(why)),
    end: () => stopChild(child),
  });
  const lines = new Promise<void>((resolve) => {
    readLines(child.stdout, {
      line: (text) => fromServer(relay, serverPorts, text, context.say),
      fault: (why) => context.say(`a line of the server is dropped: it is ${why}`),
      end: resolve,
    });
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.kill(signal));
  const code = await exitOf(child, context.say);
  do await Promise.race([lines, atMost(lastLinesMs)]);
  while (child.stdout.isPaused());
  child.stdout.destroy();
  relay.close("Svc: the MCP server has ended.");
  process.stdin.destroy();
  await Promise.race([context.judge.waitForReports(), atMost(reportMs)]);
  return code;
}

/** A limit of time that does not keep the process. */
function atMost(ms: number): Promise<void> {
  return pause(ms, undefined, { ref: false });
}

function fromClient(relay: Relay, ports: Ports, text: string): void {
  let message: messages.RpcMessage;
  try {
    message = messages.readMessage(text);
  } catch (error) {
    if (!(error instanceof messages.MessageError)) throw error;
    return ports.toClient(messages.errorText(error.id, error.code, error.message));
  }
  void relay.fromClient(message, ports);
}

/** A client waits for each answer, so an answer that cannot be read becomes an error. */
function fromServer(relay: Relay, ports: Ports, text: string, say: (sentence: string) => void): void {
  let message: messages.RpcMessage;
  try {
    message = messages.readMessage(text);
  } catch (error) {
    if (!(error instanceof messages.MessageError)) throw error;
    say(`a line of the server is dropped. ${error.message}`);
    if (error.id === null) return;
    const problem = messages.errorText(error.id, messages.errors.internal, "Svc: the server's answer cannot be read.");
    message = messages.readMessage(problem);
  }
  void relay.fromServer(message, ports);
}

function unreadable(why: LineFault): string {
  return messages.errorText(null, messages.errors.parse, `Svc: the message is refused: it is ${why}.`);
}

function stopChild(child: ChildProcessByStdio<Writable, Readable, null>): void {
  child.stdin.end();
  // A child that has ended does not keep this process, and neither do the timers.
  setTimeout(() => {
    child.kill("SIGTERM");
    setTimeout(() => child.kill("SIGKILL"), endMs).unref();
  }, endMs).unref();
}

function exitOf(
  child: ChildProcessByStdio<Writable, Readable, null>,
  say: (sentence: string) => void,
): Promise<number> {
  return new Promise((resolve) => {
    child.on("error", (error) => {
      say(`the server cannot be started: ${error.message}`);
      resolve(1);
    });
    child.on("exit", (code) => resolve(code ?? 1));
  });
}
