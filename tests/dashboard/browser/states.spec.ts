// What is shown when something is not as it should be, each caused by what really causes it.
import { expect, test } from "@playwright/test";
import { faults, says } from "./axe";
import { apply, clear, control, fillIn, get, kubectl, login, machine, template } from "./site";

test("somebody without a Tenant is told so", async ({ page }) => {
  await login(page, "zoe");
  await says(page, "You have no account in the laboratory");
});

test("somebody whose address is not confirmed is told so, then that his namespace is on its way, which is waited for", async ({ page }) => {
  // As before the address is confirmed, the daemon makes nothing for this Tenant; then no namespace, as his last login is long ago.
  const of = (selector: string) => ({ "crownlabs.polito.it/operator-selector": selector });
  const spec = { firstName: "Uma", lastName: "Rossi", email: "uma@example.org", lastLogin: "2000-01-01T00:00:00Z" };
  const uma = { apiVersion: "crownlabs.polito.it/v1alpha2", kind: "Tenant", metadata: { name: "uma", labels: of("other") }, spec };
  await apply(uma);
  await login(page, "uma");
  await says(page, "Confirm your e-mail address");
  await expect(page.getByRole("main")).toContainText("uma@example.org");
  // The page goes on by itself.
  await apply({ ...uma, metadata: { name: "uma", labels: of("dashboard") } });
  await says(page, "Your space is being prepared");
  await apply({ ...uma, metadata: { name: "uma", labels: of("dashboard") }, spec: { ...spec, lastLogin: "2099-01-01T00:00:00Z" } });
  await says(page, "You are in no course");
  await kubectl("delete", "tenant", "uma", "--wait=true");
});

test("what does not exist is said to be gone", async ({ page }) => {
  await login(page, "ada");
  const answer = await page.goto("/machines/tenant-ada/nothing");
  expect(answer!.status()).toBe(404);
  await says(page, "Not found");
  expect((await page.goto("/nowhere"))!.status()).toBe(404);
  // What somebody else has, the API server refuses.
  await machine("bob", "secret");
  const refused = await page.goto("/machines/tenant-bob/secret");
  expect(refused!.status()).toBe(403);
  await says(page, "Not allowed");
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
  expect(await faults(page)).toEqual([]);
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
  expect(await faults(page)).toEqual([]);
  await page.getByRole("button", { name: "Rename" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("What I typed");
});

test("what is typed on an open page stays there when its session is over, and is there after the login", async ({ page, context }) => {
  await clear("ada");
  await machine("ada", "open", { prettyName: "Open" });
  await login(page, "ada", "/machines/tenant-ada/open");
  await page.waitForFunction(() => document.documentElement.dataset.live === "yes");
  await page.locator("#pretty-name").fill("What I type");
  await context.clearCookies();
  const over = page.waitForResponse((answer) => answer.status() === 401);
  await kubectl("patch", "instances.crownlabs.polito.it", "open", "-n", "tenant-ada", "--type=merge", "-p", '{"spec":{"prettyName":"Secret"}}');
  await over;
  await expect(page.getByText("Not live")).toBeVisible();
  await expect(page.locator("#pretty-name")).toHaveValue("What I type");
  await page.getByRole("button", { name: "Rename" }).click();
  await fillIn(page, "ada");
  await expect(page.getByRole("alert")).toContainText("logged out meanwhile");
  await expect(page.locator("#pretty-name")).toHaveValue("What I type");
});

test("an open page whose session is over says so, and leads back", async ({ page, context }) => {
  await clear("ada");
  await machine("ada", "open", { prettyName: "Open" });
  await login(page, "ada", "/machines/tenant-ada/open");
  await page.waitForFunction(() => document.documentElement.dataset.live === "yes");
  await context.clearCookies();
  await kubectl("patch", "instances.crownlabs.polito.it", "open", "-n", "tenant-ada", "--type=merge", "-p", '{"spec":{"prettyName":"Secret"}}');
  await says(page, "You were logged out");
  await expect(page.locator("body")).not.toContainText("Secret");
  await page.getByRole("link", { name: "Log in" }).click();
  await fillIn(page, "ada");
  await expect(page).toHaveURL(/\/machines\/tenant-ada\/open$/);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Secret");
});

test("what was typed and is too long is said to be lost", async ({ page, context }) => {
  await login(page, "joe", "/account");
  await page.locator("#key").fill("x".repeat(4_000));
  await context.clearCookies();
  await page.getByRole("button", { name: /Add/ }).click();
  await fillIn(page, "joe");
  await expect(page.getByRole("alert")).toContainText("too long to be kept");
  expect(await faults(page)).toEqual([]);
});

test("after the logout, the issuer asks for the password again", async ({ page }) => {
  await login(page, "bob");
  await page.getByRole("button", { name: "Log out" }).click();
  await says(page, "You are logged out");
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
    await expect(page.getByRole("alert").first()).toContainText("has not said whether it did");
    // The replica that has shown the page before still knows what was on it; the other one says what is wrong.
    await expect(async () => {
      await page.goto("/");
      await expect(page.getByRole("alert").filter({ hasText: /does not answer/ })).toBeVisible({ timeout: 1_000 });
      await expect(card).toBeVisible({ timeout: 1_000 });
      await expect(card.getByRole("button", { name: /^(Stop|Start)/ }).and(page.locator(":enabled"))).toHaveCount(0);
    }).toPass();
    expect(await faults(page)).toEqual([]);
    await page.goto("/courses");
    await says(page, "The laboratory does not answer");
  } finally {
    await control("start-apiserver");
  }
  await expect(async () => {
    await page.goto("/");
    await expect(card.getByRole("button", { name: "Stop" })).toBeVisible({ timeout: 2_000 });
  }).toPass({ timeout: 90_000 });
});

test("an open page stays as it is while the API server is away, says that it is not live, and goes on by itself", async ({ page }) => {
  await clear("ada");
  await machine("ada", "stays", { prettyName: "Stays" });
  await login(page, "ada", "/machines/tenant-ada/stays");
  await page.waitForFunction(() => document.documentElement.dataset.live === "yes");
  await page.locator("#pretty-name").fill("half of a na");
  const notice = page.getByRole("status").filter({ hasText: "Not live" });
  await control("stop-apiserver");
  try {
    // As if it had been told of a change just before.
    const away = page.waitForResponse((answer) => answer.status() === 503);
    await page.evaluate(() => document.body.dispatchEvent(new Event("refresh")));
    expect((await away).headers()).toMatchObject({ "retry-after": "5" });
    await expect(notice).toBeVisible();
    await expect(page.getByRole("heading", { level: 1 })).toHaveText("Stays");
    expect(await faults(page)).toEqual([]);
  } finally {
    await control("start-apiserver");
  }
  await expect(notice).toBeHidden({ timeout: 60_000 });
  await kubectl("patch", "instances.crownlabs.polito.it", "stays", "-n", "tenant-ada", "--type=merge", "-p", '{"spec":{"prettyName":"Stayed"}}');
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Stayed");
  await expect(page.locator("#pretty-name")).toHaveValue("half of a na");
});

test("who is in no course is led to the courses", async ({ page }) => {
  await kubectl("patch", "tenant", "joe", "--type=merge", "-p", '{"spec":{"workspaces":null}}');
  await login(page, "joe");
  await says(page, "You are in no course");
  await page.getByRole("main").getByRole("link").last().click();
  await expect(page).toHaveURL(/\/courses$/);
});

test("a machine whose Template is gone says so", async ({ page }) => {
  await clear("ada");
  await machine("ada", "orphan", { prettyName: "Orphan", running: false, ...(await template("temporary")) });
  await kubectl("delete", "templates.crownlabs.polito.it", "temporary", "-n", "workspace-tea");
  await login(page, "ada", "/machines/tenant-ada/orphan");
  await expect(page.getByRole("main")).toContainText("What it is made from is gone");
  expect(await faults(page)).toEqual([]);
  await clear("ada");
});

test("while a stream is broken, the page says that it is not live", async ({ page }) => {
  await login(page, "ada");
  await expect(page.locator("#not-live")).toBeHidden();
  await page.waitForFunction(() => document.documentElement.dataset.live === "yes");
  await page.route("**/events**", (route) => route.abort());
  for (const number of [0, 1]) await control("restart-replica", { number });
  await expect(page.locator("#not-live")).toBeVisible();
  await expect(page.getByRole("status").filter({ hasText: "Not live" })).toBeVisible();
  expect(await faults(page)).toEqual([]);
  await page.unroute("**/events**");
  await expect(page.locator("#not-live")).toBeHidden({ timeout: 120_000 });
});

test("who has no machine sees none, and what can be started", async ({ page }) => {
  await clear("ada");
  await login(page, "ada");
  await expect(page.getByText("You have no machine yet.")).toBeVisible();
  await expect(page.getByRole("button", { name: "Start Routing exercise" })).toBeEnabled();
  expect(await faults(page)).toEqual([]);
});

test("a quota that is used up is said to be, with the machines that hold it, before and after the webhook refuses", async ({ page }) => {
  await clear("bob");
  await machine("bob", "late", { prettyName: "Late", running: false });
  await login(page, "bob");
  // Nothing tells the page that the quota is used up meanwhile.
  await page.evaluate(() => document.querySelector("[hx-sse\\:connect]")?.remove());
  for (const [name, prettyName] of [["x", "First holder"], ["y", "Second holder"]]) await machine("bob", name, { prettyName });
  const quota = { cpu: 2, memory: "16Gi", instances: 3 };
  await kubectl("patch", "workspace", "tea", "--type=merge", "-p", JSON.stringify({ spec: { quota } }));
  try {
    await expect.poll(async () => (await get("tenant", "", "bob")).status.quota.cpu).toBe("2");
    const late = page.getByRole("article", { name: "Late", exact: true });
    await late.getByRole("button", { name: "Start" }).click();
    await expect(page.getByRole("alert")).toContainText("denied the request");
    await expect(page.getByRole("alert")).toContainText(/cpu/i);
    await expect(late.getByRole("button", { name: "Start" })).toBeDisabled();
    await expect(late).toContainText(/In use by: (First holder, Second holder|Second holder, First holder)\./);
    expect(await faults(page)).toEqual([]);
  } finally {
    await kubectl("patch", "workspace", "tea", "--type=merge", "-p", JSON.stringify({ spec: { quota: { ...quota, cpu: 8 } } }));
    await expect.poll(async () => (await get("tenant", "", "bob")).status.quota.cpu).toBe("8");
    await clear("bob");
  }
});

test.describe("without JavaScript", () => {
  test.use({ javaScriptEnabled: false });

  test("a page says that it does not change by itself, and is loaded anew by a link", async ({ page }) => {
    await clear("ada");
    await machine("ada", "still", { prettyName: "Still" });
    await login(page, "ada");
    await kubectl("patch", "instances.crownlabs.polito.it", "still", "-n", "tenant-ada", "--type=merge", "-p", '{"spec":{"prettyName":"Moved"}}');
    const notice = page.getByRole("status").filter({ hasText: "Without JavaScript this page does not change by itself." });
    await notice.getByRole("link", { name: "Reload" }).click();
    await expect(page.getByRole("article", { name: "Moved", exact: true })).toBeVisible();
  });
});
