// Sharing of machines: the owner shares a machine with a person of the course, who finds it on the first page, and sees who is connected.
import { expect, test, type Browser, type Page } from "@playwright/test";
import { faults } from "./axe";
import { apply, clear, control, desktop, get, kubectl, login, machine, terminal } from "./site";

const instances = "instances.crownlabs.polito.it";
const path = "/machines/tenant-ada/lab";
const namespace = "crownlabs-system";
const section = (page: Page) => page.locator("section[aria-labelledby=sharing]");
const withMe = (page: Page) => page.locator("section[aria-labelledby=with-me]");
const isLive = (page: Page) => page.waitForFunction(() => document.documentElement.dataset.live === "yes");

// The people in the annotation.
async function shared(): Promise<any[]> {
  return JSON.parse((await get(instances, "tenant-ada", "lab")).metadata.annotations?.["crownlabs.polito.it/shared-with"] ?? "[]");
}

// Sends the form. The time zone is known from the second page on.
async function share(page: Page, user: string, access = "view"): Promise<void> {
  if (!(await page.locator("#share-user").isVisible())) await page.locator("#share summary").click();
  await page.locator("#share-user").fill(user);
  await page.locator("#share-access").selectOption(access);
  await page.locator("#share button[type=submit]").click();
}

// Shares the machine of ada with bob, who may work on it. Returns the first page of bob.
async function peerOf(page: Page, browser: Browser): Promise<Page> {
  await login(page, "ada", path);
  await isLive(page);
  await share(page, "bob", "control");
  await expect(page.getByText("The machine is shared.")).toBeVisible();
  const peer = await (await browser.newContext()).newPage();
  await login(peer, "bob");
  return peer;
}

test.beforeEach(async () => {
  await clear("ada");
  await machine("ada", "lab", { prettyName: "Lab" });
});

test.afterEach(() => clear("ada"));

test("a person of the course finds a shared machine until the owner ends it", async ({ page, browser }) => {
  const peer = await (await browser.newContext()).newPage();
  await login(peer, "bob");
  await isLive(peer);
  await expect(withMe(peer)).toHaveCount(0);
  await login(page, "ada", path);
  await page.reload();
  await share(page, "bob", "control");
  await expect(page.getByText("The machine is shared.")).toBeVisible();
  const [entry, ...others] = await shared();
  expect([entry.user, entry.access, others]).toEqual(["bob", "control", []]);
  const time = new Intl.DateTimeFormat("en-GB", { timeZone: "Europe/Rome", timeStyle: "medium" });
  expect(time.format(new Date(entry.until))).toBe("23:59:59");
  const card = withMe(peer).getByRole("article", { name: "Routing exercise" });
  await expect(card).toContainText("Owner: ada");
  await expect(card).toContainText("You can work on it.");
  await section(page).screenshot({ path: "shots/sharing.png" });
  for (const one of [page, peer]) {
    await one.setViewportSize({ width: 320, height: 800 });
    expect(await faults(one)).toEqual([]);
    expect(await one.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(320);
  }
  await page.goto(`${path}?lang=it`);
  await expect(section(page).getByRole("heading", { level: 2 })).toHaveText("Condivisione");
  await expect(section(page)).toContainText("bob: ci lavora.");
  expect(await faults(page)).toEqual([]);
  await page.goto(`${path}?lang=en`);
  await section(page).getByRole("button", { name: "End bob" }).focus();
  await page.keyboard.press("Enter");
  await expect(section(page)).toContainText("This machine is not shared.");
  expect(await shared()).toEqual([]);
  await expect(withMe(peer)).toHaveCount(0);
  await peer.context().close();
});

test("a person outside the course and the owner are refused beside the field", async ({ page }) => {
  await login(page, "ada", path);
  for (const [user, sentence] of [
    ["mia", "No person with this user name is in the course"], // is in another course
    ["nobody", "No person with this user name is in the course"],
    ["ada", "This is you."],
    ["Not a name", "This is not a user name."],
  ]) {
    await share(page, user);
    await expect(page.locator("#share-user")).toHaveAttribute("aria-invalid", "true");
    await expect(page.locator("#share-user-error")).toContainText(sentence);
    await expect(page.locator("#share-user")).toHaveValue(user);
  }
  expect(await shared()).toEqual([]);
  // A teacher of the course sees the machine, and does not share it.
  const teacher = await page.context().browser()!.newPage();
  await login(teacher, "eve", path);
  await expect(teacher.getByRole("heading", { level: 1 })).toHaveText("Lab");
  await expect(section(teacher)).toHaveCount(0);
  await teacher.context().close();
});

test("a peer works in the terminal until the owner ends the share", async ({ page, browser }) => {
  await terminal("lab");
  const peer = await peerOf(page, browser);
  const link = withMe(peer).getByRole("link", { name: /^Terminal/ });
  const [own] = await Promise.all([peer.waitForEvent("popup"), link.click()]);
  await expect(own.locator("#said")).toHaveText("Connected");
  await expect(own.locator(".xterm-rows")).toContainText("$");
  expect(await faults(own)).toEqual([]);
  await expect(page.locator("#connected li")).toHaveText(/^bob is connected \(terminal/);
  await section(page).getByRole("button", { name: "End bob" }).click();
  await expect(own.getByRole("alert")).toContainText("you may no longer open it", { timeout: 10_000 });
  await own.getByRole("button", { name: "Reconnect" }).click();
  await expect(own.getByRole("alert")).toContainText("you may no longer open it");
  await expect(page.locator("#connected")).toHaveCount(0);
  await peer.context().close();
});

test("a peer works on the desktop until the owner ends the share", async ({ page, browser, baseURL }) => {
  await desktop("lab");
  const peer = await peerOf(page, browser);
  const link = withMe(peer).getByRole("link", { name: /^Desktop/ });
  const target = new URL((await link.getAttribute("href"))!);
  expect([target.hostname.split(".").slice(1).join("."), target.port]).toEqual(["machines.localhost", new URL(baseURL!).port]);
  await control("host-of-peer", { label: target.hostname.split(".")[0] });
  const [own] = await Promise.all([peer.waitForEvent("popup"), link.click()]);
  await expect(own.getByRole("heading", { name: "Desktop" })).toBeVisible();
  await expect(own.locator("#screen")).toHaveText("a picture");
  expect(new URL(own.url()).host).toBe(target.host);
  await expect(page.locator("#connected li")).toHaveText(/^bob is connected \(desktop/);
  // The owner has a host of their own. The host of the peer is not for the owner.
  expect((await page.context().request.get(target.href)).status()).toBe(403);
  await section(page).getByRole("button", { name: "End bob" }).click();
  await expect(own.locator("#screen")).toHaveText("closed", { timeout: 10_000 });
  await expect(page.locator("#connected")).toHaveCount(0);
  expect((await own.reload())!.status()).toBe(403);
  await peer.context().close();
});

test("the owner sees at once who is connected", async ({ page }) => {
  await login(page, "ada", path);
  await isLive(page);
  await expect(page.locator("#connected")).toHaveCount(0);
  const now = new Date().toISOString().replace(/\.\d+/, "");
  const entry = (user: string, as: string, name: string) => JSON.stringify({ namespace: "tenant-ada", name, environment: "main", user, as, way: "terminal", since: now, seen: now });
  const data = { "test-1": entry("bob", "peer", "lab"), "test-2": entry("eve", "manager", "lab"), "test-3": entry("max", "peer", "other") };
  await apply({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "crownlabs-peers", namespace }, data });
  await expect(page.locator("#connected li")).toHaveText([/^bob is connected \(terminal/, /^A teacher of the course is connected: eve \(terminal/]);
  expect(await faults(page)).toEqual([]);
  const gone = JSON.stringify({ data: Object.fromEntries(Object.keys(data).map((key) => [key, null])) });
  await kubectl("patch", "configmap", "crownlabs-peers", "-n", namespace, "--type=merge", "-p", gone);
  await expect(page.locator("#connected")).toHaveCount(0);
});
