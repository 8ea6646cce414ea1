// Forms that are sent twice, by a double click or by a lost answer: they take effect once, and the page says so.
import { expect, request, test, type Page } from "@playwright/test";
import { clear, get, kubectl, login, machine, url } from "./site";

const instances = "instances.crownlabs.polito.it";

// Sends a form twice at the same time, from two copies of the browser, so that each has its own notice. Returns the notices.
async function sendTwice(page: Page, selector: string): Promise<string[]> {
  const form = page.locator(selector).first();
  const data = await form.evaluate((form: HTMLFormElement) => new URLSearchParams(new FormData(form) as any).toString());
  const action = (await form.getAttribute("action"))!;
  const headers = { "content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin" };
  const storageState = await page.context().storageState();
  const copies = [0, 1].map(() => request.newContext({ baseURL: url, ignoreHTTPSErrors: true, storageState }));
  const browsers = await Promise.all(copies);
  const answers = await Promise.all(browsers.map((browser) => browser.post(action, { headers, data })));
  const texts = await Promise.all(answers.map((answer) => answer.text()));
  for (const browser of browsers) await browser.dispose();
  return texts.map((text) => /class="notice (done|failed)"/.exec(text)?.[1] ?? "none");
}

test("a double click on Start with one place left makes one machine and reports no refusal", async ({ page }) => {
  await clear("bob");
  for (const name of ["a", "b"]) await machine("bob", name);
  await login(page, "bob");
  await page.getByRole("button", { name: "Start Routing exercise" }).dblclick();
  await expect(page.locator(".notice.done")).toBeVisible();
  await expect(page.locator(".notice.failed")).toHaveCount(0);
  const { items } = JSON.parse(await kubectl("get", instances, "-n", "tenant-bob", "-o", "json"));
  expect(items).toHaveLength(3);
  await clear("bob");
});

test("two equal forms at the same time report no refusal", async ({ page }) => {
  await clear("bob");
  for (const name of ["a", "b"]) await machine("bob", name);
  await login(page, "bob");
  expect(await sendTwice(page, "form[action='/machines']")).toEqual(["done", "done"]);
  const { items } = JSON.parse(await kubectl("get", instances, "-n", "tenant-bob", "-o", "json"));
  expect(items).toHaveLength(3);
  await clear("bob");
});

test("a key, a stop and a deletion that are sent twice are reported as done", async ({ page }) => {
  await clear("bob");
  await kubectl("patch", "tenant", "bob", "--type=merge", "-p", '{"spec":{"publicKeys":null}}');
  await machine("bob", "twice", { prettyName: "Twice" });
  await login(page, "bob", "/account");
  const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ5mmjtLqUuVOzAcWLBHQUWp2ZO3cjU5YNDiX25qkrsf bob@laptop";
  await page.locator("#key").fill(key);
  expect(await sendTwice(page, "form[action='/account/keys/add']")).toEqual(["done", "done"]);
  expect((await get("tenant", "", "bob")).spec.publicKeys).toEqual([key]);
  await page.goto("/machines/tenant-bob/twice");
  for (const action of ["stop", "delete"]) {
    const notices = await sendTwice(page, `form[action='/machines/tenant-bob/twice/${action}']`);
    expect(notices, action).toEqual(["done", "done"]);
  }
  await expect.poll(() => get(instances, "tenant-bob", "twice")).toBeUndefined();
  await kubectl("patch", "tenant", "bob", "--type=merge", "-p", '{"spec":{"publicKeys":null}}');
});
