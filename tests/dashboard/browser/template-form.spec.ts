// The form of a Template without scripts: environments, and the message of the webhook beside its field.
import { expect, test } from "@playwright/test";
import { login } from "./site";

test.use({ javaScriptEnabled: false });

test("environments are added and removed, typed text stays, and a refusal of the webhook is beside its field", async ({ page }) => {
  await login(page, "ned", "/courses/crowd/templates");
  await page.goto("/courses/crowd/templates/new?from=workspace-crowd/seat");
  const field = (name: string) => page.locator(`[id="field-${name}"]`);
  await page.getByRole("button", { name: "Add an environment" }).click();
  await field("e1.image").fill("registry.example.org/labs/other");
  await page.getByRole("button", { name: "Remove this environment Environment 1" }).click();
  await expect(field("e0.image")).toHaveCount(0);
  await expect(field("e1.image")).toHaveValue("registry.example.org/labs/other");
  await expect(field("prettyName")).toHaveValue("A seat");
  await field("e1.image").fill("no image");
  await page.getByRole("button", { name: "Create template" }).click();
  await expect(page.locator('[id="field-e1.image-error"]')).toContainText('image is "no image"');
  await expect(field("e1.image")).toHaveValue("no image");
});
