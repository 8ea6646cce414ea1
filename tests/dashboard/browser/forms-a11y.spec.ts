// Forms for screen readers and for interrupted users: errors, focus, drafts, and questions.
import { expect, test } from "@playwright/test";
import { faults } from "./axe";
import { clear, get, kubectl, login, machine } from "./site";

for (const [how, javaScriptEnabled] of [["with scripts", true], ["without scripts", false]] as const) {
  test.describe(how, () => {
    test.use({ javaScriptEnabled });

    test("an error has the focus, is in the title and at its field, and survives a reload", async ({ page }) => {
      await login(page, "joe", "/account");
      await expect(page).toHaveTitle(/^Account/);
      await page.locator("#key").fill("ssh-rsa nonsense");
      await page.getByRole("button", { name: "Add key" }).click();
      for (const isReloaded of [false, true]) {
        if (isReloaded) await page.reload();
        await expect(page).toHaveTitle(/^Error: Account/);
        await expect(page.getByRole("alert")).toBeFocused();
        await expect(page.locator("#key")).toHaveValue("ssh-rsa nonsense");
        await expect(page.locator("#key")).toHaveAttribute("aria-invalid", "true");
        await expect(page.locator("#key")).toHaveAccessibleDescription(/Not a valid SSH public key/);
        if (javaScriptEnabled) expect(await faults(page)).toEqual([]);
      }
      await page.getByRole("link", { name: "Go to the field" }).click();
      await expect(page.locator("#key")).toBeFocused();
      // The error ends when another page is opened.
      await page.goto("/courses");
      await page.goto("/account");
      await expect(page).toHaveTitle(/^Account/);
      await expect(page.getByRole("alert")).toHaveCount(0);
      await expect(page.locator("#key")).toHaveValue("");
    });
  });
}

test("text that is not sent survives a reload and Back, and a key is never stored", async ({ page }) => {
  await clear("ada");
  await machine("ada", "draft", { prettyName: "Draft" });
  await login(page, "ada", "/machines/tenant-ada/draft");
  const name = page.locator("#pretty-name");
  await name.fill("Half of a name");
  await page.reload();
  await expect(name).toHaveValue("Half of a name");
  await page.goto("/account");
  await page.locator("#key").fill("ssh-ed25519 half of a key");
  expect(await page.evaluate(() => JSON.stringify(sessionStorage))).not.toContain("half of a key");
  await page.goBack();
  await expect(name).toHaveValue("Half of a name");
  await page.getByRole("button", { name: "Rename" }).click();
  await expect(page.getByText("The machine was renamed.")).toBeVisible();
  expect(await page.evaluate(() => JSON.stringify(sessionStorage))).not.toContain("Half of a name");
  await clear("ada");
});

test("a question is cancelled without moving the page, by its button and with Escape", async ({ page }) => {
  await clear("ada");
  await machine("ada", "kept", { prettyName: "Kept", running: false });
  await page.setViewportSize({ width: 320, height: 480 });
  await login(page, "ada", "/machines/tenant-ada/kept");
  // The page does not change any more.
  await expect(page.locator(".badge").first()).toHaveText("Stopped");
  const question = page.locator("summary", { hasText: "Delete" });
  await question.scrollIntoViewIfNeeded();
  const top = () => question.evaluate((element) => element.getBoundingClientRect().top + window.scrollY);
  const before = [await top(), await page.evaluate(() => window.scrollY)];
  for (const cancel of ["button", "key"]) {
    await question.click();
    const answer = page.getByRole("button", { name: /^Delete with all data/ });
    await expect(answer).toBeInViewport();
    expect([await top(), await page.evaluate(() => window.scrollY)]).toEqual(before);
    if (cancel === "button") await page.getByRole("link", { name: "Cancel" }).click();
    else await page.keyboard.press("Escape");
    await expect(answer).toBeHidden();
    await expect(question).toBeFocused();
    expect(await page.evaluate(() => window.scrollY)).toBe(before[1]);
  }
  expect(await get("instances.crownlabs.polito.it", "tenant-ada", "kept")).toBeDefined();
  await clear("ada");
});

test("the focus stays in its card when an update removes the button that has it", async ({ page }) => {
  await clear("ada");
  for (const name of ["one", "two"]) await machine("ada", name, { prettyName: name });
  await login(page, "ada");
  await page.waitForFunction(() => document.documentElement.dataset.live === "yes");
  const card = page.getByRole("article", { name: "two", exact: true });
  await card.getByRole("button", { name: "Stop" }).focus();
  await kubectl("patch", "instances.crownlabs.polito.it", "two", "-n", "tenant-ada", "--type=merge", "-p", '{"spec":{"running":false}}');
  await expect(card.getByRole("button", { name: "Stop" })).toHaveCount(0);
  await expect(card.locator(":focus")).toHaveCount(1);
  await clear("ada");
});
