import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import chromium from "@sparticuz/chromium";
import { chromium as playwright, type Browser } from "playwright-core";

const modules = fileURLToPath(new URL("../../node_modules/", import.meta.url));

/**
 * Starts the Chromium that comes from npm. Its security is as in a user's browser: the package's own arguments would
 * switch it off. Names other than those of this machine resolve to nothing. The package is for Linux on x64; on other
 * machines the variable CHROMIUM names the program.
 *
 * @param more arguments for Chromium
 */
export async function launchChromium(more: readonly string[] = []): Promise<Browser> {
  const args = [
    ...more,
    "--no-sandbox",
    "--headless=shell",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
  ];
  return playwright.launch({ executablePath: process.env["CHROMIUM"] ?? (await chromiumFile()), args });
}

/**
 * Returns the program, which is unpacked once. Test processes may do that at the same time: each unpacks into its own
 * folder, and the first to finish gives its folder the final name.
 */
async function chromiumFile(): Promise<string> {
  const { version } = JSON.parse(readFileSync(join(modules, "@sparticuz", "chromium", "package.json"), "utf8")) as {
    readonly version: string;
  };
  const cache = join(modules, ".cache");
  const folder = join(cache, `chromium-${version}`);
  const file = join(folder, "chromium");
  if (existsSync(file)) return file;
  await mkdir(cache, { recursive: true });
  const own = await mkdtemp(join(cache, "chromium-unpacking-"));
  await unpackInto(own);
  try {
    await rename(own, folder);
  } catch (error) {
    if (!existsSync(file)) throw error;
    await rm(own, { recursive: true, force: true });
  }
  return file;
}

/** The package unpacks into the folder for temporary files. */
async function unpackInto(folder: string): Promise<void> {
  const before = process.env["TMPDIR"];
  process.env["TMPDIR"] = folder;
  try {
    await chromium.executablePath();
  } finally {
    if (before === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = before;
  }
}
