// Links that start a Template, as course pages have them: with confirmation, after a login, and for users of other courses.
import { expect, test } from "@playwright/test";
import { says } from "./axe";
import { at, clear, fillIn, get, kubectl, login, template } from "./site";

const link = "/new/tea/desktop";
const instances = async () => JSON.parse(await kubectl("get", "instances.crownlabs.polito.it", "-n", "tenant-ada", "-o", "json")).items;

for (const [how, javaScriptEnabled] of [["with scripts", true], ["without scripts", false]] as const) {
  test.describe(how, () => {
    test.use({ javaScriptEnabled });

    test("a link survives the login, asks before it starts a machine, and then leads to it", async ({ page }) => {
      await clear("ada");
      await page.goto(link);
      await fillIn(page, "ada");
      await expect(page).toHaveURL(new RegExp(`${link}$`));
      await expect(page.getByRole("heading", { level: 1 })).toHaveText("Start Routing exercise?");
      expect(await instances()).toEqual([]);
      await page.getByLabel("Name of the machine").fill("My lab");
      await page.getByRole("button", { name: "Start Routing exercise" }).click();
      await expect(page).toHaveURL(/\/$/);
      await expect(page.getByText("My lab is being created.")).toBeVisible();
      await expect(page.getByRole("article").first()).toContainText("My lab");
      const [machine] = await instances();
      expect(machine.spec.prettyName).toBe("My lab");
      await page.goto(link);
      await expect(page).toHaveURL(new RegExp(`/machines/tenant-ada/${machine.metadata.name}$`));
      await expect(page.getByRole("heading", { level: 1 })).toHaveText("My lab");
      expect(await instances()).toHaveLength(1);
      await clear("ada");
    });

    test("a user of another course joins first, on the page of the link", async ({ page }) => {
      // The groups in bob's token stay those of a student, so only the enrolment is missing.
      await clear("bob");
      await kubectl("patch", "tenant", "bob", "--type=merge", "-p", '{"spec":{"workspaces":null}}');
      await login(page, "bob", link);
      await expect(page.getByRole("heading", { level: 1 })).toHaveText("Join Tea and Routing first");
      await page.getByRole("button", { name: "Join Tea and Routing" }).click();
      await expect(page).toHaveURL(new RegExp(`${link}$`));
      await expect(page.getByText("You are enrolled in the course.")).toBeVisible();
      await expect(page.getByRole("heading", { level: 1 })).toHaveText("Start Routing exercise?");
      expect((await get("tenant", "", "bob")).spec.workspaces).toEqual([{ name: "tea", role: "user" }]);
    });
  });
}

test("a link to an unknown Template or course says so", async ({ page }) => {
  await login(page, "ada");
  for (const path of ["/new/tea/nothing", "/new/nothing/desktop", "/new/tea/NOT"]) {
    expect((await page.goto(path))!.status(), path).toBe(404);
    await says(page, "This link leads to nothing");
  }
});

test("a Template with an empty node selector offers the configured node labels", async ({ browser }) => {
  await clear("ada");
  await template("anywhere", { nodeSelector: {} });
  const page = await at(browser, { nodeLabels: ["disk=fast", "disk=slow"] }, "ada");
  await page.goto("/new/tea/anywhere");
  await page.getByLabel("Servers").selectOption("disk=slow");
  await page.getByRole("button", { name: "Start anywhere" }).click();
  await expect(page.locator(".notice.done")).toBeVisible();
  expect((await instances())[0].spec.nodeSelector).toEqual({ disk: "slow" });
  await page.goto(link);
  await expect(page.getByLabel("Servers")).toHaveCount(0);
  await page.context().close();
  await clear("ada");
  await kubectl("delete", "templates.crownlabs.polito.it", "anywhere", "-n", "workspace-tea");
});
