// Servers that accept connections and do not respond delay only the pages that depend on them.
import { expect, test } from "@playwright/test";
import { clear, control, login, machine } from "./site";

test("a silent API server delays pages by at most the timeout of a request", async ({ page, context }) => {
  await clear("ada");
  await machine("ada", "hang", { prettyName: "Hang" });
  await login(page, "ada");
  await control("pause", { what: "apiserver" });
  try {
    expect((await context.request.get("/healthz")).status()).toBe(200);
    const style = await page.locator("link[rel=stylesheet]").getAttribute("href");
    expect((await context.request.get(style!)).status()).toBe(200);
    const answer = await context.request.get("/");
    // The last known state, or an error.
    expect(answer.status() === 503 || (await answer.text()).includes('id="old"')).toBe(true);
  } finally {
    await control("resume", { what: "apiserver" });
  }
  await expect(async () => {
    await page.goto("/");
    await expect(page.getByRole("article", { name: "Hang", exact: true }).getByRole("button", { name: /Stop/ })).toBeVisible({ timeout: 2_000 });
  }).toPass({ timeout: 120_000 });
});

test("a silent Keycloak does not delay users who are logged in", async ({ page, browser }) => {
  await login(page, "ada");
  // Now each replica has a token, and knows that the API server responds again: without the streams of pages, the proxy takes
  // them in turn.
  await expect(async () => {
    for (let count = 0; count < 4; count++) expect((await page.request.get("/courses")).status()).toBe(200);
  }).toPass();
  await control("pause", { what: "keycloak" });
  try {
    for (const path of ["/", "/courses", "/account"]) expect((await page.goto(path))!.status()).toBe(200);
    const other = await browser.newPage();
    // A new login is redirected to the issuer. The dashboard already knows its address.
    const answer = await other.request.get("/", { maxRedirects: 1 }).catch(() => undefined);
    expect(answer === undefined || answer.status() < 500).toBe(true);
    await other.close();
  } finally {
    await control("resume", { what: "keycloak" });
  }
});
