#!/usr/bin/env node
// Runs the binary that npm has installed for this platform, with the same arguments, input and output, and ends as it ends.
"use strict";

const { spawn } = require("node:child_process");

const name = `@hydrallm/${process.platform}-${process.arch}`;
let binary;
try {
  binary = require.resolve(`${name}/bin/hydrallm${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  console.error(`hydrallm: the package ${name} is not installed. Either there is no binary for this platform, or npm was told to leave out optional dependencies.`);
  process.exit(1);
}

const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (err) => {
  console.error(`hydrallm: ${err.message}`);
  process.exit(1);
});
// Ctrl-C reaches the binary by itself, since a terminal tells all processes.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("exit", (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
