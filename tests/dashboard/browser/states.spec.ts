// What is shown when something is not as it should be, each caused by what really causes it.
import { expect, test } from "@playwright/test";
import { apply, clear, control, fillIn, get, kubectl, login, machine } from "./site";

test("somebody without a Tenant is told so", async ({ page }) => {
  await login(page, "zoe");
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await expect(page.locator("#changes")).not.toBeEmpty();
});

test("what does not exist is said to be gone", async ({ page }) => {
  await login(page, "ada");
  const answer = await page.goto("/machines/tenant-ada/nothing");
  expect(answer!.status()).toBe(404);
  expect((await page.goto("/nowhere"))!.status()).toBe(404);
  // What somebody else has, the API server refuses.
  await machine("bob", "secret");
  const refused = await page.goto("/machines/tenant-bob/secret");
  expect(refused!.status()).toBe(403);
  await expect(page.locator("body")).not.toContainText("desktop");
});

test("who has changed something meanwhile is said, and nothing is lost", async ({ page }) => {
  await clear("ada");
  await machine("ada", "same", { prettyName: "Same" });
  await login(page, "ada", "/machines/tenant-ada/same");
  // Deleted, and made anew: the form is about the one before.
  await page.evaluate(() => document.querySelector("[hx-sse\\:connect]")?.remove());
  await kubectl("delete", "instances.crownlabs.polito.it", "same", "-n", "tenant-ada", "--wait=true");
  await machine("ada", "same", { prettyName: "Same" });
  await page.locator("#pretty-name").fill("Another name");
  await page.getByRole("button", { name: "Rename" }).click();
  await expect(page.getByRole("alert")).toContainText("meanwhile");
  await expect(page.locator("#pretty-name")).toHaveValue("Another name");
  expect((await get("instances.crownlabs.polito.it", "tenant-ada", "same")).spec.prettyName).toBe("Same");
});

test("a session that is over keeps what was typed", async ({ page, context }) => {
  await clear("ada");
  await machine("ada", "typed", { prettyName: "Typed" });
  await login(page, "ada", "/machines/tenant-ada/typed");
  await page.locator("#pretty-name").fill("What I typed");
  // As after the end of the session: neither the dashboard nor the issuer knows the browser. Nothing is on its way that would bring
  // a cookie back.
  await page.evaluate(() => document.querySelector("[hx-sse\\:connect]")?.remove());
  await page.reload();
  await page.evaluate(() => document.querySelector("[hx-sse\\:connect]")?.remove());
  await page.locator("#pretty-name").fill("What I typed");
  await context.clearCookies();
  await page.getByRole("button", { name: "Rename" }).click();
  await fillIn(page, "ada");
  await expect(page).toHaveURL(/\/machines\/tenant-ada\/typed$/);
  await expect(page.getByRole("alert")).toContainText("logged out meanwhile");
  await expect(page.locator("#pretty-name")).toHaveValue("What I typed");
  await page.getByRole("button", { name: "Rename" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("What I typed");
});

test("what was typed and is too long is said to be lost", async ({ page, context }) => {
  await login(page, "joe", "/account");
  await page.locator("#key").fill("x".repeat(4_000));
  await context.clearCookies();
  await page.getByRole("button", { name: /Add/ }).click();
  await fillIn(page, "joe");
  await expect(page.getByRole("alert")).toContainText("too long to be kept");
});

test("after the logout, the issuer asks for the password again", async ({ page }) => {
  await login(page, "bob");
  await page.getByRole("button", { name: "Log out" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await page.goto("/");
  await expect(page.locator("#password")).toBeVisible();
});

test("while the API server is away, what was seen last is shown with its time, and nothing can be done", async ({ page }) => {
  await clear("ada");
  await machine("ada", "away", { prettyName: "Away" });
  await login(page, "ada");
  const card = page.getByRole("article", { name: "Away", exact: true });
  await expect(card.getByText("Ready", { exact: true })).toBeVisible();
  await control("stop-apiserver");
  try {
    await card.getByRole("button", { name: "Stop" }).click();
    await expect(page.getByText(/does not answer/).first()).toBeVisible();
    // The replica that has shown the page before still knows what was on it; the other one says what is wrong.
    await expect(async () => {
      await page.goto("/");
      await expect(page.getByRole("alert").first()).toContainText(/does not answer/, { timeout: 1_000 });
      await expect(card).toBeVisible({ timeout: 1_000 });
      await expect(card.getByRole("button", { name: /^(Stop|Start)/ }).and(page.locator(":enabled"))).toHaveCount(0);
    }).toPass();
  } finally {
    await control("start-apiserver");
  }
  await expect(async () => {
    await page.goto("/");
    await expect(card.getByRole("button", { name: "Stop" })).toBeVisible({ timeout: 2_000 });
  }).toPass({ timeout: 90_000 });
});

test("who is in no course is led to the courses", async ({ page }) => {
  await kubectl("patch", "tenant", "joe", "--type=merge", "-p", '{"spec":{"workspaces":null}}');
  await login(page, "joe");
  await page.getByRole("main").getByRole("link").last().click();
  await expect(page).toHaveURL(/\/courses$/);
});

test("a machine whose Template is gone says so", async ({ page }) => {
  await clear("ada");
  const template = await get("templates.crownlabs.polito.it", "workspace-tea", "desktop");
  await apply({
    apiVersion: template.apiVersion,
    kind: template.kind,
    metadata: { name: "temporary", namespace: "workspace-tea" },
    spec: template.spec,
  });
  await machine("ada", "orphan", {
    prettyName: "Orphan",
    running: false,
    "template.crownlabs.polito.it/TemplateRef": { name: "temporary", namespace: "workspace-tea" },
  });
  await kubectl("delete", "templates.crownlabs.polito.it", "temporary", "-n", "workspace-tea");
  await login(page, "ada", "/machines/tenant-ada/orphan");
  await expect(page.getByRole("main")).toContainText("What it is made from is gone");
  await clear("ada");
});

test("while a stream is broken, the page says that it is not live", async ({ page }) => {
  await login(page, "ada");
  await expect(page.locator("#not-live")).toBeHidden();
  await page.waitForFunction(() => document.documentElement.dataset.live === "yes");
  await page.route("**/events**", (route) => route.abort());
  for (const number of [0, 1]) await control("restart-replica", { number });
  await expect(page.locator("#not-live")).toBeVisible();
  await page.unroute("**/events**");
  await expect(page.locator("#not-live")).toBeHidden({ timeout: 120_000 });
});
