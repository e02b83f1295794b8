/**
 * `npm start`: runs the gate, and ends it when npm has ended. npm runs a script in a shell, and a signal to npm ends only npm and that
 * shell: the gate would go on, with the port and the data folder. The same happens if npm is killed, on Windows too.
 */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";

const everyMs = 250;
const parent = process.ppid;
let npm = parent;
if (process.platform === "linux") readParent();
else askForParent();
setInterval(() => {
  if (process.ppid !== parent || !lives(npm)) process.emit("SIGTERM");
}, everyMs).unref();

process.argv.splice(2, 0, "serve");
await import("../bin/svc-gate.mjs");

/** The parent is npm's shell, and then its parent is npm. Some shells become the program that they run: then the parent is npm. */
function noteParent(typed, above) {
  if (typed.includes("start.mjs") && above > 1) npm = above;
}

function readParent() {
  try {
    const [, above] = readFileSync(`/proc/${parent}/stat`, "latin1")
      .replace(/^.*\) /s, "")
      .split(" ");
    noteParent(readFileSync(`/proc/${parent}/cmdline`, "latin1"), Number(above));
  } catch {} // It has just ended, or the system hides it: `process.ppid` shows the end of the shell.
}

function askForParent() {
  const query = `$p = Get-CimInstance Win32_Process -Filter "ProcessId=${parent}"; "$($p.ParentProcessId) $($p.CommandLine)"`;
  const [program, ...words] =
    process.platform === "win32"
      ? ["powershell", "-NoProfile", "-Command", query]
      : ["ps", "-o", "ppid=", "-o", "args=", "-p", String(parent)];
  execFile(program, words, { windowsHide: true }, (_error, stdout) => {
    const [, above = "0", typed = ""] = /^\s*(\d+)\s+(.*)/.exec(stdout ?? "") ?? [];
    noteParent(typed, Number(above));
  });
}

function lives(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM"; // it belongs to another user
  }
}
