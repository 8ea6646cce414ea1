// Logins in several tabs, Back after a login, and states that another site sends.
import { expect, test, type BrowserContext, type Page } from "@playwright/test";
import { fillIn, issuer, login, url } from "./site";

// Reloads a tab. The page of the issuer may do so itself at the same time.
const reload = (page: Page) => page.reload().catch(() => undefined);
const atIssuer = (page: Page) => expect(page.locator("#password")).toBeVisible();

// Opens paths in tabs of one browser, one after the other: of logins that begin at the same time, Keycloak knows only the
// last one. Each tab shows the login of the issuer.
async function tabs(context: BrowserContext, paths: string[]): Promise<Page[]> {
  const pages: Page[] = [];
  for (const path of paths) {
    const page = await context.newPage();
    await page.goto(path);
    await atIssuer(page);
    pages.push(page);
  }
  return pages;
}

test("two tabs log in, each to its own page", async ({ context }) => {
  const first = await context.newPage();
  await first.goto("/courses");
  await atIssuer(first);
  const [second] = await tabs(context, ["/account"]);
  await fillIn(second, "ada");
  await expect(second).toHaveURL(`${url}/account`);
  // The user is logged in at the issuer, which redirects the first tab back.
  await reload(first);
  await expect(first).toHaveURL(`${url}/courses`);
  const left = (await context.cookies(url)).map(({ name }) => name).filter((name) => name.includes("login"));
  expect(left).toEqual([]);
});

test("eight tabs log in, although only five logins have a cookie", async ({ context }) => {
  const all = await tabs(context, Array.from({ length: 8 }, (_, number) => (number % 2 ? "/courses" : "/account")));
  await fillIn(all[0], "ada");
  await expect(all[0].getByRole("navigation", { name: "Pages" })).toBeVisible();
  for (const tab of all) {
    await reload(tab);
    await expect(tab.getByRole("navigation", { name: "Pages" })).toBeVisible();
    // No tab is hidden here, and over HTTP/1.1 only six visible ones have a stream.
    await tab.close();
  }
});

test("Back after a login leads to the home page, and Forward to the page before", async ({ page }) => {
  await login(page, "ada", "/courses");
  await page.goBack();
  await expect(page).toHaveURL(`${url}/`);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("My machines");
  await page.goForward();
  await expect(page).toHaveURL(`${url}/courses`);
});

test("a state that another site sends neither ends nor completes a login", async ({ page, context }) => {
  await page.goto("/courses");
  await atIssuer(page);
  const evil = await context.newPage();
  await evil.route("https://evil.labs.localhost/**", (route) => route.fulfill({ contentType: "text/html", body: "<h1>a machine</h1>" }));
  await evil.goto("https://evil.labs.localhost/");
  const callback = `${url}/callback?state=x&code=y`;
  await evil.evaluate((source) => new Promise<void>((resolve) => {
    const image = new Image();
    image.onerror = () => resolve();
    image.src = source;
  }), callback);
  // A window that is led there begins a login of its own.
  await evil.goto(callback);
  await expect(evil).toHaveURL((at) => at.href.startsWith(issuer));
  await fillIn(page, "ada");
  await expect(page).toHaveURL(`${url}/courses`);
  await evil.goto(callback);
  await expect(evil).toHaveURL(`${url}/`);
});
