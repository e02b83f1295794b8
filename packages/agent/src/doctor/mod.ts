/**
 * `svc-gate doctor`: runs an agent host against a stand-in gate, and reports whether it obeys.
 *
 * Promises: the host runs in a folder of its own, with a fake key and a scripted model.
 *
 * Does not: change the host's own settings.
 *
 * Package: agent. May import: install, model.
 */
