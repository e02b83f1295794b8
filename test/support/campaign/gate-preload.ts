/**
 * Loaded into a gate before it starts: another wall clock, which jumps, or shorter bounds, so that a campaign is. What is
 * set is in CAMPAIGN_* variables.
 */
const { CAMPAIGN_CLOCK, CAMPAIGN_BOUNDS } = process.env;

if (CAMPAIGN_CLOCK !== undefined) {
  const offsets = JSON.parse(CAMPAIGN_CLOCK) as readonly number[];
  const real = Date.now;
  const secondsEach = 5;
  Date.now = () => {
    const now = real();
    return now + (offsets[Math.floor(now / (secondsEach * 1000)) % offsets.length] ?? 0);
  };
}

if (CAMPAIGN_BOUNDS !== undefined) {
  const { bounds } = await import("../../../packages/svc-gate/src/ledger/store/postgres/session.ts");
  Object.assign(bounds, JSON.parse(CAMPAIGN_BOUNDS));
}
