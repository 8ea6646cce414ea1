// The machine of a student, opened by the manager of the course.
import { expect, test } from "@playwright/test";
import { faults } from "./axe";
import { clear, control, get, kubectl, login, machine, template, token } from "./site";

const path = "/machines/tenant-ada/stuck";

test("a manager sees the conditions of a student's machine without a right on events, and can act", async ({ page }) => {
  await clear("ada");
  const { environmentList } = (await get("templates.crownlabs.polito.it", "workspace-tea", "desktop")).spec;
  const stuck = await template("stuck", { environmentList: [{ ...environmentList[0], environmentType: "Container", persistent: false, sharedVolumeMounts: [{ sharedVolume: { name: "nowhere", namespace: "workspace-tea" }, mountPath: "/data", readOnly: true }] }] });
  await machine("ada", "stuck", { prettyName: "Stuck", ...stuck });
  const ready = async () => (await get("instances.crownlabs.polito.it", "tenant-ada", "stuck")).status?.conditions?.find((of: any) => of.type === "Ready" && of.status === "False");
  await expect.poll(ready).toBeTruthy();
  const mayList = await control("kubectl", { token: await token("eve"), arguments: ["get", "events", "-n", "tenant-ada"] });
  expect(mayList.error).toContain("forbidden");

  await login(page, "eve", path);
  const technical = page.getByRole("region", { name: "Technical details" });
  await expect(technical.getByRole("table", { name: "Conditions" })).toBeVisible();
  const { reason, message } = await ready();
  await expect(technical).toContainText(reason);
  await expect(technical).toContainText(message.slice(0, 100));
  await page.locator("summary", { hasText: "Who did what" }).click();
  await expect(page.locator("#past li", { hasText: "Created" }).first()).toBeVisible();
  expect(await faults(page)).toEqual([]);
  await page.setViewportSize({ width: 320, height: 800 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(320);
  await expect(page.getByRole("link", { name: "Class: Tea and Routing" })).toHaveAttribute("href", "/courses/tea");
  // The manager may do what kubectl with the same token may do.
  await page.locator("#pretty-name").fill("Renamed by Eve");
  await page.getByRole("button", { name: "Rename" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Renamed by Eve");
});

test("a student does not see the technical details, and sees who did what", async ({ page }) => {
  await login(page, "ada", path);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Renamed by Eve");
  await expect(page.getByRole("region", { name: "Technical details" })).toHaveCount(0);
  await page.locator("summary", { hasText: "Who did what" }).click();
  // The rename was sent by the dashboard, which calls itself crownlabs.
  await expect(page.locator("#past li", { hasText: "spec.prettyName" })).toContainText("(program: crownlabs)");
  await clear("ada");
  await kubectl("delete", "templates.crownlabs.polito.it", "stuck", "-n", "workspace-tea");
});
