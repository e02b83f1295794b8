import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
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
  const own = process.env["CHROMIUM"];
  if (own !== undefined) return playwright.launch({ executablePath: own, args });
  const executablePath = await chromiumFile();
  return playwright.launch({ executablePath, args }).catch((error: unknown) => {
    if (!String(error).includes("error while loading shared libraries")) throw error;
    return playwright.launch({ executablePath, args, env: withOwnLibraries(dirname(executablePath)) });
  });
}

/** The package has the libraries and fonts that a small Linux lacks, such as NSS. */
function withOwnLibraries(folder: string): Record<string, string | undefined> {
  return { ...process.env, LD_LIBRARY_PATH: join(folder, "al2023", "lib"), FONTCONFIG_PATH: join(folder, "fonts") };
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

/** The package unpacks into the folder for temporary files, and its libraries only where it sees Amazon's runtime. */
async function unpackInto(folder: string): Promise<void> {
  const wanted = { TMPDIR: folder, AWS_LAMBDA_JS_RUNTIME: "nodejs24.x" };
  const kept = Object.keys(wanted).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, wanted);
  try {
    await chromium.executablePath();
  } finally {
    for (const [name, value] of kept)
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
  }
}
