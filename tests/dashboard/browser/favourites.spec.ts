// Favourites: Templates that a user marks come first in their course.
import { expect, test, type Page } from "@playwright/test";
import { faults } from "./axe";
import { clear, login, machine } from "./site";

const [desktop, server] = ["Routing exercise", "A whole server"];
const star = (page: Page, title: string) => page.getByRole("button", { name: `Favourite ${title}`, exact: true });
const titles = (page: Page) => page.getByRole("heading", { level: 4 });

for (const [how, javaScriptEnabled] of [["with scripts", true], ["without scripts", false]] as const) {
  test.describe(how, () => {
    test.use({ javaScriptEnabled });

    test("a favourite comes first in every tab and after a reload, until its button is chosen again", async ({ page, context }) => {
      await clear("ada");
      await login(page, "ada");
      const other = await context.newPage();
      // It shows its state until its user acts.
      await other.route(/\/events\?/, (route) => route.abort());
      await other.goto("/");
      await expect(titles(page)).toHaveText([server, desktop]);
      await star(page, desktop).click();
      await expect(star(page, desktop)).toHaveAttribute("aria-pressed", "true");
      await expect(star(page, desktop)).toBeFocused();
      await expect(titles(page)).toHaveText([desktop, server]);
      // The button of the other tab adds the same favourite again, and the next one keeps it.
      await expect(star(other, desktop)).toHaveAttribute("aria-pressed", "false");
      for (const title of [desktop, server]) {
        await star(other, title).click();
        await expect(star(other, title)).toHaveAttribute("aria-pressed", "true");
      }
      await page.reload();
      for (const title of [desktop, server]) await expect(star(page, title)).toHaveAttribute("aria-pressed", "true");
      await star(page, server).click();
      await expect(titles(page)).toHaveText([desktop, server]);
      await expect(star(page, server)).toHaveAttribute("aria-pressed", "false");
    });
  });
}

test("an update of the page keeps the focus at the button of a favourite", async ({ page }) => {
  await clear("ada");
  await login(page, "ada");
  await star(page, desktop).click();
  await expect(star(page, desktop)).toBeFocused();
  await page.waitForFunction(() => document.documentElement.dataset.live === "yes");
  await machine("ada", "later", { prettyName: "Later" });
  await expect(page.getByRole("article", { name: "Later", exact: true })).toBeVisible();
  await expect(star(page, desktop)).toBeFocused();
  expect(await faults(page)).toEqual([]);
  await clear("ada");
});
