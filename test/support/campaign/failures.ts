import { setTimeout as wait } from "node:timers/promises";
import type { Cluster } from "./cluster.ts";
import type { Line, Link } from "./line.ts";
import type { Dice } from "./random.ts";
import type { Replica } from "./replica.ts";

/** The parts of the campaign that fail. */
export interface Field {
  readonly cluster: Cluster;
  /** The gates, each with its connection to the database. */
  readonly gates: readonly { readonly replica: Replica; readonly line: Line }[];
  /** A time longer than the server lets a silent gate keep the head, in milliseconds. */
  readonly tooLongMs: number;
  /** How long a gate tries to find out the result of a COMMIT, in milliseconds. */
  readonly settleMs: number;
}

/** One failure, with its random values drawn beforehand. Resolves true when it has happened and is over. */
export type Failure = (field: Field, dice: Dice) => () => Promise<boolean>;

/** How long to wait for the moment in a transaction; while a server is down there is none. */
const momentWithinMs = 15_000;

/** A gate that is killed, or pauses and continues later, at any moment. */
const ofReplicas = {
  "replica: kill -9": ({ gates }, dice) => {
    const [{ replica }, pauseMs] = [dice.oneOf(gates), dice.between(0, 1500)];
    return async () => {
      replica.kill(pauseMs);
      await wait(pauseMs);
      return true;
    };
  },
  "replica: kill -9 between write and COMMIT": ({ gates }, dice) => {
    const { replica, line } = dice.oneOf(gates);
    return () => line.atNext("commit", momentWithinMs, () => replica.kill(0));
  },
  "replica: kill -9 after its COMMIT is sent": ({ gates }, dice) => {
    const { replica, line } = dice.oneOf(gates);
    return () =>
      line.atNext("commit", momentWithinMs, (link, message) => {
        link.pass(message);
        replica.kill(0);
      });
  },
  "replica: frozen for a while": ({ gates, tooLongMs }, dice) => {
    const [{ replica }, ms] = [dice.oneOf(gates), dice.between(100, 1.5 * tooLongMs)];
    return async () => {
      const thaw = replica.freeze();
      await wait(ms);
      thaw();
      return true;
    };
  },
  "replica: frozen while it holds the head, longer than it may": ({ gates, tooLongMs }, dice) => {
    const [{ replica, line }, ms] = [dice.oneOf(gates), tooLongMs + dice.between(100, 1500)];
    return async () => {
      const frozen = Promise.withResolvers<() => void>();
      const happened = await line.atNext("lock", momentWithinMs, (link, message) => {
        link.pass(message);
        frozen.resolve(replica.freeze());
      });
      if (!happened) return false;
      await wait(ms);
      (await frozen.promise)();
      return true;
    };
  },
  "replica: frozen with its COMMIT under way, longer than it may": ({ gates, tooLongMs }, dice) => {
    const [{ replica, line }, ms] = [dice.oneOf(gates), tooLongMs + dice.between(100, 1500)];
    return async () => {
      const frozen = Promise.withResolvers<{ readonly thaw: () => void; readonly link: Link }>();
      const happened = await line.atNext("commit", momentWithinMs, (link, message) => {
        link.darken();
        link.pass(message);
        frozen.resolve({ link, thaw: replica.freeze() });
      });
      if (!happened) return false;
      await wait(ms);
      const { link, thaw } = await frozen.promise;
      link.lighten();
      thaw();
      return true;
    };
  },
} satisfies Readonly<Record<string, Failure>>;

/** The server, its standby, or both; and changes of the primary. One of these at a time. */
const ofServers = {
  "server: kill -9": ({ cluster }, dice) => {
    const pauseMs = dice.between(0, 800);
    return () => cluster.killPrimary(pauseMs).then(yes);
  },
  "server: stopped immediately":
    ({ cluster }) =>
    () =>
      cluster.restartPrimary("immediate").then(yes),
  "server: restarted in order":
    ({ cluster }) =>
    () =>
      cluster.restartPrimary("fast").then(yes),
  "standby: kill -9": ({ cluster }, dice) => {
    const pauseMs = dice.between(0, 1500);
    return () => cluster.killStandby(pauseMs).then(yes);
  },
  "server and standby: kill -9": ({ cluster }, dice) => {
    const [one, other] = [dice.between(0, 800), dice.between(0, 1500)];
    return () => Promise.all([cluster.killPrimary(one), cluster.killStandby(other)]).then(yes);
  },
  "standby promoted: the server is dead":
    ({ cluster }) =>
    () =>
      cluster.failOver("killed", 0).then(yes),
  "standby promoted: the server is up and unreachable": ({ cluster }, dice) => {
    const ms = dice.between(500, 4000);
    return () => cluster.failOver("unreachable", ms).then(yes);
  },
  "standby promoted: the server still has sessions of gates": ({ cluster }, dice) => {
    const ms = dice.between(500, 3000);
    return () => cluster.failOver("stale", ms).then(yes);
  },
  "standby promoted: cut off, and the server restarted without it": ({ cluster }, dice) => {
    const ms = dice.between(200, 1500);
    return async () => {
      cluster.replication.darken();
      await wait(ms);
      await cluster.killPrimary(0);
      await wait(ms);
      for (const link of cluster.replication.links) link.cut();
      cluster.replication.lighten();
      await cluster.failOver("killed", 0);
      return true;
    };
  },
} satisfies Readonly<Record<string, Failure>>;

/** Connections between gates, server and standby. */
const ofNetwork = {
  "network: cut before the server has the COMMIT": ({ gates }, dice) => {
    const { line } = dice.oneOf(gates);
    return () => line.atNext("commit", momentWithinMs, (link) => link.cut());
  },
  "network: cut in the midst of the COMMIT": ({ gates }, dice) => {
    const [{ line }, share] = [dice.oneOf(gates), dice.roll()];
    return () =>
      line.atNext("commit", momentWithinMs, (link, message) =>
        link.cut(message.subarray(0, Math.floor(share * message.length))),
      );
  },
  "network: cut after the COMMIT, before its answer": ({ gates }, dice) => {
    const { line } = dice.oneOf(gates);
    return () => line.atNext("commit", momentWithinMs, cutAfter);
  },
  "network: cut after the COMMIT, then dark for longer than a gate tries to find out": ({ gates, settleMs }, dice) => {
    const [{ line }, ms] = [dice.oneOf(gates), settleMs + dice.between(500, 2000)];
    return async () => {
      const happened = await line.atNext("commit", momentWithinMs, (link, message) => {
        cutAfter(link, message);
        line.darkenNew();
      });
      if (!happened) return false;
      await wait(ms);
      line.lighten();
      return true;
    };
  },
  "network: the answer to the COMMIT never comes": ({ gates }, dice) => {
    const { line } = dice.oneOf(gates);
    return () =>
      line.atNext("commit", momentWithinMs, (link, message) => {
        link.onAnswer = () => false;
        link.pass(message);
      });
  },
  "network: the COMMIT arrives late": ({ gates, tooLongMs }, dice) => {
    const [{ line }, ms] = [dice.oneOf(gates), dice.between(200, 2 * tooLongMs)];
    return async () => {
      const dark = Promise.withResolvers<Link>();
      const happened = await line.atNext("commit", momentWithinMs, (link, message) => {
        link.darken();
        link.pass(message);
        dark.resolve(link);
      });
      if (!happened) return false;
      await wait(ms);
      (await dark.promise).lighten();
      return true;
    };
  },
  "network: dark for a while between a gate and the server": ({ gates, tooLongMs }, dice) => {
    const [{ line }, ms, isCut] = [dice.oneOf(gates), dice.between(200, 2 * tooLongMs), dice.roll() < 0.5];
    return () => darkened(line, ms, isCut);
  },
  "network: all lines of all gates cut": ({ gates }) => {
    return () => {
      for (const link of gates.flatMap(({ line }) => line.links)) link.cut();
      return Promise.resolve(true);
    };
  },
  "network: dark for a while between server and standby": ({ cluster }, dice) => {
    const [ms, isCut] = [dice.between(200, 4000), dice.roll() < 0.5];
    return () => darkened(cluster.replication, ms, isCut);
  },
  "sessions: ended by the server": ({ cluster }, dice) => {
    const share = dice.oneOf([0.3, 1]);
    return () => cluster.disturbSessions("pg_terminate_backend", share).then(yes, no);
  },
  "sessions: cancelled by the server": ({ cluster }) => {
    return () => cluster.disturbSessions("pg_cancel_backend", 1).then(yes, no);
  },
} satisfies Readonly<Record<string, Failure>>;

export const failures: Readonly<Record<string, Failure>> = { ...ofReplicas, ...ofServers, ...ofNetwork };

export type FailureName = keyof typeof ofReplicas | keyof typeof ofServers | keyof typeof ofNetwork;

/** Of these groups, one failure happens at a time. */
export const exclusive: ReadonlySet<string> = new Set(Object.keys(ofServers));

/** The weight of each failure. */
export const weights: Readonly<Record<FailureName, number>> = {
  "replica: kill -9": 4,
  "replica: kill -9 between write and COMMIT": 2,
  "replica: kill -9 after its COMMIT is sent": 2,
  "replica: frozen for a while": 2,
  "replica: frozen while it holds the head, longer than it may": 2,
  "replica: frozen with its COMMIT under way, longer than it may": 2,
  "server: kill -9": 3,
  "server: stopped immediately": 2,
  "server: restarted in order": 1,
  "standby: kill -9": 3,
  "server and standby: kill -9": 1,
  "standby promoted: the server is dead": 2,
  "standby promoted: the server is up and unreachable": 1,
  "standby promoted: the server still has sessions of gates": 1,
  "standby promoted: cut off, and the server restarted without it": 1,
  "network: cut before the server has the COMMIT": 4,
  "network: cut in the midst of the COMMIT": 2,
  "network: cut after the COMMIT, before its answer": 6,
  "network: cut after the COMMIT, then dark for longer than a gate tries to find out": 1,
  "network: the answer to the COMMIT never comes": 2,
  "network: the COMMIT arrives late": 3,
  "network: dark for a while between a gate and the server": 3,
  "network: all lines of all gates cut": 3,
  "network: dark for a while between server and standby": 3,
  "sessions: ended by the server": 3,
  "sessions: cancelled by the server": 2,
};

/** Cuts the connection after the server has committed, so that its answer is lost. */
function cutAfter(link: Link, message: Buffer): void {
  let said = Buffer.alloc(0);
  link.onAnswer = (chunk) => {
    said = Buffer.concat([said, chunk]);
    if (said.includes("COMMIT\0")) link.cut();
    return false;
  };
  link.pass(message);
}

async function darkened(line: Line, ms: number, isCut: boolean): Promise<boolean> {
  line.darken();
  await wait(ms);
  if (isCut) for (const link of line.links) link.cut();
  line.lighten();
  return true;
}

const yes = (): boolean => true;
/** There was no server to ask. */
const no = (): boolean => false;
