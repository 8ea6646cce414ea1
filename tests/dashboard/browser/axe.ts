// The accessibility of pages.
import AxeBuilder from "@axe-core/playwright";
import { expect, type Page } from "@playwright/test";

// Returns the violations of accessibility rules.
export async function faults(page: Page): Promise<string[]> {
  const { violations } = await new AxeBuilder({ page })
    .withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"])
    .analyze();
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
}

// Asserts that a page has this heading, announces it to screen readers, has no live updates, and is accessible.
export async function says(page: Page, heading: string): Promise<void> {
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(heading);
  await expect(page.getByRole("main").getByRole("status")).toHaveText(heading);
  await expect(page.getByText("does not update automatically")).toHaveCount(0);
  expect(await faults(page), heading).toEqual([]);
}
