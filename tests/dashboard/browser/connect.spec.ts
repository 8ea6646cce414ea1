// The ways to connect to a machine: copy buttons, help, and machines without a desktop.
import { expect, test } from "@playwright/test";
import { faults } from "./axe";
import { at, clear, get, kubectl, login, machine, template } from "./site";

const fingerprint = `SHA256:${"a".repeat(43)}`;

test("the SSH command, the address, the fingerprint and the configuration are copied", async ({ browser }) => {
  await clear("ada");
  await machine("ada", "shell", { prettyName: "Shell" });
  const page = await at(browser, { sshFingerprint: fingerprint }, "ada");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.goto("/machines/tenant-ada/shell");
  const copied = async (text: string | RegExp) => {
    const line = page.locator(".copied").filter({ hasText: text }).first();
    await line.getByRole("button").click();
    await expect(line.getByRole("status")).toHaveText("Copied");
    return page.evaluate(() => navigator.clipboard.readText());
  };
  const command = await copied(/^ssh -J /);
  expect(command).toMatch(/^ssh -J bastion@ssh\.example\.org crownlabs@[\d.]+$/);
  const address = command.split("@")[2];
  expect(await copied(`${address}:22`)).toBe(`${address}:22`);
  expect(await copied(fingerprint)).toBe(fingerprint);
  await page.getByText("Your first login by SSH").click();
  expect(await copied("ssh-keygen")).toBe("ssh-keygen -t ed25519");
  await page.locator("pre + .copy").click();
  const config = await page.evaluate(() => navigator.clipboard.readText());
  expect(config).toBe(`Host shell\n    HostName ${address}\n    HostKeyAlias shell.tenant-ada\n    User crownlabs\n    ProxyJump bastion@ssh.example.org\n`);
  await page.getByText("Help with the desktop").click();
  await expect(page.getByText("Tablets and phones")).toBeVisible();
  expect(await faults(page)).toEqual([]);
  await page.context().close();
});

test("a machine keeps its name behind the bastion while it is stopped", async ({ browser }) => {
  await clear("ada");
  await machine("ada", "shell", { prettyName: "Shell" });
  const page = await at(browser, { sshByName: true }, "ada");
  await page.goto("/machines/tenant-ada/shell");
  const command = page.getByText("ssh -J bastion@ssh.example.org crownlabs@shell-main.tenant-ada", { exact: true });
  await expect(command).toBeVisible();
  await kubectl("patch", "instances.crownlabs.polito.it", "shell", "-n", "tenant-ada", "--type=merge", "-p", '{"spec":{"running":false}}');
  await expect(page.getByText("Stopped", { exact: true }).first()).toBeVisible();
  await expect(command).toBeVisible();
  await expect(page.getByText("shell-main.tenant-ada:22", { exact: true })).toBeVisible();
  await expect(page.locator("pre")).toContainText("HostName shell-main.tenant-ada\n");
  await page.context().close();
});

test("a machine without a desktop offers a terminal and the console instead of a desktop", async ({ page }) => {
  await clear("ada");
  const { environmentList } = (await get("templates.crownlabs.polito.it", "workspace-tea", "desktop")).spec;
  const plain = await template("plain", { environmentList: [{ ...environmentList[0], guiEnabled: false }] });
  await machine("ada", "server", { prettyName: "Server", ...plain });
  await login(page, "ada");
  const card = page.getByRole("article", { name: "Server", exact: true });
  const opens = (name: string) => card.getByRole("link", { name: `${name} Server`, exact: true });
  await expect(opens("Terminal")).toHaveAttribute("href", "/machines/tenant-ada/server/main/terminal");
  await expect(opens("Console")).toHaveAttribute("href", "/machines/tenant-ada/server/main/console");
  await expect(opens("Connect")).toHaveCount(0);
  await card.getByRole("link", { name: "Server", exact: true }).click();
  for (const name of ["Terminal main", "Console main"]) await expect(page.getByRole("link", { name, exact: true })).toBeVisible();
  await expect(page.locator("code", { hasText: /^ssh -J / })).toBeVisible();
  await expect(page.getByText("Help with the desktop")).toHaveCount(0);
  await clear("ada");
  await kubectl("delete", "templates.crownlabs.polito.it", "plain", "-n", "workspace-tea");
});

test.describe("without scripts", () => {
  test.use({ javaScriptEnabled: false });

  test("the help opens, and there are no buttons that need a script", async ({ page }) => {
    await clear("ada");
    await machine("ada", "shell", { prettyName: "Shell" });
    await login(page, "ada", "/machines/tenant-ada/shell");
    await expect(async () => {
      await page.reload();
      await page.getByText("Your first login by SSH").click({ timeout: 1_000 });
    }).toPass();
    await expect(page.getByText("HostKeyAlias shell.tenant-ada")).toBeVisible();
    await expect(page.getByRole("button", { name: /^Copy/ })).toHaveCount(0);
    await clear("ada");
  });
});
