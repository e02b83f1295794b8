import { accessSync } from "node:fs";

/** @param mode a sum of constants such as `constants.R_OK` */
export function canAccess(file: string, mode: number): boolean {
  try {
    accessSync(file, mode);
    return true;
  } catch {
    return false;
  }
}
