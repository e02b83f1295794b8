/** Replaces `node:timers/promises`. */
import { machine } from "./machine.ts";

export function setImmediate(): Promise<void> {
  return new Promise((resolve) => machine().later(0, resolve));
}

export function setTimeout(delayMs: number): Promise<void> {
  return new Promise((resolve) => machine().later(delayMs, resolve));
}
