// The chosen language applies to the login page and to the refusals of the webhook.
import { expect, test } from "@playwright/test";
import { clear, fillIn, machine } from "./site";

test("the login page and a refusal are in the language of the page", async ({ page }) => {
  await clear("bob");
  // The browser prefers English.
  await page.goto("/?lang=it");
  await expect(page).toHaveURL(/[?&]ui_locales=it/);
  await expect(page.locator("html")).toHaveAttribute("lang", "it");
  await fillIn(page, "bob");
  await expect(page.locator("html")).toHaveAttribute("lang", "it");
  const form = page.locator("form[action='/machines']").first();
  const data = await form.evaluate((form: HTMLFormElement) => new URLSearchParams(new FormData(form) as any).toString());
  for (const name of ["a", "b", "c"]) await machine("bob", name);
  const headers = { "content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin" };
  const text = await (await page.request.post("/machines", { headers, data })).text();
  expect(text).toMatch(/Nulla è cambiato: (Hai raggiunto il limite di 3 macchine|Supererebbe la tua quota: Macchine: 4)/);
  expect(text).not.toContain("denied the request");
  await clear("bob");
});
