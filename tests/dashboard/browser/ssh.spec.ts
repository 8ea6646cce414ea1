// SSH to a machine with a key from the account page, and with the command from the page of the machine.
import { expect, test } from "@playwright/test";
import { clear, control, kubectl, login, machine } from "./site";

test("the SSH command of a page works after a key is added, and fails after it is removed", async ({ page }) => {
  await clear("ada");
  await kubectl("patch", "tenant", "ada", "--type=merge", "-p", '{"spec":{"publicKeys":null}}');
  await machine("ada", "shell", { prettyName: "Shell" });
  await login(page, "ada", "/machines/tenant-ada/shell");
  const shown = page.locator("code", { hasText: /^ssh / });
  await expect(shown).toHaveText(/^ssh -J bastion@ssh\.example\.org crownlabs@[\d.]+$/);
  const command = (await shown.textContent())!;
  const ssh = () => control("ssh", { command });
  expect((await ssh()).error).toContain("Permission denied (publickey)");
  await page.goto("/account");
  await page.locator("#key").fill((await control("public-key")).output!);
  await page.getByRole("button", { name: /Add/ }).click();
  await expect(page.getByText("The key was added.")).toBeVisible();
  // The output has the user at the machine, and the address of the machine that the page has shown, with the port.
  const address = command.split("@")[2].replaceAll(".", "\\.");
  await expect.poll(async () => (await ssh()).output ?? "", { timeout: 60_000 }).toMatch(new RegExp(`^crownlabs \\S+ \\d+ ${address} 22$`));
  await page.getByRole("button", { name: /Remove/ }).click();
  await expect(page.getByText("The key was removed.")).toBeVisible();
  await expect.poll(async () => (await ssh()).error ?? "", { timeout: 60_000 }).toContain("Permission denied (publickey)");
  await clear("ada");
});
