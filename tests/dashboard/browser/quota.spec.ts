// The quota, as the table, the buttons and the webhook count it.
import { expect, test } from "@playwright/test";
import { faults } from "./axe";
import { clear, kubectl, login, machine } from "./site";

test("the table, the buttons and the webhook count stopped machines in the same way", async ({ page }) => {
  await clear("bob");
  for (const name of ["one", "two"]) await machine("bob", name, { prettyName: name });
  await login(page, "bob");
  const start = page.getByRole("button", { name: "Start Routing exercise" });
  await expect(start).toBeEnabled();
  const quota = page.locator("#quota");
  await expect(quota.getByRole("table")).toBeHidden();
  await machine("bob", "three", { prettyName: "three", running: false });
  await expect(quota.locator("summary")).toHaveText("Machines: 2 running, 1 stopped, limit 3");
  await expect(start).toBeDisabled();
  await expect(page.getByRole("article", { name: "Routing exercise" })).toContainText("Stopped machines count");
  // A page that is opened now shows the table.
  await page.reload();
  const row = (name: string) => quota.getByRole("row").filter({ has: page.getByRole("rowheader", { name, exact: true }) });
  await expect(row("Machines").getByRole("cell")).toHaveText(["2", "1", "3"]);
  await expect(row("CPU cores").getByRole("cell")).toHaveText(["2", "–", "8"]);
  await expect(quota).toContainText("A stopped machine uses no cores and no memory.");
  expect(await faults(page)).toEqual([]);
  await expect(machine("bob", "four")).rejects.toThrow(/3 Instances \(1 of them stopped\), and the limit is 3/);
  await kubectl("delete", "instances.crownlabs.polito.it", "three", "-n", "tenant-bob", "--wait=true");
  await expect(start).toBeEnabled();
  await clear("bob");
});
