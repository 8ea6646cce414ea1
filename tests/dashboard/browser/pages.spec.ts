// The layout and the accessibility of each page: on a phone and on a desktop, in the light and the dark scheme, in each language.
import { readdirSync } from "node:fs";
import { expect, test, type Page } from "@playwright/test";
import { faults } from "./axe";
import { clear, kubectl, login, machine } from "./site";

const paths = ["/", "/machines/tenant-max/router", "/new/tea/huge", "/courses", "/files", "/account", "/help"];
const texts = readdirSync("../../../src/controllers/dashboard/texts").filter((file) => file.endsWith(".yaml"));
const languages = texts.map((file) => file.replace(".yaml", ""));

// Asserts that no element extends beyond the right edge.
async function fits(page: Page): Promise<void> {
  const [wide, seen] = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    document.documentElement.clientWidth,
  ]);
  expect(wide).toBeLessThanOrEqual(seen);
}

test("every page is accessible and fits the screen, in each size, color scheme and language", async ({ page }) => {
  // Hundreds of pages are checked.
  test.setTimeout(900_000);
  await clear("max");
  await machine("max", "router", { prettyName: "My router" });
  await machine("max", "off", { running: false });
  const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ5mmjtLqUuVOzAcWLBHQUWp2ZO3cjU5YNDiX25qkrsf max@laptop";
  await kubectl("patch", "tenant", "max", "--type=merge", "-p", JSON.stringify({ spec: { publicKeys: [key] } }));
  await login(page, "max");
  await expect(page.getByRole("link", { name: /^Connect/ })).toBeVisible();
  for (const language of languages) {
    await page.goto(`/?lang=${language}`);
    await expect(page.locator("html")).toHaveAttribute("lang", language);
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      for (const [size, width] of [["phone", 320], ["desktop", 1280]] as const) {
        await page.setViewportSize({ width, height: 900 });
        for (const path of paths) {
          await page.goto(path);
          await fits(page);
          const name = path === "/" ? "home" : path.split("/")[1];
          await page.screenshot({ path: `shots/${name}-${size}-${colorScheme}-${language}.png`, fullPage: true });
          expect(await faults(page), `${path} ${size} ${colorScheme} ${language}`).toEqual([]);
        }
      }
    }
  }
  await page.goto("/?lang=en");
});
