import { execFileSync } from "node:child_process";
import dns from "node:dns";
import { defineConfig } from "@playwright/test";
import "./record";

// Returns the path of the first Chromium that is installed.
function chromium(): string {
  for (const name of ["chromium", "chromium-headless-shell", "google-chrome"]) {
    try {
      return execFileSync("which", [name], { encoding: "utf8" }).trim();
    } catch {
      // Try the next name.
    }
  }
  throw new Error("no Chromium is installed");
}

// Browsers resolve every name below `localhost` to the loopback address. Node uses the system's resolver, which may not.
const { lookup } = dns.promises;
const local = (name: string) => (name.endsWith(".localhost") ? "127.0.0.1" : name);
dns.promises.lookup = ((name: string, ...rest: any[]) => (lookup as any)(local(name), ...rest)) as typeof lookup;
const older = dns.lookup;
dns.lookup = ((name: string, ...rest: any[]) => (older as any)(local(name), ...rest)) as typeof older;

export default defineConfig({
  testDir: ".",
  timeout: 300_000,
  expect: { timeout: 60_000 },
  // All tests share the users and their machines.
  workers: 1,
  fullyParallel: false,
  reporter: [["list"]],
  outputDir: "test-results",
  use: {
    baseURL: process.env.DASHBOARD_URL,
    ignoreHTTPSErrors: true,
    locale: "en-GB",
    timezoneId: "Europe/Rome",
    // A page that a test answers itself has no address, and Chromium does not let such a page send requests to the loopback
    // address, where the dashboard is here.
    launchOptions: {
      executablePath: chromium(),
      args: ["--no-sandbox", "--disable-gpu", "--disable-features=LocalNetworkAccessChecks"],
    },
  },
});
