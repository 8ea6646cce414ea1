// A Template: created from an image list, used by a student, changed, and deleted, each by its form.
import { expect, test } from "@playwright/test";
import { faults } from "./axe";
import { apply, clear, get, kubectl, login } from "./site";

const templates = "templates.crownlabs.polito.it";
const stored = () => get(templates, "workspace-tea", "journey");
const image = "registry.example.org/labs/desktop:2026-1";

test.beforeAll(async () => {
  await kubectl("delete", templates, "journey", "-n", "workspace-tea", "--ignore-not-found");
  const images = [{ name: "desktop", versions: ["2026-1"] }];
  await apply({ apiVersion: "crownlabs.polito.it/v1alpha1", kind: "ImageList", metadata: { name: "journey" }, spec: { registryName: "registry.example.org", projectBaseName: "labs", images } });
});

test("a template is created from an image list, used by a student, changed, and deleted", async ({ page, browser }) => {
  await clear("ada");
  await login(page, "eve", "/courses/tea");
  await page.getByRole("link", { name: "Templates" }).click();
  await page.getByRole("link", { name: "New template" }).click();
  await expect(page.locator(`datalist option[value="${image}"]`)).toHaveCount(1);
  await page.locator("#field-name").fill("journey");
  await page.getByLabel("Title").fill("A journey");
  await page.getByLabel("Description").fill("From an image list.");
  await page.locator("#field-e0\\.image").fill(image);
  await page.locator("#field-e0\\.cpu").fill("0");
  await page.getByRole("button", { name: "Create template" }).click();
  // The message of the API server is at its field, and nothing that was typed is lost.
  await expect(page.locator("#field-e0\\.cpu-error")).toBeVisible();
  await expect(page.locator("#field-e0\\.cpu")).toHaveAttribute("aria-invalid", "true");
  await expect(page.getByLabel("Title")).toHaveValue("A journey");
  expect(await stored()).toBeUndefined();
  await page.locator("#field-e0\\.cpu").fill("1");
  await page.locator("#field-e0\\.memory").fill("1Gi");
  await page.locator("#field-e0\\.persistent").check();
  await page.locator("#field-e0\\.disk").fill("10Gi");
  await page.getByRole("button", { name: "Preview", exact: true }).last().click();
  await expect(page.locator("section", { has: page.getByRole("heading", { name: "As students see it" }) })).toContainText(/\d+ students? needs? [\d.]+ cores?/);
  expect(await faults(page)).toEqual([]);
  await page.getByRole("button", { name: "Create template" }).click();
  await expect(page.getByText("The template was created.")).toBeVisible();
  const { spec } = await stored();
  expect(spec.environmentList[0]).toMatchObject({ image, persistent: true, resources: { cpu: 1, memory: "1Gi", disk: "10Gi" } });

  const student = await browser.newPage();
  await login(student, "ada");
  await student.getByRole("button", { name: "Start A journey" }).click();
  await expect(student.getByRole("link", { name: /^Connect/ })).toBeVisible();
  await student.context().close();

  const card = page.getByRole("article").filter({ hasText: "A journey" });
  await expect(card).toContainText("1 machine, 1 of them running.");
  await card.getByRole("link", { name: "Edit A journey" }).click();
  await page.locator("#field-e0\\.cpu").fill("2");
  await page.getByLabel("Title").fill("A longer journey");
  await page.getByRole("button", { name: "Preview", exact: true }).last().click();
  await expect(page.getByText("These machines stay as they are")).toBeVisible();
  await expect(page.getByRole("link", { name: /^tenant-ada\// })).toBeVisible();
  await page.getByRole("button", { name: /Save/ }).click();
  await expect(page.getByRole("heading", { level: 2 })).toHaveText("A longer journey");
  expect((await stored()).spec.environmentList[0].resources.cpu).toBe(2);
  expect((await stored()).spec.environmentList[0].image).toBe(image);
  await page.locator("summary", { hasText: "YAML" }).click();
  await expect(page.locator("#yaml")).toContainText("prettyName: A longer journey");
  await page.locator("summary", { hasText: "Delete" }).click();
  await page.getByRole("button", { name: /^Delete the template/ }).click();
  await expect(page.getByText("The template was deleted.")).toBeVisible();
  expect(await stored()).toBeUndefined();
  await clear("ada");
});

test("the same change in YAML has the same checks, and a concurrent change is not overwritten", async ({ page }) => {
  const { apiVersion, kind, spec } = await get(templates, "workspace-tea", "desktop");
  await apply({ apiVersion, kind, metadata: { name: "journey", namespace: "workspace-tea" }, spec: { ...spec, prettyName: "As text" } });
  await login(page, "eve", "/courses/tea/templates");
  await page.goto("/courses/tea/templates/journey/edit?view=text");
  const text = page.locator("#yaml");
  const before = await text.inputValue();
  for (const [from, to] of [["cpu: 1", "cpu: many"], ["cpu: 1", "cpu: 1\n      unheard: of"], [before, "a: ["]]) {
    await text.fill(before.replace(from, to));
    await page.getByRole("button", { name: /Save/ }).click();
    await expect(page.locator("#yaml-error")).toBeVisible();
  }
  await text.fill(before.replace("cpu: 1", "cpu: 3"));
  await kubectl("patch", templates, "journey", "-n", "workspace-tea", "--type=merge", "-p", '{"spec":{"prettyName":"By another teacher"}}');
  await page.getByRole("button", { name: /Save/ }).click();
  await expect(page.getByRole("alert").or(page.locator("#yaml-error")).first()).toContainText(/changed/);
  expect((await stored()).spec.environmentList[0].resources.cpu).toBe(1);
  await kubectl("delete", templates, "journey", "-n", "workspace-tea");
});
