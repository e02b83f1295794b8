/**
 * Notifications: events are sent to endpoints as webhooks, signed (Standard Webhooks 1.0) or in Slack's form.
 *
 * Promises: events are sent again for three days until they are taken; addresses and secrets are never logged.
 *
 * Does not: store what an event says.
 *
 * May import: events, settings, telemetry.
 */
