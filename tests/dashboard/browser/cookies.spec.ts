// The cookies of the dashboard: no other host can set them, and they fit into the default limits of NGINX.
import { expect, test } from "@playwright/test";
import { fillIn, login, url } from "./site";

const most = 3 * 1024;
const names = ["", "-flash", "-login-0", "-login-4", "-lang", "-zone", "-favourites"].map((name) => `__Host-crownlabs${name}`);

test("cookies that another host plants are neither kept nor read", async ({ page, context }) => {
  await login(page, "ada");
  await page.goto("/?lang=en");
  const own = async () => (await context.cookies(url)).filter(({ name }) => name.startsWith("__Host-")).map(({ name, value }) => `${name}=${value}`).sort();
  const before = await own();
  expect(before.map((cookie) => cookie.split("=")[0])).toEqual(["__Host-crownlabs-lang", "__Host-crownlabs-zone", "__Host-crownlabs"]);
  const evil = await context.newPage();
  await evil.route("https://evil.labs.localhost/**", (route) => route.fulfill({ contentType: "text/html", body: "<h1>a machine</h1>" }));
  await evil.goto("https://evil.labs.localhost/");
  await evil.evaluate((names) => {
    for (const name of names) {
      for (const spelling of [name, name.replace("__Host-", ""), name.replace("__Host-", "__host-"), name.replace("__Host-", "__Secure-"), `=${name}`]) {
        for (const path of ["/", "/account"]) document.cookie = `${spelling}=it; domain=labs.localhost; path=${path}; secure`;
      }
    }
  }, names);
  // The browser keeps those without a protected name.
  await expect.poll(async () => (await context.cookies(url)).map(({ name }) => name)).toContain("crownlabs-zone");
  expect(await own()).toEqual(before);
  await page.goto("/account");
  await expect(page.locator("html")).toHaveAttribute("lang", "en");
  await expect(page.locator("body")).toContainText("ada@example.org");
});

for (const length of [700, 2_800, 30_000]) {
  test(`a form with ${length} characters has short headers before and after a login`, async ({ page, context }) => {
    const long: string[] = [];
    page.on("response", async (response) => {
      if (!response.url().startsWith(url)) return;
      const lines = await response.headersArray().catch(() => []);
      const bytes = lines.reduce((sum, { name, value }) => sum + name.length + value.length + 4, 0);
      if (bytes > most || response.status() === 502) long.push(`${response.url()}: ${response.status()}, ${bytes} bytes`);
    });
    const add = async () => {
      await page.locator("#key").fill("x".repeat(length));
      await page.getByRole("button", { name: /Add/ }).click();
    };
    const isKept = length < 1_000;
    const shown = async () => {
      await expect(page.getByRole("alert")).toBeVisible();
      if (isKept) await expect(page.locator("#key")).toHaveValue("x".repeat(length));
      else await expect(page.getByRole("alert")).toContainText("too long to be kept");
      const cookies = (await context.cookies(url)).map(({ name, value }) => `${name}=${value}`).join("; ");
      expect(cookies.length).toBeLessThanOrEqual(most);
    };
    await login(page, "joe", "/account");
    await add();
    await shown();
    await context.clearCookies();
    await add();
    await fillIn(page, "joe");
    await expect(page).toHaveURL(`${url}/account`);
    await shown();
    expect(long).toEqual([]);
  });
}

test("pages have an icon, and browsers use only HTTPS", async ({ page }) => {
  await login(page, "ada");
  const answer = await page.request.get("/healthz");
  expect(answer.headers()["strict-transport-security"]).toBe("max-age=15552000");
  const icon = await page.locator("link[rel=icon]").getAttribute("href");
  const image = await page.request.get(icon!);
  expect([image.status(), image.headers()["content-type"]]).toEqual([200, "image/png"]);
});
