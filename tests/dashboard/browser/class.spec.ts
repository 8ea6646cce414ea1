// A class of a hundred: its page is small, and each action needs two clicks, also while a replica is killed.
import { expect, test, type BrowserContext, type Page } from "@playwright/test";
import { faults } from "./axe";
import { control, crowd, enrol, get, kubectl, login, sent } from "./site";

const students = crowd(100);
const most = 80 * 1024;

test.describe.configure({ mode: "serial" });

test.beforeAll(async () => {
  test.setTimeout(400_000);
  await enrol(students);
});

// Returns the machines of the class.
async function machines(): Promise<any[]> {
  const all = JSON.parse(await kubectl("get", "instances.crownlabs.polito.it", "-A", "-o", "json")).items;
  return all.filter((one: any) => one.metadata.namespace.startsWith("tenant-seat-"));
}

// Chooses an action with one click, confirms it with another one, and kills a replica while it is carried out.
async function act(page: Page, button: string, confirm: string, number: number): Promise<void> {
  await page.goto("/courses/crowd");
  await expect(page.getByRole("link", { name: "100 students" })).toBeVisible();
  await page.getByRole("button", { name: button, exact: true }).click();
  await page.getByRole("button", { name: confirm }).click();
  await control("restart-replica", { number });
}

// Reloads the page. The script of the page may go to the progress of an action at the same time, which ends a reload.
const reload = (page: Page) => expect(() => page.reload()).toPass();

// Waits until all rows are in a state, and asserts that a reload, also by another replica, shows the same.
async function all(page: Page, state: string): Promise<void> {
  const done = page.locator(".totals li", { hasText: new RegExp(`^\\s*${state}`) });
  await expect(done).toHaveText(new RegExp(`${state}\\s*100`), { timeout: 400_000 });
  expect(await faults(page)).toEqual([]);
  await reload(page);
  await expect(done).toHaveText(new RegExp(`${state}\\s*100`));
}

// Returns the number of bytes that the page of the class transfers, without styles and scripts.
async function bytes(page: Page, context: BrowserContext): Promise<number> {
  const client = await context.newCDPSession(page);
  await client.send("Network.enable");
  const lengths = new Map<string, number>();
  let first = "";
  client.on("Network.responseReceived", ({ requestId, type }) => {
    if (type === "Document" && !first) first = requestId;
  });
  client.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => lengths.set(requestId, encodedDataLength));
  await page.goto("/courses/crowd");
  await expect(page.locator("table.class tbody tr")).toHaveCount(100);
  await expect.poll(() => lengths.has(first)).toBe(true);
  await client.detach();
  console.log(`    ${lengths.get(first)} bytes`);
  return lengths.get(first)!;
}

test("the page of a class of a hundred without machines transfers at most 80 KB", async ({ page, context }) => {
  await login(page, "ned", "/account");
  const transferred = await bytes(page, context);
  expect(transferred).toBeGreaterThan(2_000);
  expect(transferred).toBeLessThanOrEqual(most);
  expect(await faults(page)).toEqual([]);
});

test("all start with two clicks while a replica is killed: each gets one machine", async ({ page }) => {
  test.setTimeout(600_000);
  await login(page, "ned");
  await act(page, "Start for all without a machine", "Start 100 machines", 0);
  await all(page, "Started");
  const found = await machines();
  expect(found).toHaveLength(100);
  expect(new Set(found.map((one) => one.metadata.namespace)).size).toBe(100);
  expect(new Set(found.map((one) => one.metadata.annotations["crownlabs.polito.it/class-action"])).size).toBe(1);
  expect(await sent("ned", "create", "instances")).toHaveLength(100);
});

test("the page of the started class transfers at most 80 KB, and updates keep the selection, the search and the place", async ({ page, context }) => {
  await login(page, "ned", "/account");
  expect(await bytes(page, context)).toBeLessThanOrEqual(most);
  await page.goto("/courses/crowd?sort=-person");
  await expect(page.locator("table.class tbody tr a[href^='/machines/']")).toHaveCount(100);
  await page.waitForFunction(() => document.documentElement.dataset.live === "yes");
  // Rows of machines that start have more lines.
  await expect(page.locator("table.class tbody tr", { hasText: "Ready" })).toHaveCount(100);
  const box = page.locator("#who-seat-050");
  await box.check();
  await page.locator("#search").fill("half of a wo");
  await page.locator("#row-seat-020").scrollIntoViewIfNeeded();
  const place = async () => Math.round((await page.locator("#row-seat-020").boundingBox())!.y);
  const before = await place();
  const { name } = (await machines()).find((one) => one.metadata.namespace === "tenant-seat-050").metadata;
  await kubectl("patch", "instances.crownlabs.polito.it", name, "-n", "tenant-seat-050", "--type=merge", "-p", '{"spec":{"prettyName":"Renamed"}}');
  await expect(page.locator("#row-seat-050")).toContainText("Renamed");
  await expect(box).toBeChecked();
  await expect(page.locator("#search")).toHaveValue("half of a wo");
  expect(Math.abs((await place()) - before)).toBeLessThanOrEqual(2);
  expect(await page.locator("table.class tbody tr").first().getAttribute("id")).toBe("row-seat-099");
  // Only the selected student is stopped.
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await expect(page.getByText("1 selected student")).toBeVisible();
  await page.getByRole("button", { name: "Stop 1 machine" }).click();
  await expect(page.locator(".totals li", { hasText: "Stopped" })).toHaveText(/Stopped\s*1/);
  expect((await machines()).filter((one) => !one.spec.running)).toHaveLength(1);
});

test("a class that changes all the time costs at most two updates a second, which read only changed machines", async ({ page }) => {
  await login(page, "ned", "/courses/crowd");
  await page.waitForFunction(() => document.documentElement.dataset.live === "yes");
  let updates = 0;
  page.on("request", (request) => { if (request.headers()["hx-request"]) updates++; });
  const lists = async () => (await sent("ned", "list", "instances")).length;
  const before = await lists();
  const begin = Date.now();
  for (const name of students.slice(0, 40)) {
    await kubectl("annotate", "instances.crownlabs.polito.it", "--all", "-n", `tenant-${name}`, `example.org/at=${begin}`);
  }
  const seconds = (Date.now() - begin) / 1_000;
  expect(updates).toBeGreaterThan(0);
  expect(updates).toBeLessThanOrEqual(Math.ceil(seconds * 2) + 1);
  // Each replica lists the class once.
  expect(await lists()).toBeLessThanOrEqual(before + 1);
});

test("all are collected with two clicks while a replica is killed, and the file has a line for each", async ({ page }) => {
  test.setTimeout(600_000);
  const items = (await machines()).map(({ apiVersion, kind, metadata: { name, namespace } }) => ({
    apiVersion, kind, metadata: { name, namespace }, spec: { contentUrls: { default: { destination: "http://127.0.0.1:1/upload" } } },
  }));
  const { error } = await control("kubectl", { arguments: ["apply", "--server-side", "--validate=false", "--field-manager=tests", "-f", "-"], input: JSON.stringify({ apiVersion: "v1", kind: "List", items }) });
  expect(error).toBeUndefined();
  await login(page, "ned");
  await act(page, "Collect", "Collect from 100 machines", 1);
  await all(page, "Collected");
  for (const one of await machines()) expect([one.spec.running, one.metadata.labels["crownlabs.polito.it/instance-submission-completed"]]).toEqual([false, "true"]);
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Result as CSV" }).click()]);
  const lines = (await (await file.createReadStream()).toArray()).join("").trim().split("\r\n");
  expect(lines).toHaveLength(101);
  expect(lines.filter((line) => line.includes("Collected"))).toHaveLength(100);
});

test("a stopped class is started and stopped with two clicks each, and each machine changes once", async ({ page }) => {
  test.setTimeout(600_000);
  await login(page, "ned");
  const patched = async () => (await sent("ned", "patch", "instances")).length;
  let before = await patched();
  await act(page, "Start for all without a machine", "Start 100 machines", 0);
  await all(page, "Started");
  expect((await patched()) - before).toBe(100);
  before = await patched();
  await act(page, "Stop", "Stop 100 machines", 1);
  await all(page, "Stopped");
  expect((await patched()) - before).toBe(100);
  expect((await machines()).filter((one) => one.spec.running)).toEqual([]);
});

test("all machines are deleted with two clicks", async ({ page }) => {
  test.setTimeout(600_000);
  await login(page, "ned");
  await act(page, "Delete", "Delete 100 machines", 0);
  await expect(page.locator(".totals")).toBeVisible();
  await expect.poll(async () => (await machines()).length, { timeout: 400_000 }).toBe(0);
  await reload(page);
  await expect(page.locator(".totals li", { hasText: "Still to do" })).toHaveCount(0);
  expect(await sent("ned", "delete", "instances")).toHaveLength(100);
});

test("a refused student has the reason, and a retry succeeds after the cause is removed", async ({ page }) => {
  await enrol(["seat-200"]);
  const limit = async (quota: object | null, instances: (count: number) => boolean) => {
    await kubectl("patch", "tenant", "seat-200", "--type=merge", "-p", JSON.stringify({ spec: { quota } }));
    await expect.poll(async () => instances((await get("tenant", "", "seat-200")).status.quota.instances ?? 0)).toBe(true);
  };
  await login(page, "ned", "/courses/crowd");
  await page.goto("/courses/crowd?q=seat-200");
  await page.locator("#who-seat-200").check();
  await page.getByRole("button", { name: "Start for all without a machine" }).click();
  await limit({ cpu: "0", memory: "0", instances: 0 }, (count) => count === 0);
  await page.getByRole("button", { name: "Start 1 machine" }).click();
  await expect(page.locator(".totals li", { hasText: "Refused" })).toHaveText(/Refused\s*1/);
  await expect(page.getByRole("table")).toContainText(/quota/i);
  await limit(null, (count) => count > 0);
  await page.getByRole("button", { name: "Try 1 refused change again" }).click();
  await expect(page.locator(".totals li", { hasText: "Started" })).toHaveText(/Started\s*1/);
  await kubectl("delete", "tenant", "seat-200", "--wait=false");
});
