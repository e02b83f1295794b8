/**
 * Notifications: events are sent to endpoints as signed webhooks (Standard Webhooks 1.0).
 *
 * Promises: each event is sent at least once, with retries over three days; addresses and secrets are never logged.
 *
 * Does not: choose what an event says.
 *
 * Package: gate. May import: events, settings, telemetry.
 */
