// The appearance of the university, in both color schemes.
import { expect, test } from "@playwright/test";
import { faults } from "./axe";
import { at, clear } from "./site";

const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="32" height="32"><rect width="32" height="32" style="fill:#123"/></svg>';
const appearance = {
  name: "Labs of Example",
  logo: `data:image/svg+xml;base64,${Buffer.from(svg).toString("base64")}`,
  color: "#7a1f5c",
  darkColor: "#f0a8d8",
  contact: "labs@example.org",
};

test("pages have the name, the logo, the colors and the contact of the university", async ({ browser }) => {
  await clear("ada");
  const page = await at(browser, { appearance }, "ada");
  await expect(page).toHaveTitle(/ – Labs of Example$/);
  const logo = page.locator(".brand img");
  await expect(logo).toBeVisible();
  expect(await logo.evaluate((image: HTMLImageElement) => image.naturalWidth)).toBe(32);
  await expect(page.getByRole("link", { name: "labs@example.org" })).toHaveAttribute("href", "mailto:labs@example.org");
  const start = page.getByRole("button", { name: "Start Routing exercise" });
  for (const [colorScheme, color] of [["light", "rgb(122, 31, 92)"], ["dark", "rgb(240, 168, 216)"]] as const) {
    await page.emulateMedia({ colorScheme });
    await expect(start).toHaveCSS("background-color", color);
    expect(await faults(page), colorScheme).toEqual([]);
  }
  const heights = await page.locator("#new ~ .cards > li").evaluateAll((cards) => cards.map((card) => card.getBoundingClientRect().height));
  expect(new Set(heights).size).toBe(1);
  await page.context().close();
});
