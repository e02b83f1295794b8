/**
 * `svc-gate hook install`: writes the hook into the settings of an agent host.
 *
 * Promises: changes are shown before they are written, and `--undo` restores the earlier settings.
 *
 * Does not: run the host.
 *
 * May import: nothing.
 */
