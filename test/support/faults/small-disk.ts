import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";

/**
 * Mounts a separate file system of this many MiB for one test.
 *
 * @returns its folder; undefined if this process cannot make or mount one
 */
export function smallDisk(t: TestContext, mebibytes: number, kind: "tmpfs" | "ext4" = "tmpfs"): string | undefined {
  const mountPoint = mkdtempSync(join(tmpdir(), "svc-gate-disk-"));
  const folder = join(mountPoint, "disk");
  mkdirSync(folder);
  const isMounted = process.getuid?.() === 0 && (kind === "tmpfs" ? mountMemory : mountImage)(folder, mebibytes);
  t.after(() => {
    if (isMounted) spawnSync("umount", ["-l", folder]);
    rmSync(mountPoint, { recursive: true, force: true });
  });
  return isMounted ? folder : undefined;
}

function mountMemory(folder: string, mebibytes: number): boolean {
  return spawnSync("mount", ["-t", "tmpfs", "-o", `size=${mebibytes}m`, "tmpfs", folder]).status === 0;
}

function mountImage(folder: string, mebibytes: number): boolean {
  const image = `${folder}.image`;
  writeFileSync(image, "");
  truncateSync(image, mebibytes * 2 ** 20);
  const isMade = spawnSync("mkfs.ext4", ["-q", "-F", image]).status === 0;
  return isMade && spawnSync("mount", ["-o", "loop", image, folder]).status === 0;
}
