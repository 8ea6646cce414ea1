// The actions of a student, from the first login on, with and without scripts.
import { expect, test, type Locator, type Page } from "@playwright/test";
import { clear, get, kubectl, login, machine, template } from "./site";

// Returns the card of the machine with this title.
const card = (page: Page, title: string) => page.getByRole("article", { name: title, exact: true });

// Waits until a condition holds on the page, which is live or is reloaded.
async function awaited(page: Page, isLive: boolean, seen: () => Promise<void>): Promise<void> {
  if (isLive) return seen();
  await expect(async () => {
    await page.reload();
    await seen();
  }).toPass({ timeout: 90_000 });
}

const soon = { timeout: 2_000 };

for (const [how, javaScriptEnabled] of [["with scripts", true], ["without scripts", false]] as const) {
  test.describe(how, () => {
    test.use({ javaScriptEnabled });
    const visible = javaScriptEnabled ? {} : soon;

    test("from the login to a desktop in three clicks", async ({ page }) => {
      await clear("ada");
      await login(page, "ada");
      await page.getByRole("button", { name: "Start Routing exercise" }).click();
      const connect = page.getByRole("link", { name: /^Connect/ });
      await awaited(page, javaScriptEnabled, () => expect(connect).toBeVisible(visible));
      await expect(connect).toHaveAttribute("href", /^https:\/\/machines\.localhost\//);
      await expect(connect).toHaveAttribute("rel", "noopener noreferrer");
      await expect(connect).toHaveAttribute("target", "_blank");
    });

    test("a machine is stopped, started, renamed and deleted", async ({ page }) => {
      await clear("ada");
      await machine("ada", "one", { prettyName: "One" });
      await login(page, "ada");
      const one = card(page, "One");
      await awaited(page, javaScriptEnabled, () => expect(one.getByText("Ready", { exact: true })).toBeVisible(visible));
      await one.getByRole("button", { name: "Stop" }).click();
      await expect(page.getByText("The machine is shutting down.")).toBeVisible();
      await awaited(page, javaScriptEnabled, () => expect(one.getByText("Stopped", { exact: true })).toBeVisible(visible));
      expect((await get("instances.crownlabs.polito.it", "tenant-ada", "one")).spec.running).toBe(false);
      await one.getByRole("button", { name: "Start" }).click();
      await awaited(page, javaScriptEnabled, () => expect(one.getByText("Ready", { exact: true })).toBeVisible(visible));
      await one.getByRole("link", { name: "One", exact: true }).click();
      await page.locator("#pretty-name").fill("Two & <three>");
      await page.getByRole("button", { name: "Rename" }).click();
      await expect(page.getByRole("heading", { level: 1 })).toHaveText("Two & <three>");
      await page.locator("summary", { hasText: "Delete" }).click();
      await page.getByRole("button", { name: /Delete|Yes/ }).click();
      await expect(page).toHaveURL(/\/$/);
      await awaited(page, javaScriptEnabled, () => expect(card(page, "Two & <three>")).toHaveCount(0, visible));
    });

    test("a running machine that keeps its disk is restarted", async ({ page }) => {
      await clear("ada");
      const { environmentList } = (await get("templates.crownlabs.polito.it", "workspace-tea", "desktop")).spec;
      const loose = await template("loose", { environmentList: [{ ...environmentList[0], persistent: false }] });
      await machine("ada", "one", { prettyName: "One" });
      await machine("ada", "loose", { prettyName: "Loose", ...loose });
      // The virtual machine that runs for the Instance; a restart replaces it.
      const running = async () => {
        const label = "crownlabs.polito.it/instance=one";
        const { items } = JSON.parse(await kubectl("get", "vmi", "-n", "tenant-ada", "-l", label, "-o", "json"));
        return items[0]?.metadata;
      };
      await login(page, "ada");
      const one = card(page, "One");
      const restart = (of: Locator) => of.locator("summary", { hasText: "Restart" });
      await awaited(page, javaScriptEnabled, () => expect(one.getByText("Ready", { exact: true })).toBeVisible(visible));
      await expect(card(page, "Loose").locator("summary", { hasText: "Delete" })).toBeVisible();
      await expect(restart(card(page, "Loose"))).toHaveCount(0);
      const { uid, creationTimestamp } = await running();
      // Creation times have whole seconds. A request restarts only machines that are older.
      await expect.poll(() => Date.now() - Date.parse(creationTimestamp)).toBeGreaterThan(1_000);
      await restart(one).click();
      await one.getByRole("button", { name: "Restart One" }).click();
      await expect(page.getByText("The machine is restarting.")).toBeVisible();
      await expect.poll(async () => (await running())?.uid ?? uid).not.toBe(uid);
      await awaited(page, javaScriptEnabled, () => expect(one.getByText("Ready", { exact: true })).toBeVisible(visible));
      await one.getByRole("button", { name: "Stop" }).click();
      await awaited(page, javaScriptEnabled, () => expect(one.getByText("Stopped", { exact: true })).toBeVisible(visible));
      await expect(restart(one)).toHaveCount(0);
      await clear("ada");
      await kubectl("delete", "templates.crownlabs.polito.it", "loose", "-n", "workspace-tea");
    });

    test("an unused machine that is kept loses its deadline", async ({ page }) => {
      await clear("ada");
      const short = await template("short", { cleanup: { deleteAfterInactivity: "1s" } });
      await machine("ada", "unused", { prettyName: "Unused", running: false, ...short });
      await login(page, "ada");
      const unused = card(page, "Unused");
      const deadline = unused.getByText(/^Will be deleted in \d days with all its data \(stopped for too long\):$/);
      await awaited(page, javaScriptEnabled, () => expect(deadline).toBeVisible(visible));
      await unused.getByRole("button", { name: "Keep" }).click();
      await expect(page.getByText("The machine counts as in use now.")).toBeVisible();
      const { annotations } = (await get("instances.crownlabs.polito.it", "tenant-ada", "unused")).metadata;
      expect(Date.parse(annotations["crownlabs.polito.it/kept-at"])).toBeLessThanOrEqual(Date.now());
      await awaited(page, javaScriptEnabled, () => expect(deadline).toHaveCount(0, visible));
      await clear("ada");
      await kubectl("delete", "templates.crownlabs.polito.it", "short", "-n", "workspace-tea");
    });

    test("a rejection is explained before and after the attempt", async ({ page }) => {
      await clear("bob");
      await login(page, "bob");
      const offer = page.getByRole("article", { name: "A whole server" });
      await expect(offer.getByText(/more resources than the course grants/)).toBeVisible();
      await expect(offer.getByRole("button", { name: /Start/ })).toBeDisabled();
      // The quota is exhausted while the page is open, so the webhook rejects the form.
      for (const name of ["a", "b", "c"]) await machine("bob", name);
      if (!javaScriptEnabled) {
        await page.getByRole("button", { name: "Start Routing exercise" }).click();
        await expect(page.getByRole("alert")).toContainText(/You have reached the limit of|It would exceed your quota/);
      } else {
        const routing = page.getByRole("article", { name: "Routing exercise" });
        await expect(routing.getByRole("button", { name: /Start/ })).toBeDisabled();
      }
      await clear("bob");
    });

    test("a course is joined, and a request to join is sent and withdrawn", async ({ page }) => {
      await kubectl("patch", "tenant", "joe", "--type=merge", "-p", '{"spec":{"workspaces":null}}');
      await login(page, "joe", "/courses");
      await card(page, "Tea and Routing").or(page.locator("#course-tea")).first().getByRole("button", { name: /Join/ }).click();
      await expect(page.getByRole("status").or(page.getByRole("alert")).first()).toBeVisible();
      await expect.poll(async () => (await get("tenant", "", "joe")).spec.workspaces).toEqual([{ name: "tea", role: "user" }]);
      await page.locator("#course-ask").getByRole("button").click();
      await expect.poll(async () => (await get("tenant", "", "joe")).spec.workspaces).toContainEqual({ name: "ask", role: "candidate" });
      await page.locator("#course-ask").getByRole("button").click();
      await expect.poll(async () => (await get("tenant", "", "joe")).spec.workspaces).toHaveLength(1);
    });

    test("a key is added once, and removed", async ({ page }) => {
      await kubectl("patch", "tenant", "joe", "--type=merge", "-p", '{"spec":{"publicKeys":null}}');
      await login(page, "joe", "/account");
      const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ5mmjtLqUuVOzAcWLBHQUWp2ZO3cjU5YNDiX25qkrsf joe <joe@laptop>";
      const add = async (text: string) => {
        await page.locator("#key").fill(text);
        await page.getByRole("button", { name: /Add/ }).click();
      };
      await add("ssh-ed25519 nonsense");
      await expect(page.getByRole("alert")).toContainText("Not a valid SSH public key");
      await expect(page.locator("#key")).toHaveValue("ssh-ed25519 nonsense");
      await add(key);
      await expect(page.getByText("The key was added.")).toBeVisible();
      await expect(page.getByText("SHA256:")).toBeVisible();
      await add(key);
      await expect(page.getByRole("alert")).toContainText("already exists");
      expect((await get("tenant", "", "joe")).spec.publicKeys).toEqual([key]);
      await page.getByRole("button", { name: /Remove/ }).click();
      await expect(page.getByText("The key was removed.")).toBeVisible();
      expect((await get("tenant", "", "joe")).spec.publicKeys ?? []).toEqual([]);
    });

    test("a port is made public, and private again", async ({ page }) => {
      await clear("ada");
      await machine("ada", "server", { prettyName: "Server" });
      await login(page, "ada", "/machines/tenant-ada/server");
      await page.locator("#add-port summary").click();
      await page.locator("#port-name").fill("web");
      await page.locator("#port-inside").fill("8080");
      await page.locator("#add-port button[type=submit]").click();
      await expect(page.getByText("The port is being made public.")).toBeVisible();
      const ports = async () => (await get("instances.crownlabs.polito.it", "tenant-ada", "server")).spec.publicExposure?.ports ?? [];
      expect(await ports()).toMatchObject([{ name: "web", targetPort: 8080, protocol: "TCP" }]);
      await page.getByRole("button", { name: /Remove/ }).click();
      await expect(page.getByText("The port is no longer public.")).toBeVisible();
      expect(await ports()).toEqual([]);
    });
  });
}

test("a form that is sent twice creates one machine", async ({ page }) => {
  await clear("ada");
  await login(page, "ada");
  const form = page.locator("form[action='/machines']").first();
  const body = await form.evaluate((form: HTMLFormElement) => new URLSearchParams(new FormData(form) as any).toString());
  const answers = await page.evaluate(async (body) => {
    const send = () =>
      fetch("/machines", { method: "POST", body, headers: { "content-type": "application/x-www-form-urlencoded" }, redirect: "manual" });
    return (await Promise.all([send(), send(), send()])).map((answer) => answer.type);
  }, body);
  expect(answers).toEqual(["opaqueredirect", "opaqueredirect", "opaqueredirect"]);
  const all = JSON.parse(await kubectl("get", "instances.crownlabs.polito.it", "-n", "tenant-ada", "-o", "json"));
  expect(all.items).toHaveLength(1);
});

test("a change is shown immediately, and keeps focus and input", async ({ page }) => {
  await clear("ada");
  await machine("ada", "live", { prettyName: "Live" });
  await login(page, "ada", "/machines/tenant-ada/live");
  const name = page.locator("#pretty-name");
  await name.fill("half of a na");
  await page.locator("#add-port summary").click();
  await name.focus();
  await kubectl("patch", "instances.crownlabs.polito.it", "live", "-n", "tenant-ada", "--type=merge", "-p", '{"spec":{"running":false}}');
  await expect(page.getByText("Stopped", { exact: true }).first()).toBeVisible();
  await expect(name).toBeFocused();
  await expect(name).toHaveValue("half of a na");
  await expect(page.locator("#port-name")).toBeVisible();
  // The announcement for screen readers.
  await expect(page.locator("#changes")).toContainText("Live: Stopped");
});
