/** Ways in which an adapter can be wrong, and the cases that notice it. Most are in mutants.test.ts. */
import type { Mutation } from "./mutation/mutate.ts";

export interface Mutant {
  readonly fault: string;
  /** A file of adapters/. */
  readonly file: string;
  readonly mutation: Mutation;
  /** The host that notices it, as named in docs/hosts. */
  readonly host: string;
  /** Cases that must fail. */
  readonly noticed: readonly string[];
}

/** Of the adapters of smolagents, LlamaIndex and CrewAI. */
export const inPython: readonly Mutant[] = [
  {
    fault: "checks a name but not the input",
    file: "svc_gate_smolagents.py",
    mutation: {
      within: "_guarded",
      find: "GuardedCall(name, judged, agent)",
      put: 'GuardedCall(name, {"amount": 1}, agent)',
    },
    host: "smolagents, CodeAgent",
    noticed: ["A2", "D4"],
  },
  {
    fault: "loses the agents that an agent manages",
    file: "svc_gate_smolagents.py",
    mutation: { within: "_team_of", find: "member.managed_agents.values()", put: "()" },
    host: "smolagents, ToolCallingAgent",
    noticed: ["D1"],
  },
  {
    fault: "does not see what the provider runs",
    file: "svc_gate_smolagents.py",
    mutation: { within: "_settings_of", find: 'getattr(model, "kwargs", None) or {}', put: "{}" },
    host: "smolagents, ToolCallingAgent",
    noticed: ["D3"],
  },
  {
    fault: "ends a batch at its first refusal",
    file: "svc_gate_smolagents.py",
    mutation: {
      within: "_guarded",
      find: 'isinstance(agent, CodeAgent) or tool.output_type in ("audio", "image")',
      put: "True",
    },
    host: "smolagents, ToolCallingAgent",
    noticed: ["A4"],
  },
  {
    fault: "takes the answer to its question for a person's decision",
    file: "svc_gate_llama_index.py",
    mutation: {
      within: "_guarded",
      find: "guard.run_judged(judgement, $$more)",
      put: "(tool.acall(**given, **more) if is_answered else $found)",
    },
    host: "LlamaIndex",
    noticed: ["E1n"],
  },
  {
    fault: "ends a step that waits without its answer",
    file: "svc_gate_llama_index.py",
    mutation: { within: "_has_answer", find: "await call.context.store.get(_key_of(call), default=None)", put: "None" },
    host: "LlamaIndex",
    noticed: ["E1"],
  },
  {
    fault: "drops the arguments",
    file: "svc_gate_llama_index.py",
    mutation: { within: "_guarded", find: "to_jsonable_python(given)", put: "{}" },
    host: "LlamaIndex",
    noticed: ["A1"],
  },
  {
    fault: "loses the server of a tool",
    file: "svc_gate_crewai.py",
    mutation: { within: "_names_of", find: "gate_name(tool.name, server)", put: "gate_name(tool.name)" },
    host: "CrewAI",
    noticed: ["D2"],
  },
  {
    fault: "guards only the first agent of a crew",
    file: "svc_gate_crewai.py",
    mutation: { within: "_agents_of", find: "*crew.agents", put: "crew.agents[0]" },
    host: "CrewAI",
    noticed: ["D1"],
  },
  {
    fault: "checks a name but not the input",
    file: "svc_gate_crewai.py",
    mutation: { within: "_guarded", find: "to_jsonable_python(arguments)", put: '{"amount": 1}' },
    host: "CrewAI",
    noticed: ["A2", "D4"],
  },
];
