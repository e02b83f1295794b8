/**
 * `svc-gate import-tools`: a contract that refuses all tools of an MCP server, an OpenAPI file or an agent host.
 *
 * Promises: parts of a schema that are left open are named in the new contract.
 *
 * Does not: write rules.
 *
 * May import: fmt.
 */
