/**
 * `svc-gate mcp`: stands before an MCP server and asks the gate before each call.
 *
 * Promises: nothing reaches the server or the model that was neither accepted nor allowed.
 *
 * Does not: decide: the gate does.
 *
 * Package: agent. May import: nothing.
 */
