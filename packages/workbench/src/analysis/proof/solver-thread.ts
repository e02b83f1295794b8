/** The thread of the solver: it receives questions in SMT-LIB, and answers one after another. */
import { parentPort } from "node:worker_threads";
import { init } from "z3-solver";

const { Z3 } = await init();
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
parentPort?.postMessage("ready");

parentPort?.on("message", async (question: string) => {
  // Each question has a separate context: otherwise its answer would depend on earlier questions.
  const context = Z3.mk_context(Z3.mk_config());
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  parentPort?.postMessage(await Z3.eval_smtlib2_string(context, question));
  Z3.del_context(context);
});
