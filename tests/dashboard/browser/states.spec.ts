// Pages for problems and special states, each with its real cause.
import { expect, test, type Route } from "@playwright/test";
import { faults, says } from "./axe";
import { apply, clear, control, fillIn, get, kubectl, login, machine, template } from "./site";

test("a user without a Tenant gets an explanation", async ({ page }) => {
  await login(page, "zoe");
  await says(page, "You have no account in the laboratory");
});

test("a user with an unconfirmed address gets an explanation, and the page continues until the namespace exists", async ({ page }) => {
  // With another selector, the daemon ignores this Tenant, as if the address were not confirmed. Later, it does not create a
  // namespace, because the last login is long ago.
  const of = (selector: string) => ({ "crownlabs.polito.it/operator-selector": selector });
  const spec = { firstName: "Uma", lastName: "Rossi", email: "uma@example.org", lastLogin: "2000-01-01T00:00:00Z" };
  const uma = { apiVersion: "crownlabs.polito.it/v1alpha2", kind: "Tenant", metadata: { name: "uma", labels: of("other") }, spec };
  await apply(uma);
  await login(page, "uma");
  await says(page, "Confirm your email address");
  await expect(page.getByRole("main")).toContainText("uma@example.org");
  // The page continues without the user.
  await apply({ ...uma, metadata: { name: "uma", labels: of("dashboard") } });
  await says(page, "Your space is being prepared");
  await apply({ ...uma, metadata: { name: "uma", labels: of("dashboard") }, spec: { ...spec, lastLogin: "2099-01-01T00:00:00Z" } });
  await says(page, "You are not enrolled in any course");
  await kubectl("delete", "tenant", "uma", "--wait=true");
});

test("missing machines and pages are not found, and machines of other users are not allowed", async ({ page }) => {
  await login(page, "ada");
  const answer = await page.goto("/machines/tenant-ada/nothing");
  expect(answer!.status()).toBe(404);
  await says(page, "Not found");
  expect((await page.goto("/nowhere"))!.status()).toBe(404);
  // The API server rejects a request for the machine of another user.
  await machine("bob", "secret");
  const refused = await page.goto("/machines/tenant-bob/secret");
  expect(refused!.status()).toBe(403);
  await says(page, "Not allowed");
  await expect(page.locator("body")).not.toContainText("desktop");
});

test("a form for a machine that was replaced is rejected, and keeps the typed text", async ({ page }) => {
  await clear("ada");
  await machine("ada", "same", { prettyName: "Same" });
  await login(page, "ada", "/machines/tenant-ada/same");
  // The machine is deleted and created again: the form is for the previous one.
  await page.evaluate(() => document.querySelector("[hx-sse\\:connect]")?.remove());
  await kubectl("delete", "instances.crownlabs.polito.it", "same", "-n", "tenant-ada", "--wait=true");
  await machine("ada", "same", { prettyName: "Same" });
  await page.locator("#pretty-name").fill("Another name");
  await page.getByRole("button", { name: "Rename" }).click();
  await expect(page.getByRole("alert")).toContainText("in the meantime");
  await expect(page.locator("#pretty-name")).toHaveValue("Another name");
  expect(await faults(page)).toEqual([]);
  expect((await get("instances.crownlabs.polito.it", "tenant-ada", "same")).spec.prettyName).toBe("Same");
});

test("typed text is kept when the session has expired", async ({ page, context }) => {
  await clear("ada");
  await machine("ada", "typed", { prettyName: "Typed" });
  await login(page, "ada", "/machines/tenant-ada/typed");
  await page.locator("#pretty-name").fill("What I typed");
  // The browser has no cookies, as if the sessions at the dashboard and the issuer had expired. No request is in flight that would
  // set a cookie again.
  await page.evaluate(() => document.querySelector("[hx-sse\\:connect]")?.remove());
  await page.reload();
  await page.evaluate(() => document.querySelector("[hx-sse\\:connect]")?.remove());
  await page.locator("#pretty-name").fill("What I typed");
  await context.clearCookies();
  await page.getByRole("button", { name: "Rename" }).click();
  await fillIn(page, "ada");
  await expect(page).toHaveURL(/\/machines\/tenant-ada\/typed$/);
  await expect(page.getByRole("alert")).toContainText("Your session expired");
  await expect(page.locator("#pretty-name")).toHaveValue("What I typed");
  expect(await faults(page)).toEqual([]);
  await page.getByRole("button", { name: "Rename" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("What I typed");
});

test("an open page keeps typed text when its session expires, and shows it after the login", async ({ page, context }) => {
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
  await expect(page.getByRole("alert")).toContainText("Your session expired");
  await expect(page.locator("#pretty-name")).toHaveValue("What I type");
});

test("an open page with an expired session says so, and is shown again after the login", async ({ page, context }) => {
  await clear("ada");
  await machine("ada", "open", { prettyName: "Open" });
  await login(page, "ada", "/machines/tenant-ada/open");
  await page.waitForFunction(() => document.documentElement.dataset.live === "yes");
  await context.clearCookies();
  await kubectl("patch", "instances.crownlabs.polito.it", "open", "-n", "tenant-ada", "--type=merge", "-p", '{"spec":{"prettyName":"Secret"}}');
  await says(page, "Your session expired");
  await expect(page.locator("body")).not.toContainText("Secret");
  await page.getByRole("link", { name: "Log in" }).click();
  await fillIn(page, "ada");
  await expect(page).toHaveURL(/\/machines\/tenant-ada\/open$/);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Secret");
});

test("after a logout in another tab, an open page says that the session is over, and is updated after the next login", async ({ page, context }) => {
  await clear("ada");
  await machine("ada", "open", { prettyName: "Open" });
  await login(page, "ada", "/machines/tenant-ada/open");
  await page.waitForFunction(() => document.documentElement.dataset.live === "yes");
  await context.clearCookies();
  // Nothing changes, so only the next stream of the page is rejected.
  for (const number of [0, 1]) await control("restart-replica", { number });
  await says(page, "Your session expired");
  await expect(page.getByText("Not live")).toBeHidden();
  const other = await context.newPage();
  await login(other, "ada");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Open", { timeout: 120_000 });
  await expect(page.getByText("Not live")).toBeHidden();
});

test("an open page of a deleted machine says so, and shows the machine when it is created again", async ({ page }) => {
  await clear("ada");
  await machine("ada", "again", { prettyName: "Before" });
  await login(page, "ada", "/machines/tenant-ada/again");
  await page.waitForFunction(() => document.documentElement.dataset.live === "yes");
  await kubectl("delete", "instances.crownlabs.polito.it", "again", "-n", "tenant-ada", "--wait=true");
  await says(page, "Not found");
  await machine("ada", "again", { prettyName: "Again" });
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Again");
});

test("the page of a machine follows the quota that another machine uses", async ({ page }) => {
  await clear("bob");
  for (const [name, prettyName] of [["x", "First holder"], ["y", "Second holder"]]) await machine("bob", name, { prettyName });
  await machine("bob", "late", { prettyName: "Late", running: false });
  const quota = { cpu: 2, memory: "16Gi", instances: 3 };
  await kubectl("patch", "workspace", "tea", "--type=merge", "-p", JSON.stringify({ spec: { quota } }));
  try {
    await expect.poll(async () => (await get("tenant", "", "bob")).status.quota.cpu).toBe("2");
    await login(page, "bob", "/machines/tenant-bob/late");
    await page.waitForFunction(() => document.documentElement.dataset.live === "yes");
    await expect(page.getByRole("button", { name: "Start" })).toBeDisabled();
    for (const name of ["x", "y"]) await kubectl("patch", "instances.crownlabs.polito.it", name, "-n", "tenant-bob", "--type=merge", "-p", '{"spec":{"running":false}}');
    await expect(page.getByRole("button", { name: "Start" })).toBeEnabled();
  } finally {
    await kubectl("patch", "workspace", "tea", "--type=merge", "-p", JSON.stringify({ spec: { quota: { ...quota, cpu: 8 } } }));
    await expect.poll(async () => (await get("tenant", "", "bob")).status.quota.cpu).toBe("8");
    await clear("bob");
  }
});

test("text that is too long to be kept is reported as lost", async ({ page, context }) => {
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

test("while the API server is away, the home page shows its last content with the time, and no actions", async ({ page }) => {
  await clear("ada");
  await machine("ada", "away", { prettyName: "Away" });
  await login(page, "ada");
  const courses = await page.context().newPage();
  const card = page.getByRole("article", { name: "Away", exact: true });
  await expect(card.getByText("Ready", { exact: true })).toBeVisible();
  await control("stop-apiserver");
  try {
    await card.getByRole("button", { name: "Stop" }).click();
    await expect(page.locator("#old")).toBeVisible();
    await expect(page.getByRole("alert").first()).toContainText("nothing was changed");
    // The replica that has served the page before shows its last content; the other replica shows an error.
    await expect(async () => {
      await page.goto("/");
      await expect(page.getByRole("alert").filter({ hasText: /does not respond/ })).toBeVisible({ timeout: 1_000 });
      await expect(card).toBeVisible({ timeout: 1_000 });
      await expect(card.getByRole("button", { name: /^(Stop|Start)/ }).and(page.locator(":enabled"))).toHaveCount(0);
    }).toPass();
    expect(await faults(page)).toEqual([]);
    await courses.goto("/courses");
    // The page reloads in the meantime.
    await expect(() => says(courses, "The laboratory does not respond")).toPass();
  } finally {
    await control("start-apiserver");
  }
  // Both pages load again without the user.
  await expect(card.getByRole("button", { name: "Stop" })).toBeEnabled({ timeout: 120_000 });
  await expect(courses.getByRole("heading", { level: 1 })).toHaveText("Courses", { timeout: 120_000 });
  await courses.close();
});

test("while the API server is away, an open page keeps its content, says that it is not live, and then recovers", async ({ page }) => {
  await clear("ada");
  await machine("ada", "stays", { prettyName: "Stays" });
  await login(page, "ada", "/machines/tenant-ada/stays");
  await page.waitForFunction(() => document.documentElement.dataset.live === "yes");
  await page.locator("#pretty-name").fill("half of a na");
  const notice = page.getByRole("status").filter({ hasText: /Not live|does not respond/ });
  await control("stop-apiserver");
  try {
    // As if the page had been notified of a change just before.
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

// Responses of a proxy in place of those of the dashboard, and a broken connection.
const proxied = (status: number) => (route: Route) =>
  route.fulfill({ status, contentType: "text/html", body: "<html><body><h1>Bad Gateway</h1></body></html>" });
const broken = (route: Route) => route.abort();

test("while a proxy responds with an error of its own, or nothing responds, an open page keeps its content, and then recovers", async ({ page }) => {
  await clear("ada");
  await machine("ada", "proxied", { prettyName: "Proxied" });
  await login(page, "ada", "/machines/tenant-ada/proxied");
  await page.waitForFunction(() => document.documentElement.dataset.live === "yes");
  await page.locator("#pretty-name").fill("half of a na");
  const notice = page.getByRole("status").filter({ hasText: "Not live" });
  const heading = page.getByRole("heading", { level: 1 });
  for (const answer of [proxied(502), proxied(504), proxied(400), proxied(200), broken]) {
    const path = "**/machines/tenant-ada/proxied";
    await page.route(path, answer);
    await page.evaluate(() => document.body.dispatchEvent(new Event("refresh")));
    await expect(notice).toBeVisible();
    await expect(heading).toHaveText("Proxied");
    await page.unroute(path);
    await expect(notice).toBeHidden({ timeout: 60_000 });
  }
  await expect(heading).toHaveText("Proxied");
  await expect(page.locator("#pretty-name")).toHaveValue("half of a na");
});

test("a page that cannot open its stream at first says that it is not live, and opens it later", async ({ page }) => {
  const path = "/machines/tenant-ada/late";
  const rename = (prettyName: string) =>
    kubectl("patch", "instances.crownlabs.polito.it", "late", "-n", "tenant-ada", "--type=merge", "-p", JSON.stringify({ spec: { prettyName } }));
  await clear("ada");
  await machine("ada", "late", { prettyName: "Late" });
  await login(page, "ada", path);
  const notice = page.getByRole("status").filter({ hasText: "Not live" });
  const heading = page.getByRole("heading", { level: 1 });
  for (const [number, answer] of [proxied(503), proxied(200), broken].entries()) {
    await page.route("**/events**", answer);
    await page.goto(path);
    await expect(notice).toBeVisible();
    await expect(page.getByText("Bad Gateway")).toHaveCount(0);
    // An update of the content does not hide the notice.
    await rename(`Now ${number}`);
    await page.evaluate(() => document.body.dispatchEvent(new Event("refresh")));
    await expect(heading).toHaveText(`Now ${number}`);
    expect(await page.evaluate(() => document.documentElement.dataset.live)).toBe("no");
    await expect(notice).toBeVisible();
    await page.unroute("**/events**");
    await expect(notice).toBeHidden();
    await rename(`Later ${number}`);
    await expect(heading).toHaveText(`Later ${number}`);
  }
});

test("a user without courses is led to the courses page", async ({ page }) => {
  await kubectl("patch", "tenant", "joe", "--type=merge", "-p", '{"spec":{"workspaces":null}}');
  await login(page, "joe");
  await says(page, "You are not enrolled in any course");
  await page.getByRole("main").getByRole("link").last().click();
  await expect(page).toHaveURL(/\/courses$/);
});

test("a machine with a deleted Template says so", async ({ page }) => {
  await clear("ada");
  await machine("ada", "orphan", { prettyName: "Orphan", running: false, ...(await template("temporary")) });
  await kubectl("delete", "templates.crownlabs.polito.it", "temporary", "-n", "workspace-tea");
  await login(page, "ada", "/machines/tenant-ada/orphan");
  await expect(page.getByRole("main")).toContainText("template of this machine was deleted");
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

test("a user without machines sees the Templates", async ({ page }) => {
  await clear("ada");
  await login(page, "ada");
  await expect(page.getByText("You have no machines yet.")).toBeVisible();
  await expect(page.getByRole("button", { name: "Start Routing exercise" })).toBeEnabled();
  expect(await faults(page)).toEqual([]);
});

test("an exhausted quota is explained by the rejection and on the card, with the machines that use it", async ({ page }) => {
  await clear("bob");
  await machine("bob", "late", { prettyName: "Late", running: false });
  await login(page, "bob");
  // The page is not notified that the quota is exhausted in the meantime.
  await page.evaluate(() => document.querySelector("[hx-sse\\:connect]")?.remove());
  for (const [name, prettyName] of [["x", "First holder"], ["y", "Second holder"]]) await machine("bob", name, { prettyName });
  const quota = { cpu: 2, memory: "16Gi", instances: 3 };
  await kubectl("patch", "workspace", "tea", "--type=merge", "-p", JSON.stringify({ spec: { quota } }));
  try {
    await expect.poll(async () => (await get("tenant", "", "bob")).status.quota.cpu).toBe("2");
    const late = page.getByRole("article", { name: "Late", exact: true });
    await late.getByRole("button", { name: "Start" }).click();
    await expect(page.getByRole("alert")).toContainText("It would exceed your quota");
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

  test("a page says that it does not update automatically, and has a link that reloads it", async ({ page }) => {
    await clear("ada");
    await machine("ada", "still", { prettyName: "Still" });
    await login(page, "ada");
    await kubectl("patch", "instances.crownlabs.polito.it", "still", "-n", "tenant-ada", "--type=merge", "-p", '{"spec":{"prettyName":"Moved"}}');
    const notice = page.getByRole("status").filter({ hasText: "Without JavaScript, this page does not update automatically." });
    await notice.getByRole("link", { name: "Reload" }).click();
    await expect(page.getByRole("article", { name: "Moved", exact: true })).toBeVisible();
  });
});
