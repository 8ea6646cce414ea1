// A course, from its creation by an administrator to the first working student, without kubectl.
import { expect, test } from "@playwright/test";
import { faults } from "./axe";
import { clear, control, get, kubectl, login } from "./site";

const role = "workspace-first:user";

// Sends a request to the administration of Keycloak.
async function admin(method: string, path: string, body?: object): Promise<any> {
  const { output, error } = await control("keycloak", { method, path, body });
  expect(error).toBeUndefined();
  return output && output !== "null" ? JSON.parse(output) : undefined;
}

// Returns the path of the client with the roles of the courses.
async function rolesClient(): Promise<string> {
  const [{ id }] = await admin("GET", "/clients?clientId=client-api-server");
  return `/clients/${id}`;
}

// Gives a user the role of the course, as the daemon does where it manages Keycloak.
async function grant(user: string): Promise<void> {
  const client = await rolesClient();
  await admin("POST", `${client}/roles`, { name: role });
  const [person] = await admin("GET", `/users?username=${user}&exact=true`);
  const found = await admin("GET", `${client}/roles/${encodeURIComponent(role)}`);
  await admin("POST", `/users/${person.id}/role-mappings${client}`, [found]);
}

// Later tests expect the groups of the realm in the tokens.
test.afterAll(async () => {
  await admin("DELETE", `${await rolesClient()}/roles/${encodeURIComponent(role)}`);
});

test("an administrator creates a course, and its first student works", async ({ page, browser }) => {
  test.setTimeout(300_000);
  await clear("joe");
  await kubectl("patch", "tenant", "joe", "--type=merge", "-p", '{"spec":{"workspaces":null}}');
  await login(page, "root", "/admin");
  expect(await faults(page)).toEqual([]);
  await page.getByRole("link", { name: "Courses" }).last().click();
  await page.locator("#course-name").fill("first");
  await page.locator("#course-title").fill("The first course");
  await page.locator("#course-enrolment").selectOption("immediate");
  await page.locator("#quota-cpu").fill("4");
  await page.locator("#quota-memory").fill("8Gi");
  await page.locator("#quota-instances").fill("2");
  await page.getByRole("button", { name: "Create the course" }).click();
  await expect(page.getByText("The course was created.")).toBeVisible();
  await expect.poll(async () => (await get("workspace", "", "first"))?.status?.namespace?.created).toBe(true);

  await page.goto("/courses/first/templates/new");
  await page.locator("#field-name").fill("box");
  await page.getByLabel("Title").fill("The first box");
  await page.getByLabel("Description").fill("A desktop.");
  await page.locator("#field-e0\\.image").fill("registry.example.org/desktop");
  await page.locator("#field-e0\\.memory").fill("1Gi");
  await page.getByRole("button", { name: "Create template" }).click();
  await expect(page.getByText("The template was created.")).toBeVisible();

  await grant("joe");
  const student = await browser.newPage();
  await login(student, "joe", "/courses");
  await student.locator("#course-first").getByRole("button", { name: /Join/ }).click();
  await expect.poll(async () => (await get("tenant", "", "joe")).spec.workspaces).toEqual([{ name: "first", role: "user" }]);
  await expect(async () => {
    await student.goto("/");
    await student.getByRole("button", { name: "Start The first box" }).click({ timeout: 2_000 });
  }).toPass({ timeout: 90_000 });
  await expect(student.getByRole("link", { name: /^Connect/ })).toBeVisible({ timeout: 90_000 });
  await student.context().close();

  // The class shows the student, and the page of the course what a deletion would lose.
  await page.goto("/courses/first");
  await expect(page.locator("#row-joe")).toContainText("Ready");
  await page.goto("/admin/courses/first");
  await expect(page.getByRole("main")).toContainText("Machines that could not be started again");
  expect(await faults(page)).toEqual([]);
  await clear("joe");
  await page.locator("summary", { hasText: "Delete the course" }).click();
  await page.getByRole("button", { name: "Delete the course for ever" }).click();
  await expect(page.getByText("The course is being deleted.")).toBeVisible();
  await kubectl("patch", "tenant", "joe", "--type=merge", "-p", '{"spec":{"workspaces":null}}');
});

test("a person is found, limited and disabled, and the cluster and the loops are shown", async ({ page }) => {
  await login(page, "root", "/admin/people");
  await page.getByRole("searchbox").fill("max");
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByRole("rowheader").getByRole("link").click();
  await expect(page).toHaveURL(/\/admin\/people\/max$/);
  await page.locator("#quota-cpu").fill("1");
  await page.locator("#quota-memory").fill("2Gi");
  await page.locator("#quota-instances").fill("1");
  await page.getByRole("button", { name: "Set the quota" }).click();
  await expect.poll(async () => (await get("tenant", "", "max")).spec.quota?.instances).toBe(1);
  await page.locator("summary", { hasText: "Disable" }).click();
  await page.getByRole("button", { name: /^Disable/ }).last().click();
  await expect.poll(async () => (await get("tenant", "", "max")).spec.quota?.instances).toBe(0);
  expect(await faults(page)).toEqual([]);
  await kubectl("patch", "tenant", "max", "--type=merge", "-p", '{"spec":{"quota":null}}');
  await page.goto("/admin/cluster");
  await expect(page.getByRole("main")).toContainText(/\d+ of \d+ nodes accept machines/);
  expect(await faults(page)).toEqual([]);
});

test("an announcement is on the first page of the students of its course only, until it is withdrawn", async ({ page, browser }) => {
  await login(page, "leo", "/courses/tea/announcements");
  await page.locator("#announcement-title").fill("Room 4 moves");
  await page.locator("#announcement-text").fill("To room 7.\n<b>Not bold</b>");
  await page.getByRole("button", { name: "Publish" }).click();
  await expect(page.getByText("The announcement was published.")).toBeVisible();
  expect(await faults(page)).toEqual([]);
  const student = await browser.newPage();
  await login(student, "bob");
  const shown = student.getByRole("article").filter({ hasText: "Room 4 moves" });
  await expect(shown).toContainText("<b>Not bold</b>");
  const other = await browser.newPage();
  await login(other, "mia");
  await expect(other.getByText("Room 4 moves")).toHaveCount(0);
  await page.locator("summary", { hasText: "Withdraw" }).click();
  await page.getByRole("button", { name: /^Withdraw/ }).last().click();
  // The open page of the student follows.
  await expect(shown).toHaveCount(0);
  await Promise.all([student.context().close(), other.context().close()]);
});
