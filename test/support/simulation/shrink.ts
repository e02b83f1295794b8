import { patience } from "../random-test.ts";
import type { Life, Plan } from "./plan.ts";

const triesMax = 10_000;

/** Minimises a failing history as far as patience allows: fewer lives, fewer faults, fewer calls. */
export async function shrink(plan: Plan, fails: (smaller: Plan) => Promise<boolean>): Promise<Plan> {
  const mayTry = patience(triesMax);
  let smallest = plan;
  for (let isSmaller = true; isSmaller;) {
    isSmaller = false;
    for (const smaller of smallerThan(smallest)) {
      if (!mayTry()) return smallest;
      if (!(await fails(smaller))) continue;
      smallest = smaller;
      isSmaller = true;
      break;
    }
  }
  return smallest;
}

function smallerThan({ lives, hasPinOutside }: Plan): readonly Plan[] {
  const fewer = lives.map((_, index) => ({ hasPinOutside, lives: lives.toSpliced(index, 1) }));
  const simpler = lives.flatMap((life, index) =>
    simplerThan(life).map((simple) => ({ hasPinOutside, lives: lives.with(index, simple) })),
  );
  const plain = hasPinOutside ? [{ hasPinOutside: false, lives }] : [];
  return [...fewer.filter((plan) => plan.lives.length > 0), ...plain, ...simpler];
}

function simplerThan(life: Life): readonly Life[] {
  const { mishaps, calls, skewMs, roomBytes, closes, errands = 0, votes = 0, repeats = 0 } = life;
  return [
    ...mishaps.map((_, index) => ({ ...life, mishaps: mishaps.toSpliced(index, 1) })),
    ...(calls > 0 ? [0, Math.floor(calls / 2), calls - 1].map((fewer) => ({ ...life, calls: fewer })) : []),
    ...(errands > 0 ? [0, errands - 1].map((fewer) => ({ ...life, errands: fewer })) : []),
    ...(votes > 0 ? [0, votes - 1].map((fewer) => ({ ...life, votes: fewer })) : []),
    ...(repeats > 0 ? [0, repeats - 1].map((fewer) => ({ ...life, repeats: fewer })) : []),
    ...(skewMs === 0 ? [] : [{ ...life, skewMs: 0 }]),
    ...(roomBytes === null ? [] : [{ ...life, roomBytes: null }]),
    ...(closes ? [{ ...life, closes: false }] : []),
  ];
}
