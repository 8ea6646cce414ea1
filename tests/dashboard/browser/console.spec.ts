// The console of a virtual machine: QEMU behind an aggregated API server that speaks KubeVirt's VNC, through two replicas of the
// dashboard.
import { expect, test, type Page } from "@playwright/test";
import { faults } from "./axe";
import { at, clear, control, kubectl, login, machine, token, tried } from "./site";

const path = "/machines/tenant-ada/seen/main/console";
const canvas = (page: Page) => page.locator("#console-screen canvas");
const state = (page: Page) => page.locator("#console-state");
const show = (what: string) => control("screen", { name: "seen", show: what });
const output = async () => (await control("screen-output")).output!;
const boots = async () => (await output()).split("boot").length - 1;

// Waits until the screen is there.
async function opened(page: Page, said = "Connected"): Promise<void> {
  await expect(state(page)).toHaveText(said);
  await expect.poll(() => canvas(page).evaluate((of: HTMLCanvasElement) => of.width)).toBeGreaterThan(100);
}

test.describe.configure({ mode: "serial" });
test.beforeAll(async () => {
  await clear("ada");
  await machine("ada", "seen", { prettyName: "Seen" });
  const phase = () => kubectl("get", "instances.crownlabs.polito.it", "seen", "-n", "tenant-ada", "-o", "jsonpath={.status.phase}");
  await expect.poll(phase).toBe("Ready");
});
test.beforeEach(() => show("machine"));
test.afterAll(() => clear("ada"));

test("a student sees the screen, and types with the keyboard, from a text, and Ctrl-Alt-Del", async ({ page }) => {
  const faulty: string[] = [];
  await login(page, "ada", "/machines/tenant-ada/seen");
  await control("screen-requests");
  const [own] = await Promise.all([page.waitForEvent("popup"), page.getByRole("link", { name: "Console main", exact: true }).click()]);
  own.on("console", (message) => faulty.push(message.text()));
  await opened(own);
  await expect(own).toHaveTitle(/^Console – Seen/);
  const { output: request } = await control("screen-requests");
  expect(request).toMatch(/^GET \/apis\/subresources\.kubevirt\.io\/v1\/namespaces\/tenant-ada\/virtualmachineinstances\/seen-main\/vnc\?preserveSession=true /);
  expect(request).toMatch(/sec-websocket-protocol: plain\.kubevirt\.io/i);
  expect(request).not.toMatch(/\n(cookie|origin|sec-websocket-extensions):/i);
  await canvas(own).click();
  await own.keyboard.type("hello");
  await expect.poll(output).toContain("hello");
  const before = await boots();
  await own.getByRole("button", { name: "Ctrl-Alt-Del" }).click();
  await expect.poll(boots).toBe(before + 1);
  await own.locator("summary", { hasText: "Copy and paste" }).click();
  await own.getByLabel("Text", { exact: true }).fill("It's 5 * 7 = {35}!");
  await own.getByRole("button", { name: "Type", exact: true }).click();
  await expect(own.getByText("The text was typed.")).toBeVisible();
  await expect.poll(output).toContain("It's 5 * 7 = {35}!");
  await own.screenshot({ path: "shots/console.png", fullPage: true });
  expect(await faults(own)).toEqual([]);
  const sizes = () => performance.getEntriesByType("resource").filter(({ name }) => /\/console\.js$/.test(name)).map((one: any) => one.encodedBodySize);
  const [bytes] = await own.evaluate(sizes);
  expect(bytes).toBeGreaterThan(30_000);
  expect(bytes).toBeLessThan(200_000);
  expect(faulty).toEqual([]);
  await own.close();
});

test("the keyboard reaches every control, and a viewer who only looks on types nothing", async ({ page }) => {
  await login(page, "ada", path);
  await opened(page);
  await canvas(page).focus();
  await page.keyboard.press("Tab");
  await expect(canvas(page)).toBeFocused();
  await page.keyboard.press("Shift+F6");
  await expect(page.getByRole("button", { name: "Ctrl-Alt-Del" })).toBeFocused();
  const fits = page.getByLabel("Fit to the page");
  const width = () => canvas(page).evaluate((of) => of.getBoundingClientRect().width);
  const fitted = await width();
  await fits.focus();
  await page.keyboard.press("Space");
  await expect(fits).not.toBeChecked();
  await expect.poll(width).not.toBe(fitted);
  await page.getByLabel("Look on only").check();
  const before = await output();
  await canvas(page).click();
  await page.keyboard.type("no");
  await page.getByLabel("Look on only").uncheck();
  await canvas(page).click();
  await page.keyboard.type("yes");
  await expect.poll(output).toContain("yes");
  expect((await output()).slice(before.length)).not.toContain("n");
});

test("a second viewer is asked before they take over", async ({ browser, page }) => {
  await login(page, "ada", path);
  await opened(page);
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  const other = await context.newPage();
  await login(other, "ada", path);
  await expect(state(other)).toHaveText("Somebody else looks at this screen.");
  await expect(state(page)).toHaveText("Connected");
  expect(await faults(other)).toEqual([]);
  await other.getByRole("button", { name: "Take over" }).click();
  await opened(other);
  await expect(state(page)).toHaveText(/^The connection ended\./);
  await context.close();
  await expect(async () => {
    await page.getByRole("button", { name: "Reconnect" }).click({ timeout: 1_000 });
    await opened(page);
  }).toPass();
});

test("the page waits for the screen of a machine that starts, and a failure has its reason", async ({ page }) => {
  await show("409");
  await login(page, "ada", path);
  await expect(state(page)).toHaveText("The machine is off, or begins to start. The page tries again.");
  await show("machine");
  await opened(page);
  await show("500");
  await page.reload();
  await expect(state(page)).toHaveText("The connection ended. The laboratory does not respond. Try again in a minute.");
  await show("machine");
  await page.getByRole("button", { name: "Reconnect" }).click();
  await opened(page);
});

test("typed keys do not outlive a connection that ends with its replica", async ({ page }) => {
  await login(page, "ada", path);
  await opened(page);
  for (const number of [0, 1]) await control("restart-replica", { number });
  await expect(state(page)).toHaveText(/^The connection ended\./);
  const before = await output();
  await page.keyboard.type("late");
  await expect(async () => {
    await page.getByRole("button", { name: "Reconnect" }).click({ timeout: 1_000 });
    await opened(page);
  }).toPass();
  await canvas(page).click();
  await page.keyboard.type("new");
  await expect.poll(output).toContain("new");
  expect((await output()).slice(before.length)).toBe("new");
});

test("a hostile machine changes nothing in the page, and its data is bounded", async ({ page }) => {
  await login(page, "ada");
  for (const what of ["huge", "outside", "cursor", "jpeg", "waiting", "name"]) {
    await show(what);
    await page.goto(path);
    await expect(state(page), what).toHaveText("The connection ended. The machine has sent a picture that this page cannot show.");
    await expect(canvas(page)).toHaveCount(0);
  }
  for (const what of ["clipboard", "compressed"]) {
    await show(what);
    await page.goto(path);
    await opened(page);
    await expect(page.locator("#console-text"), what).toHaveValue("after", { timeout: 20_000 });
    await expect(state(page)).toHaveText("Connected");
  }
});

test("a phone shows the screen and the missing keys, in both languages", async ({ browser }) => {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, locale: "it-IT", viewport: { width: 320, height: 640 } });
  const page = await context.newPage();
  await login(page, "ada", path);
  await opened(page, "Connesso");
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(320);
  expect(await faults(page)).toEqual([]);
  const before = (await output()).length;
  await page.getByRole("button", { name: "Invio", exact: true }).click();
  await expect.poll(async () => (await output()).slice(before)).toBe("\r");
  await context.close();
});

test("a console ends with its session", async ({ page }) => {
  await login(page, "ada", path);
  await opened(page);
  const other = await page.context().newPage();
  await other.goto("/");
  await other.getByRole("button", { name: "Log out" }).click();
  await expect(state(page)).toHaveText(/^The connection ended\./, { timeout: 10_000 });
  await page.getByRole("button", { name: "Reconnect" }).click();
  await expect(state(page)).toHaveText("The connection ended. Your session is over. Log in again.");
  await page.getByRole("button", { name: "Reconnect" }).click();
  await expect(page.locator("#username")).toBeVisible();
  await other.close();
});

test("every user sees the screens that kubectl would show them, also if the dashboard impersonates users", async ({ browser }) => {
  for (const user of ["ada", "bob", "kim", "eve", "mia", "root"]) {
    // As `kubectl auth can-i` asks. It finds only resources that an API server lists, which subresources are not.
    const attributes = { namespace: "tenant-ada", name: "seen-main", verb: "get", group: "subresources.kubevirt.io", resource: "virtualmachineinstances", subresource: "vnc" };
    const review = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec: { resourceAttributes: attributes } };
    const args = ["create", "-f", "-", "-o", "jsonpath={.status.allowed}", "--validate=false"];
    const { output: may } = await control("kubectl", { token: await token(user), arguments: args, input: JSON.stringify(review) });
    const context = await browser.newContext({ ignoreHTTPSErrors: true });
    const page = await context.newPage();
    await login(page, user);
    expect([user, await tried(page, "seen", "console")]).toEqual([user, may === "true" ? "open" : 4403]);
    expect([user, (await context.request.get(path)).status()]).toEqual([user, may === "true" ? 200 : 403]);
    await context.close();
    // The managers of these courses have their rights in the whole cluster, without the screens.
    if (user !== "root") expect([user, may]).toEqual([user, String(user === "ada")]);
  }
  for (const [user, expected] of [["ada", "open"], ["eve", 4403]] as const) {
    const page = await at(browser, { clientId: "stranger", identity: "impersonate" }, user);
    expect([user, await tried(page, "seen", "console")]).toEqual([user, expected]);
    await page.context().close();
  }
});
