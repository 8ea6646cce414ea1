// Five tasks on a phone, with at most the clicks that docs/dashboard.md lists. Each answer is on the first screen.
import { readFileSync } from "node:fs";
import { expect, test, type Locator } from "@playwright/test";
import { clear, control, get, kubectl, login, machine, template } from "./site";

test.use({ viewport: { width: 320, height: 640 } });

const table = readFileSync("../../../docs/dashboard.md", "utf8");

// Returns the number of clicks that the document lists for a task, and a function that clicks and counts.
function counted(task: string) {
  const row = table.split("\n").find((line) => line.startsWith(`| ${task} |`));
  const listed = Number(row!.split("|")[2].trim().split(/\D/)[0]);
  let made = 0;
  const click = async (element: Locator) => {
    made += 1;
    await element.click();
  };
  return { click, end: () => expect(made, task).toBeLessThanOrEqual(listed) };
}

// Asserts that an answer is on the screen without scrolling.
async function onFirstScreen(answer: Locator): Promise<void> {
  await answer.page().evaluate(() => window.scrollTo(0, 0));
  await expect(answer).toBeInViewport();
}

test("from the first login to a desktop", async ({ page }) => {
  const { click, end } = counted("from the first login to a desktop");
  await clear("ada");
  await login(page, "ada");
  await click(page.getByRole("button", { name: "Start Routing exercise" }));
  const connect = page.getByRole("link", { name: /^Connect/ });
  await onFirstScreen(connect);
  const [desktop] = await Promise.all([page.context().waitForEvent("page"), click(connect)]);
  await desktop.close();
  end();
});

test("a port is made public", async ({ page }) => {
  const { click, end } = counted("make a port public");
  await clear("ada");
  await machine("ada", "server", { prettyName: "Server" });
  await login(page, "ada");
  await click(page.getByRole("link", { name: "Server", exact: true }));
  await click(page.locator("#add-port summary"));
  await page.locator("#port-name").fill("web");
  await page.locator("#port-inside").fill("8080");
  await click(page.locator("#add-port button[type=submit]"));
  await onFirstScreen(page.getByText("The port is being made public."));
  end();
});

test("a key is added, and used for SSH", async ({ page, context }) => {
  const { click, end } = counted("add a key, and log in by SSH");
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await clear("ada");
  await kubectl("patch", "tenant", "ada", "--type=merge", "-p", '{"spec":{"publicKeys":null}}');
  await login(page, "ada");
  await click(page.getByRole("link", { name: "Account" }));
  await page.locator("#key").fill((await control("public-key")).output!);
  await click(page.getByRole("button", { name: /Add/ }));
  await onFirstScreen(page.getByText("The key was added."));
  await click(page.getByRole("link", { name: "My machines" }));
  await click(page.getByRole("button", { name: "Start Routing exercise" }));
  await expect(page.getByRole("link", { name: /^Connect/ })).toBeVisible();
  const [title] = await page.getByRole("article").getByRole("heading", { level: 2 }).allTextContents();
  await click(page.getByRole("link", { name: title, exact: true }));
  const command = page.locator("p", { has: page.locator("code", { hasText: /^ssh -J / }) });
  await click(command.getByRole("button", { name: /Copy/ }));
  expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(/^ssh -J bastion@/);
  end();
  await kubectl("patch", "tenant", "ada", "--type=merge", "-p", '{"spec":{"publicKeys":null}}');
});

test("a full quota is explained", async ({ page }) => {
  const { end } = counted("find out why *Start* is disabled");
  await clear("bob");
  for (const name of ["one", "two", "three"]) await machine("bob", name, { prettyName: name });
  await login(page, "bob");
  await expect(page.getByRole("button", { name: "Start Routing exercise" })).toBeDisabled();
  await onFirstScreen(page.locator("#quota summary"));
  await expect(page.locator("#quota summary")).toHaveText("Machines: 3 running, 0 stopped, limit 3");
  await expect(page.getByRole("article", { name: "Routing exercise" })).toContainText("limit");
  end();
  await clear("bob");
});

test("a machine that fails to start is explained", async ({ page }) => {
  const { end } = counted("find out why a machine fails to start");
  await clear("ada");
  const { environmentList } = (await get("templates.crownlabs.polito.it", "workspace-tea", "desktop")).spec;
  const failing = { environmentList: [{ ...environmentList[0], environmentType: "CloudVM", persistent: false }] };
  await machine("ada", "failing", { prettyName: "Failing", ...(await template("failing", failing)) });
  await login(page, "ada");
  const card = page.getByRole("article", { name: "Failing", exact: true });
  await expect(card.getByText("Failed", { exact: true })).toBeVisible();
  await onFirstScreen(card.getByText("A part of it has failed."));
  end();
  // One click more leads to the causes of each part.
  await card.getByRole("link", { name: "Failing", exact: true }).click();
  const causes = page.getByRole("region", { name: "Why it is not ready" });
  await onFirstScreen(causes.getByRole("heading"));
  await expect(causes).toContainText("main");
  await clear("ada");
  await kubectl("delete", "templates.crownlabs.polito.it", "failing", "-n", "workspace-tea");
});
