/** A person who decides approvals at a gate of a test. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ask } from "../../test/support/gate.ts";

export interface Person {
  /** Waits for an open approval, of this session if it is named, and approves it. */
  readonly approve: (session?: string) => Promise<void>;
  readonly deny: (session?: string) => Promise<void>;
  /** Lets the gate read its contracts again. */
  readonly reload: () => Promise<{ readonly status: number; readonly json: any }>;
}

/** A host of an agent may take a minute to start on a busy machine. */
const patienceMs = 120_000;

/** Creates a person with a key of her own. `folder` is the gate's, and has the operator's key. */
export async function startPerson(address: string, folder: string): Promise<Person> {
  const operator = JSON.parse(readFileSync(join(folder, "data", "operator.json"), "utf8")).key as string;
  const post = (by: string, path: string, body: object): Promise<{ readonly status: number; readonly json: any }> =>
    ask({ address }, path, {
      method: "POST",
      headers: { authorization: `Bearer ${by}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  await post(operator, "/admin/persons", { name: "anna" });
  const made = await post(operator, "/admin/keys", { name: "anna-laptop", scopes: ["approve"], person: "anna" });
  const anna = { authorization: `Bearer ${made.json.key}` };

  const decide = async (decision: "approve" | "deny", body: object, session?: string): Promise<void> => {
    const waiting = `/approvals?state=pending${session === undefined ? "" : `&session_id=${session}`}`;
    for (const end = Date.now() + patienceMs; Date.now() < end;) {
      const [open] = (await ask({ address }, waiting, { headers: anna })).json.approvals;
      if (open !== undefined) {
        const { hash } = (await ask({ address }, `/approvals/${open.id}`, { headers: anna })).json;
        await post(made.json.key, `/approvals/${open.id}/${decision}`, { hash, ...body });
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`no approval of ${session ?? "any session"} was opened`);
  };
  return {
    approve: (session) => decide("approve", {}, session),
    deny: (session) => decide("deny", { comment: "not today" }, session),
    reload: () => post(operator, "/admin/reload", {}),
  };
}
