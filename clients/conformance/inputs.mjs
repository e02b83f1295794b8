/** Inputs that JSON cannot express: a case names them, and each language has its own version. */
const trap = () => {
  throw hostile;
};
const hostile = new Proxy({}, { ownKeys: trap, getPrototypeOf: trap, get: trap });
const cycle = [];
cycle.push(cycle);
const gap = Object.assign([], { 0: 1, 2: 3 });

class Payment {
  amount = 1;
}

const kinds = {
  absent: undefined,
  big_float: 2 ** 53,
  bytes: new Uint8Array(1),
  cycle,
  date: new Date(0),
  exact: 1n,
  function: trap,
  gap,
  hostile,
  infinity: Infinity,
  instance: new Payment(),
  map: new Map(),
  nan: NaN,
  odd_name: { [Symbol("a")]: 1 },
  set: new Set([1]),
  surrogate: "a\ud800",
  to_json: { toJSON: trap },
};

const nested = (depth) => (depth === 0 ? {} : { a: nested(depth - 1) });
const many = (inner, length) => Array.from({ length }, () => inner);

/** Returns the value of a case, with the named inputs filled in. */
export function built(value) {
  if (Array.isArray(value)) return value.map(built);
  if (typeof value !== "object" || value === null) return value;
  if (value.$text) return value.$text[0].repeat(value.$text[1]);
  if (value.$nested) return nested(value.$nested);
  if (value.$many) return many(many(many(many(many(0, 10), 10), 10), 10), value.$many);
  if (value.$build) return kinds[value.$build];
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, built(item)]));
}
