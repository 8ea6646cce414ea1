// Records the requests, the storage and the pages of each context. After all tests, ../seen.rs searches the records for secrets.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { chromium, test, type Browser } from "@playwright/test";

const folder = process.env.DASHBOARD_RECORDED;
let count = 0;

function recording(browser: Browser, folder: string): Browser {
  const newContext = browser.newContext.bind(browser);
  browser.newContext = async (options) => {
    const file = join(folder, `${process.pid}-${count++}`);
    // The file exists from the beginning, with the title of the test: a context that is never closed leaves no record to search,
    // which fails the tests.
    writeFileSync(`${file}.json`, JSON.stringify(test.info().titlePath.join(" › ")));
    const context = await newContext({ ...options, recordHar: { path: `${file}.har`, content: "embed" } });
    const close = context.close.bind(context);
    context.close = async (reason) => {
      const { cookies, origins } = await context.storageState();
      const issuer = new URL(process.env.DASHBOARD_ISSUER!);
      const pages = context.pages().filter((page) => !page.url().startsWith(issuer.origin));
      const shown = await Promise.all(pages.map((page) => page.content().catch(() => "")));
      // The storage of the issuer is not searched.
      const stored = [cookies.filter(({ domain }) => domain !== issuer.hostname), origins.filter(({ origin }) => origin !== issuer.origin)];
      writeFileSync(`${file}.json`, JSON.stringify([shown, stored]));
      await close(reason);
    };
    return context;
  };
  return browser;
}

if (folder) {
  const launch = chromium.launch.bind(chromium);
  chromium.launch = async (options) => recording(await launch(options), folder);
}
