/** The thread that the solver runs in: questions in SMT-LIB come in, its answers go out, one after the other. */
import { parentPort } from "node:worker_threads";
import { init } from "z3-solver";

const { Z3 } = await init();
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
parentPort?.postMessage("ready");

parentPort?.on("message", async (question: string) => {
  // A context of its own: what one question leaves behind would make the answers to others hang on their order.
  const context = Z3.mk_context(Z3.mk_config());
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  parentPort?.postMessage(await Z3.eval_smtlib2_string(context, question));
  Z3.del_context(context);
});
