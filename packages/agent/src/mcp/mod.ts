/**
 * `svc-gate mcp`: a proxy for an MCP server that asks the gate before each tool call.
 *
 * Promises: a tool call reaches the server only if a person accepted the tool and the gate answered ALLOW.
 *
 * Does not: decide about accepted tools; the gate does.
 *
 * May import: nothing.
 */
