// "My files": the machine that opens MyDrive is created or started, and opened when it is ready.
import { expect, test, type Page } from "@playwright/test";
import { faults } from "./axe";
import { at, clear, get, kubectl, login, machine } from "./site";

// Answers in place of the machine.
const served = (page: Page) =>
  page.context().route("https://machines.localhost/**", (route) => route.fulfill({ contentType: "text/html", body: "<h1>The file browser</h1>" }));
const shown = (page: Page) => expect(page.getByRole("heading", { name: "The file browser" })).toBeVisible();

test("one click creates the machine, and the page leads to it when it is ready", async ({ page }) => {
  await clear("ada");
  await served(page);
  await login(page, "ada");
  await page.getByRole("link", { name: "My files", exact: true }).press("Enter");
  await expect(page).toHaveURL(/\/files$/);
  expect(await faults(page)).toEqual([]);
  await page.getByRole("button", { name: "Open my files" }).press("Enter");
  await shown(page);
  expect(page.url()).toMatch(/^https:\/\/machines\.localhost\/instance\/[^/]+\/main\/$/);
  const { items } = JSON.parse(await kubectl("get", "instances.crownlabs.polito.it", "-n", "tenant-ada", "-o", "json"));
  expect(items).toHaveLength(1);
  // The page that waited is not in the history.
  await page.goBack();
  await expect(page).toHaveURL(/\/files$/);
  await expect(page.getByRole("link", { name: /^Connect/ })).toBeVisible();
  await clear("ada");
});

test("a stopped machine is started, and a ready one is opened by a link", async ({ page }) => {
  await clear("ada");
  await machine("ada", "mine", { prettyName: "Mine", running: false });
  await served(page);
  await login(page, "ada", "/files");
  await page.getByRole("button", { name: "Start Mine" }).click();
  await shown(page);
  expect((await get("instances.crownlabs.polito.it", "tenant-ada", "mine")).spec.running).toBe(true);
  await page.goto("/files");
  const link = page.getByRole("link", { name: "Connect Mine" });
  await expect(link).toBeVisible();
  const opened = page.context().waitForEvent("page");
  await link.click();
  await shown(await opened);
  await expect(page).toHaveURL(/\/files$/);
  await clear("ada");
});

test("without a Template for files, there is neither the page nor the entry", async ({ browser }) => {
  const page = await at(browser, { driveTemplate: "" }, "ada");
  await expect(page.getByRole("link", { name: "Courses", exact: true })).toBeVisible();
  await expect(page.getByRole("link", { name: "My files", exact: true })).toHaveCount(0);
  expect((await page.goto("/files"))!.status()).toBe(404);
  await page.context().close();
});

test.describe("on a phone, in Italian, without scripts", () => {
  test.use({ javaScriptEnabled: false, viewport: { width: 320, height: 640 }, locale: "it-IT" });

  test("the page has a link once the machine is ready", async ({ page }) => {
    await clear("ada");
    await login(page, "ada", "/files");
    await page.getByRole("button", { name: "Apri i miei file" }).click();
    await expect(async () => {
      await page.goto("/files");
      await expect(page.getByRole("link", { name: /^Connetti/ })).toHaveAttribute("href", /^https:\/\/machines\.localhost\//, { timeout: 1_000 });
    }).toPass();
    await clear("ada");
  });
});
