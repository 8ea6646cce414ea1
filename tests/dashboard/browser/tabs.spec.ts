// Many tabs of one browser. Over HTTP/1.1, which the proxy of these tests speaks, a browser opens at most six connections to a
// host. In these tests, all tabs are visible, so each test states which ones are hidden.
import { expect, test, type Page } from "@playwright/test";
import { clear, kubectl, login, machine } from "./site";

const live = (page: Page) => page.waitForFunction(() => document.documentElement.dataset.live === "yes");

// Hides a tab, or shows it.
const hide = (page: Page, isHidden: boolean) => page.evaluate((isHidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, value: isHidden });
  document.dispatchEvent(new Event("visibilitychange"));
}, isHidden);

const rename = (prettyName: string) =>
  kubectl("patch", "instances.crownlabs.polito.it", "tabs", "-n", "tenant-ada", "--type=merge", "-p", JSON.stringify({ spec: { prettyName } }));

test("ten tabs load and are live when they are visible, and a tab that becomes visible is updated", async ({ page, context }) => {
  await clear("ada");
  await machine("ada", "tabs", { prettyName: "Tabs" });
  await login(page, "ada", "/machines/tenant-ada/tabs");
  await live(page);
  const tabs = [page];
  while (tabs.length < 10) {
    await hide(tabs.at(-1)!, true);
    const tab = await context.newPage();
    await tab.goto("/machines/tenant-ada/tabs", { timeout: 10_000 });
    await live(tab);
    tabs.push(tab);
  }
  const [first, last] = [tabs[0], tabs.at(-1)!].map((tab) => tab.getByRole("heading", { level: 1 }));
  await rename("Renamed");
  await expect(last).toHaveText("Renamed");
  await expect(first).toHaveText("Tabs");
  await hide(page, false);
  await expect(first).toHaveText("Renamed");
  // It is live again, too.
  await rename("Again");
  await expect(first).toHaveText("Again");
});

test("a tab that is opened in the background has no stream until it is visible", async ({ page, context }) => {
  await clear("ada");
  await machine("ada", "tabs", { prettyName: "Tabs" });
  await login(page, "ada");
  const tab = await context.newPage();
  await tab.addInitScript(() => Object.defineProperty(document, "hidden", { configurable: true, value: true }));
  const streams: string[] = [];
  tab.on("request", (request) => {
    if (request.url().includes("/events?")) streams.push(request.url());
  });
  await tab.goto("/machines/tenant-ada/tabs");
  await rename("In the background");
  // The visible page has received the change.
  await expect(page.getByRole("article", { name: "In the background" })).toBeVisible();
  expect(streams).toEqual([]);
  await hide(tab, false);
  await expect(tab.getByRole("heading", { level: 1 })).toHaveText("In the background");
  await live(tab);
  expect(streams).toHaveLength(1);
});
