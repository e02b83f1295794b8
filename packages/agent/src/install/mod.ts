/**
 * `svc-gate hook install`: writes the hook into the settings of an agent host.
 *
 * Promises: other settings stay as they were; a file that cannot be read is not written.
 *
 * Does not: run the host.
 *
 * Package: agent. May import: nothing.
 */
