/**
 * A disk with a volatile write cache: a process that serves one file over FUSE, for a loop device. It appends every
 * write and flush of the kernel to a log, in order and with its time. power-cut.ts can then restore the disk as a power
 * cut at any of them would have left it. The device-mapper target `log-writes` does the same on kernels that have it;
 * this program needs only /dev/fuse.
 *
 * argv: the disk's initial image, the file to mount over it, the log, and the folder where its file system is mounted.
 * When its parent ends, it unmounts both and ends.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, read, readFileSync, writeSync } from "node:fs";

const [image = "", mountFile = "", logFile = "", folder = ""] = process.argv.slice(2);

/** As <linux/fuse.h> names them, version 7.31. */
const opcode = { getattr: 3, setattr: 4, open: 14, read: 15, write: 16, release: 18, fsync: 20, flush: 25, init: 26 };
const silent: ReadonlySet<number> = new Set([2, 36, 42]); // forget, interrupt, batch_forget: no answer is waited for
const notThere = -38; // ENOSYS
const headerIn = 40;
const writeMax = 128 * 1024;

const content = readFileSync(image);
const log = openSync(logFile, "w");
const device = openSync("/dev/fuse", "r+");

/**
 * Returns a record of the log: time in nanoseconds, 0 for a flush or the length of a write, the offset, and the bytes.
 */
function note(length: number, offset: bigint, bytes?: Uint8Array): void {
  const head = Buffer.alloc(24);
  head.writeBigUInt64LE(process.hrtime.bigint(), 0);
  head.writeBigUInt64LE(BigInt(length), 8);
  head.writeBigUInt64LE(offset, 16);
  writeSync(log, bytes === undefined ? head : Buffer.concat([head, bytes]));
}

function answer(unique: bigint, error: number, body: Uint8Array = Buffer.alloc(0)): void {
  const head = Buffer.alloc(16);
  head.writeUInt32LE(16 + body.length, 0);
  head.writeInt32LE(error, 4);
  head.writeBigUInt64LE(unique, 8);
  writeSync(device, Buffer.concat([head, body]));
}

/** Returns struct fuse_attr_out of the only file, which is the root. */
function attributes(): Buffer {
  const out = Buffer.alloc(16 + 88);
  out.writeBigUInt64LE(1n, 16);
  out.writeBigUInt64LE(BigInt(content.length), 24);
  out.writeBigUInt64LE(BigInt(content.length / 512), 32);
  out.writeUInt32LE(0o100600, 16 + 60);
  out.writeUInt32LE(1, 16 + 64);
  out.writeUInt32LE(4096, 16 + 80);
  return out;
}

/** Returns struct fuse_init_out. It disables the kernel's caches between the loop device and this process. */
function greeting(): Buffer {
  const out = Buffer.alloc(64);
  out.writeUInt32LE(7, 0);
  out.writeUInt32LE(31, 4);
  out.writeUInt32LE(writeMax, 8);
  out.writeUInt16LE(16, 16);
  out.writeUInt16LE(12, 18);
  out.writeUInt32LE(writeMax, 20);
  out.writeUInt32LE(1, 24);
  return out;
}

/** Returns the reply to each request, after its effect. */
function serve(request: Buffer): void {
  const [code, unique] = [request.readUInt32LE(4), request.readBigUInt64LE(8)];
  const body = request.subarray(headerIn);
  if (silent.has(code)) return;
  if (code === opcode.init) return answer(unique, 0, greeting());
  if (code === opcode.getattr || code === opcode.setattr) return answer(unique, 0, attributes());
  if (code === opcode.open) return answer(unique, 0, Buffer.alloc(16));
  if (code === opcode.release || code === opcode.flush) return answer(unique, 0);
  if (code === opcode.fsync) {
    note(0, 0n);
    return answer(unique, 0);
  }
  if (code !== opcode.read && code !== opcode.write) return answer(unique, notThere);
  const [offset, size] = [body.readBigUInt64LE(8), body.readUInt32LE(16)];
  if (code === opcode.read) return answer(unique, 0, content.subarray(Number(offset), Number(offset) + size));
  const bytes = body.subarray(40, 40 + size);
  note(size, offset, bytes);
  content.set(bytes, Number(offset));
  const written = Buffer.alloc(8);
  written.writeUInt32LE(size, 0);
  answer(unique, 0, written);
}

const buffer = Buffer.alloc(writeMax + 65_536);

/** Serves requests until the mount is gone. */
function follow(): void {
  read(device, buffer, 0, buffer.length, null, (error, length) => {
    if (error !== null && error.code !== "EINTR" && error.code !== "ENOENT") return end();
    if (error === null) serve(buffer.subarray(0, length));
    follow();
  });
}

function end(): void {
  closeSync(log);
  process.kill(process.pid, "SIGKILL"); // a read that waits for the kernel would delay an ordinary end
}

const options = "fd=3,rootmode=100000,user_id=0,group_id=0,allow_other";
const mounting = spawn("mount", ["-i", "-t", "fuse", "-o", options, "svc-gate-disk", mountFile], {
  stdio: ["ignore", "inherit", "inherit", device],
});
const [status] = (await once(mounting, "exit")) as [number | null];
if (status !== 0) process.exit(1);
follow();
process.send?.("mounted");

process.once("disconnect", () => {
  spawn("umount", ["-l", folder]).once("exit", () => spawn("umount", ["-l", mountFile]));
});
