// The progress of a start, its end, and machines that cannot start.
import { expect, test, type Page } from "@playwright/test";
import { faults } from "./axe";
import { clear, get, kubectl, login, machine, template } from "./site";

const namespace = "tenant-ada";
const instances = "instances.crownlabs.polito.it";
const card = (page: Page, title: string) => page.getByRole("article", { name: title, exact: true });
const phase = async (name: string) => (await get(instances, namespace, name))?.status?.phase;

// Runs a test while no node accepts pods.
async function withoutNodes(run: (free: () => Promise<void>) => Promise<void>): Promise<void> {
  const nodes = (await kubectl("get", "nodes", "-o", "name")).trim().split("\n");
  const all = async (what: string) => { for (const node of nodes) await kubectl(what, node); };
  await all("cordon");
  try {
    await run(() => all("uncordon"));
  } finally {
    await all("uncordon");
  }
}

test("a start shows its step, the elapsed and the usual time, and its notice ends with it", async ({ page }) => {
  await clear("ada");
  await machine("ada", "before", { prettyName: "Before" });
  await expect.poll(() => phase("before")).toBe("Ready");
  await login(page, "ada");
  await expect(page).toHaveTitle(/^Ready – My machines – /);
  await withoutNodes(async (free) => {
    await page.getByRole("button", { name: "Start Routing exercise" }).click();
    const notice = page.locator(".notice.done");
    await expect(notice).toBeVisible();
    const started = page.locator("article[id^=machine-desktop]");
    await expect(started.getByText(/^Choosing a server: so far \d+:\d\d, usually \d+:\d\d$/)).toBeVisible();
    await expect(page).toHaveTitle(/^Starting – My machines – /);
    // The script counts on.
    const elapsed = started.locator("[data-elapsed]");
    await expect(elapsed).not.toHaveText((await elapsed.textContent())!);
    await expect(notice).toBeVisible();
    expect(await faults(page)).toEqual([]);
    await free();
    await expect(started.getByText("Ready", { exact: true })).toBeVisible();
    await expect(page).toHaveTitle(/^Ready – My machines – /);
    await expect(notice).toHaveCount(0);
  });
  await clear("ada");
});

test("a hidden page announces a machine that is ready, if the student allows it", async ({ page }) => {
  await page.addInitScript(() => {
    const notes: string[] = [];
    class Recorded {
      static permission = "default";
      static async requestPermission() { Recorded.permission = "granted"; return "granted"; }
      constructor(title: string) { notes.push(title); }
    }
    Object.assign(window, { Notification: Recorded, notes });
  });
  await clear("ada");
  await login(page, "ada");
  await withoutNodes(async (free) => {
    await machine("ada", "slow", { prettyName: "Slow" });
    const notify = page.getByRole("button", { name: "Notify me when it is ready" });
    await notify.click();
    await expect(notify).toBeHidden();
    await page.evaluate(() => Object.defineProperty(document, "hidden", { get: () => true }));
    await free();
    await expect.poll(() => page.evaluate(() => (window as any).notes)).toEqual(["Slow: Ready"]);
  });
  await clear("ada");
});

test("a machine whose Template is deleted stays usable, and says that it cannot be started again", async ({ page }) => {
  await clear("ada");
  await machine("ada", "last", { prettyName: "Last", ...(await template("temporary")) });
  await expect.poll(() => phase("last")).toBe("Ready");
  await login(page, "ada");
  await kubectl("delete", "templates.crownlabs.polito.it", "temporary", "-n", "workspace-tea");
  const last = card(page, "Last");
  await expect(last.getByText(/cannot be started again: save your work/)).toBeVisible();
  await expect(last.getByText("Ready", { exact: true })).toBeVisible();
  await expect(last.getByRole("link", { name: /^Connect/ })).toBeVisible();
  await expect(last.getByRole("button", { name: /^Stop/ })).toHaveCount(0);
  expect(await phase("last")).toBe("Ready");
  await page.goto(`/machines/${namespace}/last`);
  await expect(page.getByRole("heading", { name: "What is wrong" })).toBeVisible();
  await expect(page.getByRole("heading", { name: "Why it is not ready" })).toHaveCount(0);
  expect(await faults(page)).toEqual([]);
  await clear("ada");
});

test("a machine that no node is suitable for says so", async ({ page }) => {
  await clear("ada");
  const nowhere = await template("nowhere", { nodeSelector: {} });
  // The Template leaves the choice of nodes to the machine.
  await machine("ada", "picky", { prettyName: "Picky", nodeSelector: { disk: "none" }, ...nowhere });
  await login(page, "ada");
  const picky = card(page, "Picky");
  await expect(picky.getByText(/No server of the laboratory is suitable/)).toBeVisible();
  await expect(picky).not.toContainText(/laboratory is full|Almost ready/);
  await clear("ada");
  await kubectl("delete", "templates.crownlabs.polito.it", "nowhere", "-n", "workspace-tea");
});
