/** The version of this package, as on each receipt's `engine`; a test holds it against package.json. */
export const version = "1.0.0";
export const engine: string = `svc-gate/${version}`;
