// Public ports that exclude each other: the form refuses them beside the field, and a stored one has its reason beside it.
import { expect, test, type Page } from "@playwright/test";
import { clear, get, kubectl, login, machine } from "./site";

const instances = "instances.crownlabs.polito.it";
const ssh = { name: "ssh", port: 22, targetPort: 22, protocol: "TCP" };
const ports = async () => (await get(instances, "tenant-ada", "server")).spec.publicExposure?.ports ?? [];

// Fills in the form of a new port.
async function add(page: Page, name: string, inside: string, outside = "0"): Promise<void> {
  const question = page.locator("#add-port summary");
  if (!(await page.locator("#port-name").isVisible())) await question.click();
  await page.locator("#port-name").fill(name);
  await page.locator("#port-inside").fill(inside);
  await page.locator("#port-outside").fill(outside);
  await page.locator("#add-port button[type=submit]").click();
}

test("a port with a taken name, target or public port is refused beside its field", async ({ page }) => {
  await clear("ada");
  await machine("ada", "server", { prettyName: "Server", publicExposure: { ports: [ssh] } });
  await login(page, "ada", "/machines/tenant-ada/server");
  for (const [name, inside, outside, field, sentence] of [
    ["ssh", "8022", "0", "port-name", "already has a public port with this name"],
    ["web", "22", "0", "port-inside", "already public with this protocol"],
    ["web", "80", "22", "port-outside", "already in use"],
  ]) {
    await add(page, name, inside, outside);
    await expect(page.locator(`#${field}`)).toHaveAttribute("aria-invalid", "true");
    await expect(page.locator(`#${field}-error`)).toContainText(sentence);
    // The text that the user has typed stays.
    await expect(page.locator("#port-name")).toHaveValue(name);
  }
  expect(await ports()).toEqual([ssh]);
  await clear("ada");
});

test("a stored port that is not possible has its reason, and equal ports are removed one by one", async ({ page }) => {
  await clear("ada");
  // An administrator may store such ports.
  const second = { ...ssh, port: 0, targetPort: 8022 };
  await machine("ada", "server", { prettyName: "Server", publicExposure: { ports: [ssh, second, ssh] } });
  await login(page, "ada", "/machines/tenant-ada/server");
  const rows = page.locator("section[aria-labelledby=ports] li");
  await expect(rows).toHaveCount(3);
  await expect(rows.nth(0)).not.toContainText("with this name");
  for (const at of [1, 2]) await expect(rows.nth(at)).toContainText("already has a public port with this name");
  await rows.nth(2).getByRole("button", { name: /Remove/ }).click();
  await expect(page.getByText("The port is no longer public.")).toBeVisible();
  expect(await ports()).toEqual([ssh, second]);
  await rows.nth(1).getByRole("button", { name: /Remove/ }).click();
  await expect(rows).toHaveCount(1);
  expect(await ports()).toEqual([ssh]);
  // Stored ports do not prevent other changes.
  await kubectl("patch", instances, "server", "-n", "tenant-ada", "--type=merge", "-p", JSON.stringify({ spec: { publicExposure: { ports: [ssh, second] } } }));
  await page.locator("#pretty-name").fill("Renamed");
  await page.getByRole("button", { name: "Rename" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Renamed");
  await clear("ada");
});
