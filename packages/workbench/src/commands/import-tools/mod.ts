/**
 * `svc-gate import-tools`: stubs of contracts from MCP servers and OpenAPI files.
 *
 * Promises: a part of a schema that a contract cannot express is reported.
 *
 * Does not: write rules.
 *
 * Package: workbench. May import: fmt.
 */
