// A logout ends the session at every replica, and the page says what has not ended.
import { expect, request, test, type Page } from "@playwright/test";
import { faults, says } from "./axe";
import { control, fillIn, login, url } from "./site";

// Logs a user in, and opens pages until each replica has a token of the session. Returns the cookie of the session.
async function session(page: Page, user: string): Promise<string> {
  await login(page, user);
  for (let count = 0; count < 4; count++) await page.goto("/courses");
  const cookies = await page.context().cookies(url);
  return cookies.find(({ name }) => name === "__Host-crownlabs")!.value;
}

const logOut = (page: Page) => page.getByRole("button", { name: "Log out" }).click();

// Returns the status codes of pages for the cookie of a session. The proxy asks the replicas in turn.
async function statuses(cookie: string): Promise<number[]> {
  const copy = await request.newContext({ baseURL: url, ignoreHTTPSErrors: true, extraHTTPHeaders: { cookie: `__Host-crownlabs=${cookie}` } });
  const found = new Set<number>();
  for (let count = 0; count < 6; count++) found.add((await copy.get("/account", { maxRedirects: 0 })).status());
  await copy.dispose();
  return [...found];
}

// Waits until no replica accepts a session.
const refused = (cookie: string) => expect.poll(() => statuses(cookie), { timeout: 5_000 }).toEqual([303]);

test("after a logout, no replica accepts the cookie, also after a restart", async ({ page }) => {
  const cookie = await session(page, "bob");
  expect(await statuses(cookie)).toEqual([200]);
  await logOut(page);
  await refused(cookie);
  await says(page, "You are logged out");
  await expect(page.getByRole("main")).toContainText("Desktops that you opened may have logins of their own");
  await expect(page.getByRole("main")).not.toContainText("did not confirm");
  const starts = async () => (await control("logs")).output!.split("serving the dashboard").length;
  const before = await starts();
  await control("restart-replica", { number: 1 });
  await expect.poll(starts).toBeGreaterThan(before);
  expect(await statuses(cookie)).toEqual([303]);
});

test("the logout can be reloaded, and Back and Forward show no page of the user", async ({ page }) => {
  await session(page, "bob");
  await logOut(page);
  await says(page, "You are logged out");
  await page.reload();
  await says(page, "You are logged out");
  await page.goBack();
  await expect(page.locator("#password")).toBeVisible();
  await page.goForward();
  await says(page, "You are logged out");
});

test("while Keycloak is silent, the page says that the login there has not ended", async ({ page }) => {
  const cookie = await session(page, "bob");
  await control("pause", { what: "keycloak" });
  try {
    await logOut(page);
    await says(page, "You are logged out of these pages only");
    await refused(cookie);
  } finally {
    await control("resume", { what: "keycloak" });
  }
  // The replicas do not accept the session either when Keycloak responds again.
  expect(await statuses(cookie)).toEqual([303]);
});

test("while the API server is silent, the page says that a copy of the session may still work", async ({ page }) => {
  const cookie = await session(page, "bob");
  await control("pause", { what: "apiserver" });
  try {
    await logOut(page);
    // The session has ended at the replica that got the request, and at the login server.
    await says(page, "You are logged out");
    await expect(page.getByRole("main")).toContainText("did not confirm the logout: a copy of your session may still work");
    await page.getByRole("link", { name: "Log in" }).click();
    await expect(page.locator("#password")).toBeVisible();
  } finally {
    await control("resume", { what: "apiserver" });
  }
  expect(await statuses(cookie)).toContain(303);
  // Each replica knows that the API server responds again.
  await expect(async () => {
    await page.context().clearCookies();
    await page.goto("/courses");
    await fillIn(page, "bob");
    await expect(page).toHaveURL(`${url}/courses`, { timeout: 5_000 });
    for (let count = 0; count < 4; count++) expect((await page.request.get("/courses")).status()).toBe(200);
  }).toPass();
});

test("without a Tenant, the page says that the logout was not confirmed", async ({ page }) => {
  await login(page, "zoe");
  await logOut(page);
  await says(page, "You are logged out");
  await expect(page.getByRole("main")).toContainText("did not confirm the logout");
  expect(await faults(page)).toEqual([]);
});
