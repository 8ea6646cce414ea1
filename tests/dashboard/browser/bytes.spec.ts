// The number of bytes that a first visit transfers, with ten machines.
import { expect, test } from "@playwright/test";
import { clear, get, kubectl, login, machine } from "./site";

const most = 48 * 1024;

// Sets the maximum number of machines for students of the course.
async function allow(instances: number): Promise<void> {
  await kubectl("patch", "workspace", "tea", "--type=merge", "-p", JSON.stringify({ spec: { quota: { instances } } }));
  await expect.poll(async () => (await get("tenant", "", "max")).status.quota.instances).toBe(instances);
  const hard = async () => (await get("resourcequota", "tenant-max", "crownlabs-resource-quota")).status.hard;
  await expect.poll(async () => (await hard())["count/instances.crownlabs.polito.it"]).toBe(String(instances));
}

test("the first page is small, and styles and scripts are fetched once", async ({ page, context }) => {
  await clear("max");
  await allow(10);
  for (let number = 0; number < 10; number++) await machine("max", `m-${number}`, { running: false, prettyName: `Machine ${number}` });
  await login(page, "max", "/account");
  const fresh = await context.browser()!.newContext({ storageState: await context.storageState(), ignoreHTTPSErrors: true, baseURL: new URL(page.url()).origin });
  const first = await fresh.newPage();
  const client = await fresh.newCDPSession(first);
  await client.send("Network.enable");
  const seen = new Map<string, number>();
  const urls = new Map<string, string>();
  // Live updates come after the first visit: new machines change for a while.
  client.on("Network.responseReceived", ({ requestId, response, type }) => {
    if (type !== "Fetch" && type !== "EventSource") urls.set(requestId, new URL(response.url).pathname);
  });
  client.on("Network.dataReceived", ({ requestId, encodedDataLength }) =>
    seen.set(requestId, (seen.get(requestId) ?? 0) + encodedDataLength));
  const bytes = () => [...seen].filter(([id]) => urls.has(id)).reduce((sum, [, length]) => sum + length, 0);
  await first.goto("/");
  await expect(first.getByRole("article", { name: "Machine 9", exact: true })).toBeVisible();
  await expect(first.locator("script")).not.toHaveCount(0);
  await first.waitForFunction(() => "htmx" in window);
  const whole = bytes();
  console.log(`    ${whole} bytes`);
  expect(whole).toBeGreaterThan(5_000);
  expect(whole).toBeLessThanOrEqual(most);
  seen.clear();
  await first.goto("/courses");
  expect([...seen].filter(([, length]) => length > 0).map(([id]) => urls.get(id)).filter((path) => path?.startsWith("/assets/"))).toEqual([]);
  await fresh.close();
});

test.afterEach(async () => {
  await clear("max");
  await allow(3);
});
