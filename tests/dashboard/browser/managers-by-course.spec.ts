// With `tenant.managers: course`, the pages of managers show and change only the machines of their courses, as the API server does
// with the same tokens. Bob is in two courses, Tea and Ask, and Ada only in Tea.
import { expect, request, test, type Page } from "@playwright/test";
import { clear, control, get, kubectl, login, machine, token, tried } from "./site";

const kind = "instances.crownlabs.polito.it";
const refused = "This machine belongs to another course, which you do not manage.";
const machines = { "tea-of-ada": "ada", "tea-of-bob": "bob", "ask-of-bob": "bob" };
// The machines that each manager sees and may change.
const managers = {
  eve: { sees: ["tea-of-ada", "tea-of-bob", "ask-of-bob"], changes: ["tea-of-ada", "tea-of-bob"] },
  mia: { sees: ["tea-of-bob", "ask-of-bob"], changes: ["ask-of-bob"] },
  leo: { sees: ["tea-of-ada", "tea-of-bob", "ask-of-bob"], changes: ["tea-of-ada", "tea-of-bob", "ask-of-bob"] },
};

test.describe.configure({ mode: "serial" });

const bound = async (course: string) => Boolean(await get("clusterrolebindings", "", `crownlabs-manage-instances-${course}`));

// Starts the leader with a value of the key, and waits until managers have their rights.
async function by(value: string): Promise<void> {
  await control("set-managers", { managers: value });
  const wide = value === "cluster";
  await expect.poll(async () => [await bound("tea"), await bound("ask")]).toEqual([wide, wide]);
  const own = () => get("rolebindings", "tenant-bob", "crownlabs-manage-instances-managers");
  await expect.poll(async () => Boolean(await own())).toBe(value === "course");
}

const enrol = (...courses: string[]) => kubectl("patch", "tenant", "bob", "--type=merge", "-p", JSON.stringify({ spec: { workspaces: courses.map((name) => ({ name, role: "user" })) } }));

test.beforeAll(async () => {
  await enrol("tea", "ask");
  await by("course");
  const { apiVersion, spec } = await get("templates.crownlabs.polito.it", "workspace-tea", "desktop");
  const ask = { ...spec, "workspace.crownlabs.polito.it/WorkspaceRef": { name: "ask" } };
  const template = { apiVersion, kind: "Template", metadata: { name: "desktop", namespace: "workspace-ask" }, spec: ask };
  await control("kubectl", { arguments: ["apply", "-f", "-"], input: JSON.stringify(template) });
  for (const [name, user] of Object.entries(machines)) {
    const reference = { name: "desktop", namespace: `workspace-${name.slice(0, 3)}` };
    await machine(user, name, { running: false, "template.crownlabs.polito.it/TemplateRef": reference });
    await expect.poll(async () => (await get(kind, `tenant-${user}`, name)).metadata.labels?.["crownlabs.polito.it/workspace"]).toBe(name.slice(0, 3));
  }
});

test.afterAll(async () => {
  await by("cluster");
  for (const user of ["ada", "bob"]) await clear(user);
  await kubectl("delete", "templates.crownlabs.polito.it", "desktop", "-n", "workspace-ask");
  await enrol("tea");
});

// Renames a machine on its page.
async function rename(page: Page, path: string, title: string): Promise<void> {
  await page.goto(path);
  await page.locator("#pretty-name").fill(title);
  await page.getByRole("button", { name: "Rename" }).click();
}

for (const [user, { sees, changes }] of Object.entries(managers)) {
  test(`${user} sees and changes the machines of the own courses only`, async ({ page, baseURL }) => {
    const { output } = await control("server");
    const api = await request.newContext({ baseURL: output, ignoreHTTPSErrors: true, extraHTTPHeaders: { authorization: `Bearer ${await token(user)}` } });
    await login(page, user, "/account");
    for (const [name, student] of Object.entries(machines)) {
      const at = `/apis/crownlabs.polito.it/v1alpha2/namespaces/tenant-${student}/instances/${name}`;
      const path = `/machines/tenant-${student}/${name}`;
      expect((await api.get(at)).status(), name).toBe(sees.includes(name) ? 200 : 403);
      const shown = await page.goto(path);
      expect(shown!.status() === 200, name).toBe(sees.includes(name));
      const headers = { "content-type": "application/merge-patch+json" };
      const patched = await api.patch(`${at}?dryRun=All`, { headers, data: { spec: { prettyName: "x" } } });
      expect(patched.status(), name).toBe(changes.includes(name) ? 200 : 403);
      expect((await api.delete(`${at}?dryRun=All`)).status(), name).toBe(changes.includes(name) ? 200 : 403);
      if (!sees.includes(name)) continue;
      await rename(page, new URL(path, baseURL).href, `${name} by ${user}`);
      if (changes.includes(name)) {
        await expect(page.getByRole("heading", { level: 1 })).toHaveText(`${name} by ${user}`);
      } else {
        await expect(page.getByText(refused)).toBeVisible();
      }
    }
    // A list of all namespaces is forbidden, so the class is read from the namespaces of its students.
    expect((await api.get("/apis/crownlabs.polito.it/v1alpha2/instances")).status()).toBe(403);
    await api.dispose();
  });
}

test("a manager sees the screens of students of the own courses only, and the student sees that", async ({ browser, page: own }) => {
  await control("screen", { name: "tea-of-ada", show: "machine" });
  await login(own, "ada", "/machines/tenant-ada/tea-of-ada");
  const connected = own.locator("#connected");
  await own.waitForFunction(() => document.documentElement.dataset.live === "yes");
  await expect(connected).toHaveCount(0);
  for (const [user, may] of [["eve", true], ["mia", false]] as const) {
    const context = await browser.newContext({ ignoreHTTPSErrors: true });
    const page = await context.newPage();
    await login(page, user, "/account");
    const shown = await page.goto("/machines/tenant-ada/tea-of-ada/main/console");
    expect([user, shown!.status()]).toEqual([user, may ? 200 : 403]);
    if (may) {
      await expect(page.locator("#console-state")).toHaveText("Connected");
      await expect(connected.locator("li")).toHaveText(/^A teacher of the course is connected: eve \(console/);
      await own.screenshot({ path: "shots/machine-console.png", fullPage: true });
    } else expect(await tried(page, "tea-of-ada", "console")).toBe(4403);
    await context.close();
    await expect(connected).toHaveCount(0);
  }
});

test("the class and the Templates of a course show only machines of the course", async ({ page }) => {
  await login(page, "mia", "/courses/ask");
  const row = page.locator("table.class tbody tr", { hasText: "Bob" });
  await expect(row).toContainText("ask-of-bob by leo");
  await expect(page.locator("table.class")).not.toContainText("tea-of-bob");
  await page.goto("/courses/ask/templates");
  await expect(page.locator("article#template-desktop")).toContainText("1 machine");
});
