/** A thread whose objects say the thread's number when they open, and fail as they are told. */
import { threadId } from "node:worker_threads";
import { serveOpened } from "../../packages/gate/src/ledger/store/calls.ts";

export interface NumberOptions {
  readonly fails?: "open" | "close";
}

serveOpened(
  ({ fails }: NumberOptions) => {
    if (fails === "open") throw new Error("it does not open");
    const close = (): void => {
      if (fails === "close") throw new Error("it does not close");
    };
    return { opened: { close, end: () => process.exit() }, said: threadId };
  },
  ["end"],
);
