/** A file named on the command line or by a setting cannot be read. */
export class NoSuchFile extends Error {}

/** A start that is refused: a sentence for the operator and the exit code. */
export class StartRefused extends Error {
  readonly exitCode: number;
  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** The file that contains the digest of the first key cannot be read. */
export class KeyFileDamaged extends Error {}

/** Returns why a file cannot be read, as a clause. */
export function whyNot(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENOENT") return "there is no such file";
  if (code === "EISDIR") return "it is a folder";
  if (code === "EACCES" || code === "EPERM") return "this user lacks the permission";
  if (code === "EROFS") return "its file system is read-only";
  if (code === "ENOTDIR") return "a part of its path is not a folder";
  if (code === "EEXIST") return "it already exists";
  return code === "ERR_ENCODING_INVALID_ENCODED_DATA" ? "it is not UTF-8" : String(code ?? error);
}
