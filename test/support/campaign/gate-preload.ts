/**
 * Loaded into a gate before it starts: gives it a wall clock that is wrong and jumps, or shorter bounds, for a
 * campaign. The CAMPAIGN_* variables set both.
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
  const { bounds } = await import("../../../packages/gate/src/ledger/store/postgres/session.ts");
  Object.assign(bounds, JSON.parse(CAMPAIGN_BOUNDS));
}
