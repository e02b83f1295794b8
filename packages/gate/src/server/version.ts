/** The version of this package, as in `engine` of each receipt. A test compares it with package.json. */
export const version = "1.0.0";
export const engine: string = `svc-gate/${version}`;
