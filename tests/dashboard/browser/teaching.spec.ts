// The pages of teachers and administrators: layout, accessibility, states, an outage, no scripts, and hostile texts of students.
import { expect, test, type Page } from "@playwright/test";
import { faults, says } from "./axe";
import { apply, clear, control, get, kubectl, login, machine } from "./site";

const instances = "instances.crownlabs.polito.it";
const ofTeacher: [string, string][] = [
  ["class", "/courses/tea"],
  ["action", "/courses/tea/actions/stop"],
  ["people", "/courses/tea/people"],
  ["person", "/courses/tea/person/bob"],
  ["import", "/courses/tea/people/import"],
  ["templates", "/courses/tea/templates"],
  ["template", "/courses/tea/templates/desktop"],
  ["template-form", "/courses/tea/templates/desktop/edit"],
  ["template-yaml", "/courses/tea/templates/new?view=text"],
  ["volumes", "/courses/tea/volumes"],
  ["exams", "/courses/tea/exams"],
  ["announcements", "/courses/tea/announcements"],
  ["machine-of-student", "/machines/tenant-bob/lab"],
];
const ofAdministrator: [string, string][] = [
  ["admin", "/admin"],
  ["admin-courses", "/admin/courses"],
  ["admin-course", "/admin/courses/tea"],
  ["admin-people", "/admin/people"],
  ["admin-person", "/admin/people/bob"],
  ["admin-cluster", "/admin/cluster"],
];

test.beforeAll(async () => {
  await clear("bob");
  await machine("bob", "lab", { prettyName: "Routing", contentUrls: { default: { destination: "http://127.0.0.1:1/upload" } } });
  await apply({ apiVersion: "crownlabs.polito.it/v1alpha2", kind: "SharedVolume", metadata: { name: "material", namespace: "workspace-tea" }, spec: { prettyName: "Material", size: "1Gi" } });
});

test.afterAll(async () => {
  await kubectl("delete", "sharedvolumes.crownlabs.polito.it", "material", "-n", "workspace-tea", "--wait=false");
  await clear("bob");
});

// Asserts that no element extends beyond the right edge. Wide tables scroll in their own region.
async function fits(page: Page, path: string): Promise<void> {
  const [wide, seen] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  expect(wide, path).toBeLessThanOrEqual(seen);
}

for (const [user, pages] of [["eve", ofTeacher], ["root", ofAdministrator]] as const) {
  test(`the pages of ${user} are accessible and fit the screen`, async ({ page }) => {
    test.setTimeout(600_000);
    await login(page, user, "/courses");
    for (const [size, width, colorScheme, language] of [["desktop", 1280, "light", "en"], ["phone", 320, "dark", "it"]] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.setViewportSize({ width, height: 900 });
      await page.goto(`/courses?lang=${language}`);
      for (const [name, path] of pages) {
        const answer = await page.goto(path);
        expect(answer!.status(), path).toBe(200);
        await expect(page.locator("html")).toHaveAttribute("lang", language);
        await fits(page, path);
        await page.screenshot({ path: `shots/${name}-${size}-${colorScheme}-${language}.png`, fullPage: true });
        expect(await faults(page), `${path} ${size} ${colorScheme} ${language}`).toEqual([]);
      }
    }
    await page.goto("/courses?lang=en");
  });
}

test("a page that does not exist, or may not be seen, says so", async ({ page }) => {
  await login(page, "ada", "/courses");
  expect((await page.goto("/courses/tea/people"))!.status()).toBe(403);
  await says(page, "Not allowed");
  expect((await page.goto("/admin"))!.status()).toBe(403);
  for (const path of ["/courses/none", "/courses/none/people", "/courses/tea/actions/explode", "/courses/tea/templates/none", "/admin/people/none", "/courses/tea/person/no..one"]) {
    expect([403, 404], path).toContain((await page.goto(path))!.status());
    expect(await faults(page), path).toEqual([]);
  }
  // The navigation offers a student nothing of this.
  await page.goto("/courses");
  await expect(page.locator('a[href^="/admin"], a[href="/courses/tea"]')).toHaveCount(0);
});

test("while the API server is silent, the class shows its last state without actions, and a form changes nothing", async ({ page }) => {
  await login(page, "eve", "/courses/tea");
  await expect(page.locator("#row-bob")).toContainText("Routing");
  // Each replica reads the class once.
  for (let count = 0; count < 4; count++) await page.reload();
  const other = await page.context().newPage();
  await other.goto("/courses/tea/people");
  await page.waitForFunction(() => document.documentElement.dataset.live === "yes");
  await control("pause", { what: "apiserver" });
  try {
    await expect(page.locator("#silent")).toBeVisible({ timeout: 10_000 });
    await page.reload();
    await expect(page.locator("#old")).toBeVisible({ timeout: 20_000 });
    await expect(page.locator("#row-bob")).toContainText("Routing");
    await expect(page.getByRole("button", { name: "Stop", exact: true })).toHaveCount(0);
    expect(await faults(page)).toEqual([]);
    await other.reload();
    await expect(() => says(other, "The laboratory does not respond")).toPass();
  } finally {
    await control("resume", { what: "apiserver" });
  }
  await expect(page.locator("#old")).toHaveCount(0, { timeout: 20_000 });
  await expect(page.getByRole("button", { name: "Stop", exact: true })).toBeVisible();
  await expect(other.getByRole("heading", { name: /^Requests to join/ })).toBeVisible({ timeout: 20_000 });
});

test.describe("without scripts", () => {
  test.use({ javaScriptEnabled: false });

  test("a class is filtered, and the selected machine is stopped and started", async ({ page }) => {
    await login(page, "eve", "/courses/tea");
    await page.locator("#search").fill("bob");
    await page.getByRole("button", { name: "Search" }).click();
    await expect(page.locator("table.class tbody tr")).toHaveCount(1);
    for (const [button, confirm, running] of [["Stop", "Stop 1 machine", false], ["Start for all without a machine", "Start 1 machine", true]] as const) {
      await page.goto("/courses/tea?q=bob&template=desktop");
      await page.locator("#who-bob").check();
      await page.getByRole("button", { name: button, exact: true }).click();
      await page.getByRole("button", { name: confirm }).click();
      await expect(page.getByRole("link", { name: "Result as CSV" })).toBeVisible();
      expect((await get(instances, "tenant-bob", "lab")).spec.running).toBe(running);
      // Sent again by a reload, the question has nothing to do.
      await page.reload();
      await expect(page.locator(".totals")).toContainText(/Stopped\s*1|Started\s*1/);
    }
  });
});

test("texts of students change nothing on the pages of their teachers", async ({ page, context }) => {
  const evil = `<img src="https://evil.example.org/x" onerror="document.title='evil'"><script>document.title="evil"</script>\u202e\u001b[2J`;
  const was = (await get("tenant", "", "bob")).spec;
  await kubectl("patch", "tenant", "bob", "--type=merge", "-p", JSON.stringify({ spec: { firstName: evil.slice(0, 150), lastName: `=HYPERLINK("https://evil.example.org")` } }));
  await machine("bob", "evil", { prettyName: evil, running: false, contentUrls: { default: { destination: "http://127.0.0.1:1/upload" } } });
  await machine("bob", "formula", { prettyName: `=HYPERLINK("https://evil.example.org";"x")`, running: false });
  const condition = { type: "Hostile", status: "False", reason: "Evil", message: evil, lastTransitionTime: "2026-01-01T00:00:00Z" };
  const status = { url: "javascript:alert(1)", conditions: [condition] };
  // A student may write the status of their Instances.
  await kubectl("patch", instances, "evil", "-n", "tenant-bob", "--subresource=status", "--type=merge", "-p", JSON.stringify({ status }));
  const asked: string[] = [];
  context.on("request", (request) => { if (new URL(request.url()).hostname.includes("evil")) asked.push(request.url()); });
  page.on("dialog", () => asked.push("a dialog"));
  await login(page, "eve", "/courses/tea");
  for (const path of ["/courses/tea", "/courses/tea?q=%3Cscript%3E", "/courses/tea/people", "/courses/tea/person/bob", "/courses/tea/exams", "/courses/tea/actions/delete?who=bob", "/courses/tea/templates/desktop", "/machines/tenant-bob/evil"]) {
    expect((await page.goto(path))!.status(), path).toBe(200);
    expect(await page.title(), path).not.toBe("evil");
    await expect(page.locator("main img, main script, main a[href^='javascript']"), path).toHaveCount(0);
    expect(await page.locator("main").innerText(), path).not.toMatch(/[\u202e\u001b]/);
    await fits(page, path);
  }
  expect(asked).toEqual([]);
  for (const path of ["/courses/tea/class.csv", "/courses/tea/exams.csv", "/courses/tea/actions/stop/result.csv"]) {
    const answer = await context.request.get(path);
    expect(answer.headers()["content-disposition"], path).toMatch(/^attachment/);
    // No cell begins a formula.
    expect(await answer.text(), path).not.toMatch(/(^|,|;|\n)"?[=+@\t]/m);
  }
  await kubectl("patch", "tenant", "bob", "--type=merge", "-p", JSON.stringify({ spec: { firstName: was.firstName, lastName: was.lastName } }));
});

test("machines that name a teacher as their Tenant stay in the row of their owner", async ({ page }) => {
  const spec = { "tenant.crownlabs.polito.it/TenantRef": { name: "eve" }, running: false, prettyName: "Not of Eve" };
  await clear("bob");
  await machine("bob", "lab", spec).catch(() => machine("bob", "lab", { running: false, prettyName: "Not of Eve" }));
  await login(page, "eve", "/courses/tea");
  await expect(page.locator("#row-bob")).toContainText("Not of Eve");
  await expect(page.locator("#row-ada")).toBeVisible();
  await expect(page.locator("#row-eve")).toHaveCount(0);
  await page.goto("/");
  await expect(page.getByRole("article", { name: "Not of Eve" })).toHaveCount(0);
});
