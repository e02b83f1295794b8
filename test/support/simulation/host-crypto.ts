/** Replaces `node:crypto`: all of it, with random values from the seed. */
import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import type { Chance } from "../model/chance.ts";
import { machine } from "./machine.ts";

export * from "node:crypto";

/**
 * Random bytes that the program consumes bit by bit repeat themselves: the amount that an earlier history consumed then
 * makes no difference to the next.
 */
const period = 16;
const pattern = new Uint8Array(period);
const pools = new Set<Uint8Array>();

export function randomFillSync<Bytes extends Uint8Array>(bytes: Bytes): Bytes {
  pools.add(bytes);
  return fill(bytes);
}

function fill<Bytes extends Uint8Array>(bytes: Bytes): Bytes {
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = pattern[at % period] ?? 0;
  return bytes;
}

export function randomBytes(count: number): Buffer {
  const { chance } = machine();
  return Buffer.from(chance.many(count, count, () => chance.whole(0, 255)));
}

/** The bytes of PKCS#8 before the 32 bytes of an Ed25519 key. */
const pkcs8 = Buffer.from("302e020100300506032b657004220420", "hex");

export function generateKeyPairSync(_type: "ed25519"): {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
} {
  const privateKey = createPrivateKey({ key: Buffer.concat([pkcs8, randomBytes(32)]), format: "der", type: "pkcs8" });
  return { privateKey, publicKey: createPublicKey(privateKey) };
}

/** Resets the state at the start of a history. */
export function reseedPools(chance: Chance): void {
  for (let at = 0; at < period; at += 1) pattern[at] = chance.whole(0, 255);
  for (const pool of pools) fill(pool);
}
