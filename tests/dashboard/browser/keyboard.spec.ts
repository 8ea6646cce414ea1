// All actions of a student, with the keyboard only.
import { expect, test, type Locator, type Page } from "@playwright/test";
import { clear, get, kubectl, machine, template } from "./site";

// Moves the focus to an element with Tab.
async function reach(page: Page, target: Locator): Promise<void> {
  await expect(target).toBeVisible();
  for (let count = 0; count < 100; count++) {
    if (await target.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`${target} cannot be reached with Tab`);
}

async function press(page: Page, target: Locator, key = "Enter"): Promise<void> {
  await reach(page, target);
  await page.keyboard.press(key);
}

async function type(page: Page, target: Locator, text: string): Promise<void> {
  await reach(page, target);
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.type(text);
}

const button = (page: Page, name: string | RegExp) => page.getByRole("button", { name });
const link = (page: Page, name: string | RegExp) => page.getByRole("link", { name, exact: true });
const summary = (page: Page, text: string) => page.locator("summary", { hasText: text });
const said = (page: Page, text: string) => expect(page.locator(".notice[role=status]").filter({ hasText: text })).toBeVisible();
const instance = (name: string) => get("instances.crownlabs.polito.it", "tenant-ada", name);

// The journeys, each of a user and from a page.
const journeys: [what: string, user: string, path: string, (page: Page) => Promise<void>][] = [
  ["a machine is started and connected to", "ada", "/", async (page) => {
    await page.context().route("https://machines.localhost/**", (route) => route.fulfill({ body: "the desktop" }));
    await page.keyboard.press("Tab");
    await expect(page.getByText("Skip to content")).toBeFocused();
    await page.keyboard.press("Enter");
    await press(page, button(page, "Start Routing exercise"));
    await said(page, "is being created.");
    const opened = page.context().waitForEvent("page");
    await press(page, link(page, /^Connect/));
    await expect((await opened).getByText("the desktop")).toBeVisible();
  }],
  ["a machine is stopped and started", "ada", "/", async (page) => {
    await press(page, button(page, "Stop Mine"), "Space");
    await said(page, "The machine is shutting down.");
    await press(page, button(page, "Start Mine"));
    await said(page, "The machine is starting.");
  }],
  ["a machine is restarted", "ada", "/", async (page) => {
    await press(page, summary(page, "Restart"));
    await press(page, button(page, "Restart Mine"));
    await said(page, "The machine is restarting.");
  }],
  ["a machine is kept", "ada", "/", async (page) => {
    await press(page, button(page, "Keep Unused"));
    await said(page, "The machine counts as in use now.");
  }],
  ["a machine is renamed", "ada", "/", async (page) => {
    await press(page, link(page, "Mine"));
    await type(page, page.locator("#pretty-name"), "Ours");
    await page.keyboard.press("Enter");
    await expect(page.getByRole("heading", { level: 1 })).toHaveText("Ours");
  }],
  ["a machine is deleted", "ada", "/machines/tenant-ada/mine", async (page) => {
    await press(page, summary(page, "Delete"));
    await press(page, button(page, /^Delete with all data/));
    await said(page, "The machine is being deleted.");
    await expect.poll(() => instance("mine")).toBeUndefined();
  }],
  ["a port is made public, and private again", "ada", "/machines/tenant-ada/mine", async (page) => {
    await press(page, summary(page, "Make a port public"));
    await type(page, page.locator("#port-name"), "web");
    await type(page, page.locator("#port-inside"), "8080");
    await press(page, page.locator("#add-port").getByRole("button"));
    await said(page, "The port is being made public.");
    await press(page, button(page, "Remove web"));
    await said(page, "The port is no longer public.");
  }],
  ["an image is made of a machine", "root", "/machines/tenant-eve/off", async (page) => {
    await type(page, page.locator("#image-name"), "my-image");
    await press(page, button(page, "Save as image"));
    await said(page, "The image is being created.");
  }],
  ["a course is joined and left, and a request for another one is withdrawn", "joe", "/", async (page) => {
    await press(page, page.getByRole("main").getByRole("link", { name: "Courses", exact: true }));
    await press(page, button(page, "Join Tea and Routing"));
    await said(page, "You are enrolled in the course.");
    await press(page, button(page, "Ask to join Ask first"));
    await said(page, "You asked to join.");
    await press(page, button(page, "Withdraw Ask first"));
    await said(page, "Your request was withdrawn.");
    await press(page, summary(page, "Leave"));
    await press(page, button(page, "Leave Tea and Routing"));
    await expect.poll(async () => (await get("tenant", "", "joe")).spec.workspaces ?? []).toEqual([]);
  }],
  ["a key is added and removed", "joe", "/", async (page) => {
    await press(page, link(page, "Account"));
    await type(page, page.locator("#key"), "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ5mmjtLqUuVOzAcWLBHQUWp2ZO3cjU5YNDiX25qkrsf joe");
    await press(page, button(page, "Add key"));
    await said(page, "The key was added.");
    await press(page, button(page, "Remove joe"));
    await said(page, "The key was removed.");
  }],
  ["a user logs out", "joe", "/account", async (page) => {
    await press(page, button(page, "Log out"));
    await expect(page.getByRole("heading", { level: 1 })).toHaveText("You are logged out");
    await press(page, link(page, "Log in"));
    await expect(page.locator("#password")).toBeVisible();
  }],
];

let short: object;
test.beforeAll(async () => {
  short = await template("short", { cleanup: { deleteAfterInactivity: "1s" } });
});
test.afterAll(async () => {
  for (const name of ["ada", "eve"]) await clear(name);
  await kubectl("delete", "instancesnapshots.crownlabs.polito.it", "--all", "-n", "tenant-eve");
  await kubectl("delete", "templates.crownlabs.polito.it", "short", "-n", "workspace-tea");
});

for (const [what, user, path, journey] of journeys) {
  test(`with the keyboard only: ${what}`, async ({ page }) => {
    for (const name of ["ada", "eve"]) await clear(name);
    await kubectl("patch", "tenant", "joe", "--type=merge", "-p", '{"spec":{"workspaces":null,"publicKeys":null}}');
    if (user === "ada") {
      await machine("ada", "mine", { prettyName: "Mine" });
      await machine("ada", "unused", { prettyName: "Unused", running: false, ...short });
    }
    if (user === "root") await machine("eve", "off", { running: false });
    await page.goto(path);
    await type(page, page.locator("#username"), user);
    await type(page, page.locator("#password"), process.env.DASHBOARD_PASSWORD!);
    await page.keyboard.press("Enter");
    await expect(page.getByRole("button", { name: "Log out" })).toBeVisible();
    await journey(page);
  });
}
