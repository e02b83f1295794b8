/**
 * `svc-gate doctor`: runs an agent host with a stand-in gate, and reports calls that ran without ALLOW.
 *
 * Promises: the host gets a home folder, a key and a scripted model of the doctor's own.
 *
 * Does not: change the host's own settings.
 *
 * May import: install, model.
 */
