import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

const ivBytes = 12;
const tagBytes = 16;

/**
 * Seals values for browsers (AES-256-GCM): nobody can read or change them, and every replica with the same secret can
 * open them.
 */
export class Seal {
  readonly #derive: () => Promise<Buffer>;
  #key: Promise<Buffer> | undefined;

  /**
   * @param secret reads or makes the secret; at least 32 bytes
   * @param purpose makes a key of its own: what is sealed for one purpose is nothing to another
   */
  constructor(secret: () => Promise<Buffer>, purpose: string) {
    this.#derive = async () => Buffer.from(hkdfSync("sha256", await secret(), "", purpose, 32));
  }

  /** @param scope what the value is for; it must be the same when the value is opened */
  async close(value: object, scope: string): Promise<string> {
    const iv = randomBytes(ivBytes);
    const cipher = createCipheriv("aes-256-gcm", await this.#secret(), iv).setAAD(Buffer.from(scope));
    const sealed = Buffer.concat([cipher.update(JSON.stringify(value), "utf8"), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString("base64url");
  }

  /** Returns the value; undefined if the seal is broken, or of another gate, purpose or scope. */
  async open(text: string, scope: string): Promise<unknown> {
    const bytes = Buffer.from(text, "base64url");
    const [iv, tag] = [bytes.subarray(0, ivBytes), bytes.subarray(ivBytes, ivBytes + tagBytes)];
    if (tag.length < tagBytes) return undefined;
    const decipher = createDecipheriv("aes-256-gcm", await this.#secret(), iv);
    decipher.setAAD(Buffer.from(scope)).setAuthTag(tag);
    try {
      const opened = Buffer.concat([decipher.update(bytes.subarray(ivBytes + tagBytes)), decipher.final()]);
      return JSON.parse(opened.toString()) as unknown;
    } catch {
      return undefined;
    }
  }

  #secret(): Promise<Buffer> {
    this.#key ??= this.#derive().catch((error: unknown) => {
      this.#key = undefined;
      throw error;
    });
    return this.#key;
  }
}
