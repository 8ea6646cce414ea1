// A silent API server: it accepts connections and does not respond.
import { expect, test, type Page } from "@playwright/test";
import { faults, says } from "./axe";
import { at, clear, control, login, machine } from "./site";

const live = (page: Page) => page.waitForFunction(() => document.documentElement.dataset.live === "yes");

test("open pages say within ten seconds that the API server is silent, forms change nothing at once, and no notice is left afterwards", async ({ browser }) => {
  await clear("ada");
  await machine("ada", "quiet", { prettyName: "Quiet" });
  const home = await at(browser, {}, "ada");
  const card = home.getByRole("article", { name: "Quiet", exact: true });
  await expect(card.getByRole("button", { name: "Stop" })).toBeVisible();
  const [open, typed] = [await home.context().newPage(), await home.context().newPage()];
  for (const page of [open, typed]) await page.goto("/machines/tenant-ada/quiet");
  await typed.locator("#pretty-name").fill("half of a na");
  for (const page of [home, open, typed]) await live(page);
  await control("pause", { what: "apiserver" });
  try {
    await Promise.all([home, open, typed].map((page) => expect(page.locator("#silent")).toBeVisible({ timeout: 10_000 })));
    await expect(open.locator("#not-live")).toBeHidden();
    expect(await faults(open)).toEqual([]);
    await card.getByRole("button", { name: "Stop" }).click();
    await expect(home.getByRole("alert").filter({ hasText: "nothing was changed" })).toBeVisible({ timeout: 3_000 });
    await expect(home.locator("#old")).toBeVisible();
    await expect(home.locator("#silent")).toBeHidden();
    await typed.getByRole("button", { name: "Rename" }).click({ timeout: 3_000 });
    // The page reloads in the meantime.
    await expect(() => says(typed, "The laboratory does not respond")).toPass();
  } finally {
    await control("resume", { what: "apiserver" });
  }
  const soon = { timeout: 10_000 };
  await Promise.all([
    expect(home.locator("#old")).toHaveCount(0, soon),
    expect(open.locator("#silent")).toBeHidden(soon),
    expect(typed.locator("#pretty-name")).toHaveValue("half of a na", { timeout: 12_000 }),
  ]);
  await live(open);
  const text = { useInnerText: true };
  for (const page of [home, open, typed]) await expect(page.locator("body")).not.toContainText("does not respond", text);
  await expect(card.getByRole("button", { name: "Stop" })).toBeEnabled();
  await home.context().close();
});

test("without open pages, each replica answers its first requests within twelve seconds, and the next ones at once", async ({ page, context }) => {
  await login(page, "ada");
  // Now each replica has a token.
  for (let count = 0; count < 4; count++) await page.goto("/courses");
  await page.goto("about:blank");
  const longest = async () => {
    const begin = Date.now();
    const times = Array.from({ length: 8 }, async () => {
      expect([200, 503]).toContain((await context.request.get("/")).status());
      return Date.now() - begin;
    });
    return Math.max(...(await Promise.all(times)));
  };
  await control("pause", { what: "apiserver" });
  try {
    expect(await longest()).toBeLessThan(12_000);
    expect(await longest()).toBeLessThan(2_000);
  } finally {
    await control("resume", { what: "apiserver" });
  }
  await expect(async () => {
    for (let count = 0; count < 4; count++) {
      const answer = await context.request.get("/");
      expect([answer.status(), (await answer.text()).includes('id="old"')]).toEqual([200, false]);
    }
  }).toPass({ timeout: 10_000 });
});
