// The terminal of a machine in the browser: OpenSSH's server behind web SSH, through two replicas of the dashboard.
import { createHash } from "node:crypto";
import { expect, test, type Page } from "@playwright/test";
import { faults } from "./axe";
import { clear, control, kubectl, login, machine, terminal, tried } from "./site";

const path = "/machines/tenant-ada/shell/main/terminal";

// Creates a machine of ada that has a terminal.
async function shell(): Promise<void> {
  await clear("ada");
  await machine("ada", "shell", { prettyName: "Shell" });
  await terminal("shell");
}

const rows = (page: Page) => page.locator(".xterm-rows");

// Waits until the shell waits for a command.
async function opened(page: Page): Promise<void> {
  await expect(page.locator("#said")).toHaveText("Connected");
  await expect(rows(page)).toContainText("$");
}

// Types a command.
async function run(page: Page, command: string): Promise<void> {
  await page.locator(".xterm-helper-textarea").pressSequentially(command);
  await page.keyboard.press("Enter");
}

test.describe.configure({ mode: "serial" });
test.beforeAll(shell);
test.afterAll(() => clear("ada"));

test("a student works in a shell, with the sizes, characters and links of a terminal", async ({ page }) => {
  const faulty: string[] = [];
  await login(page, "ada", "/machines/tenant-ada/shell");
  const [own] = await Promise.all([page.waitForEvent("popup"), page.getByRole("link", { name: "Terminal main", exact: true }).click()]);
  own.on("console", (message) => faulty.push(message.text()));
  await opened(own);
  await expect(own).toHaveTitle(/^Terminal – Shell/);
  await run(own, "echo $((6*7)) caffè 😀 $TERM");
  await expect(rows(own)).toContainText("42 caffè 😀 xterm-256color");
  await own.screenshot({ path: "shots/terminal.png" });
  const size = async () => {
    await run(own, "clear; stty size");
    await expect(rows(own)).toContainText(/^\d+ \d+/);
    return (await rows(own).textContent())!.match(/\d+ \d+/)![0];
  };
  const before = await size();
  await own.setViewportSize({ width: 800, height: 600 });
  await expect.poll(size).not.toBe(before);
  // The colors are in attributes of elements, which the policy of the page allows.
  await run(own, "clear; printf '\\033[38;2;255;100;50mred\\033[0m\\n'");
  await expect(own.locator(".xterm-rows span", { hasText: /^red$/ })).toHaveCSS("color", "rgb(255, 100, 50)");
  expect(await faults(own)).toEqual([]);
  const sizes = () => performance.getEntriesByType("resource").filter(({ name }) => /\/terminal\.(js|css)$/.test(name)).map((one: any) => one.encodedBodySize);
  const bytes = (await own.evaluate(sizes)).reduce((sum: number, one: number) => sum + one, 0);
  expect(bytes).toBeGreaterThan(50_000);
  expect(bytes).toBeLessThan(130_000);
  // Neither the address nor the page has a token: `seen.rs` searches both after all tests.
  expect(await own.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]))).not.toContain("eyJ");
  expect(faulty).toEqual([]);
  await run(own, "exit");
  await expect(own.getByRole("alert")).toHaveText("The connection ended. The shell has ended, or the machine has closed the connection.");
  await own.getByRole("button", { name: "Reconnect" }).click();
  await opened(own);
  await own.close();
});

test("a text of 1 MiB is pasted completely, and once", async ({ page }) => {
  await login(page, "ada", path);
  await opened(page);
  const text = Array.from({ length: 16_384 }, (_, number) => `${String(number).padStart(63, "è0")}\n`.slice(-64)).join("");
  const expected = createHash("sha256").update(text).digest("hex");
  await run(page, "stty -echo; echo rea''dy; sha256sum; stty echo");
  await expect(rows(page)).toContainText("ready");
  await page.locator(".xterm-helper-textarea").evaluate((area, pasted) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", pasted);
    area.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  }, text);
  await page.keyboard.press("Control+KeyD");
  await expect(rows(page)).toContainText(expected.slice(0, 40));
});

test("a hostile machine changes only its own output", async ({ page }) => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await login(page, "ada", path);
  await opened(page);
  await page.evaluate(() => navigator.clipboard.writeText("mine"));
  await page.evaluate(() => Object.assign(window, { opened: [], open: (...all: string[]) => (window as any).opened.push(all) }));
  const escape = (text: string) => text.replaceAll("E", "\\033").replaceAll("B", "\\007");
  const link = (to: string, text: string) => `E]8;;${to}E\\\\${text}E]8;;E\\\\`;
  const links = `${link("javascript:alert(1)", "one")}\\n${link("https://example.org/two", "two")}\\n`;
  // The clipboard, the title, a query of the title, the bell, and a script as text.
  await run(page, `clear; printf '${escape(`E]52;c;aGFja2VkBE]0;Your session is over ${"x".repeat(200)}BE[21tB<img src=x onerror=alert(1)>\\n${links}`)}'; echo do''ne`);
  await expect(rows(page)).toContainText("done");
  await expect(page).toHaveTitle(/^Shell: Your session is over x+$/);
  expect((await page.title()).length).toBeLessThanOrEqual("Shell: ".length + 80);
  await expect(rows(page)).toContainText("<img src=x onerror=alert(1)>");
  await expect(page.locator("main img")).toHaveCount(0);
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe("mine");
  const box = (await page.locator(".xterm-screen").boundingBox())!;
  const height = box.height / (await rows(page).locator("> div").count());
  for (const row of [1, 2]) {
    await page.mouse.move(box.x + 10, box.y + height * (row + 0.5));
    if (row === 2) await expect(page.locator("#screen")).toHaveAttribute("title", "https://example.org/two");
    await page.mouse.down();
    await page.mouse.up();
  }
  await expect.poll(() => page.evaluate(() => (window as any).opened)).toEqual([["https://example.org/two", "_blank", "noopener,noreferrer"]]);
  // Much output: the page keeps 5000 lines, and stays usable.
  await run(page, "seq 300000; echo do''ne");
  await expect(rows(page)).toContainText("300000");
  await run(page, "clear; echo us''able");
  await expect(rows(page)).toContainText("usable");
});

test("typed bytes do not outlive a connection that ends with its replica", async ({ page }) => {
  await login(page, "ada", path);
  await opened(page);
  await run(page, "rm -f /tmp/late-*; echo rea''dy");
  await expect(rows(page)).toContainText("ready");
  for (const number of [0, 1]) await control("restart-replica", { number });
  const alert = page.getByRole("alert");
  await expect(alert).toContainText("The connection ended.");
  await page.locator(".xterm-helper-textarea").focus();
  await page.keyboard.type(`touch /tmp/late-${Date.now()}`);
  await page.keyboard.press("Enter");
  await expect(async () => {
    await page.getByRole("button", { name: "Reconnect" }).click({ timeout: 1_000 });
    await opened(page);
  }).toPass();
  await expect(alert).toBeHidden();
  await run(page, "clear; ls /tmp/late-* 2>/dev/null | wc -l");
  // The rows have no spaces between them.
  await expect(rows(page)).toContainText(/^0\s*\$/);
});

test("a terminal ends with its session, and with its machine", async ({ browser, page }) => {
  await login(page, "ada", path);
  await opened(page);
  const other = await page.context().newPage();
  await other.goto("/");
  await other.getByRole("button", { name: "Log out" }).click();
  await expect(page.getByRole("alert")).toHaveText("The connection ended. Your session is over. Log in again.", { timeout: 10_000 });
  await page.getByRole("button", { name: "Reconnect" }).click();
  await expect(page.locator("#username")).toBeVisible();
  await other.close();
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  const again = await context.newPage();
  await login(again, "ada", path);
  await opened(again);
  const running = (is: boolean) => kubectl("patch", "instances.crownlabs.polito.it", "shell", "-n", "tenant-ada", "--type=merge", "-p", JSON.stringify({ spec: { running: is } }));
  await running(false);
  await again.reload();
  await expect(again.getByText("This machine is not running.")).toBeVisible();
  await expect(again.locator("#screen")).toHaveCount(0);
  await context.close();
  await shell();
});

test("a phone has the missing keys, in both languages and by keyboard", async ({ browser }) => {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, locale: "it-IT", viewport: { width: 320, height: 640 } });
  const page = await context.newPage();
  await login(page, "ada", path);
  await expect(page.locator("#said")).toHaveText("Connesso");
  await expect(rows(page)).toContainText("$");
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(320);
  expect(await faults(page)).toEqual([]);
  await run(page, "cat");
  await page.getByRole("button", { name: "Su", exact: true }).click();
  await expect(rows(page)).toContainText("^[[A");
  const key = page.getByRole("button", { name: "Ctrl", exact: true });
  await key.click();
  await expect(key).toHaveAttribute("aria-pressed", "true");
  await page.locator(".xterm-helper-textarea").pressSequentially("c");
  await expect(rows(page)).toContainText("^C");
  await expect(key).toHaveAttribute("aria-pressed", "false");
  // The tabulator belongs to the shell, and another key leaves the terminal.
  await page.keyboard.press("Tab");
  await expect(page.locator(".xterm-helper-textarea")).toBeFocused();
  await page.keyboard.press("Shift+F6");
  await expect(page.getByRole("button", { name: "Copia", exact: true })).toBeFocused();
  await page.keyboard.press("Tab");
  const reader = page.getByRole("button", { name: "Modalità per lettori di schermo" });
  await expect(reader).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(reader).toHaveAttribute("aria-pressed", "true");
  await page.reload();
  await expect(reader).toHaveAttribute("aria-pressed", "true");
  await expect(page.locator(".xterm-accessibility-tree")).toContainText("$");
  expect(await faults(page)).toEqual([]);
  await context.close();
});

test("managers of the course and administrators get a terminal, and others do not", async ({ browser }) => {
  for (const [user, expected] of [["ada", "open"], ["eve", "open"], ["root", "open"], ["mia", 4403], ["bob", 4403]] as const) {
    const context = await browser.newContext({ ignoreHTTPSErrors: true });
    const page = await context.newPage();
    await login(page, user);
    expect([user, await tried(page, "shell")]).toEqual([user, expected]);
    if (user !== "ada") expect(await tried(page, "missing")).toBe(4403);
    await context.close();
  }
});

test("a page of another origin gets no terminal, and a browser without scripts a command", async ({ page, browser }) => {
  await login(page, "ada");
  const foreign = await page.request.get("/machines/tenant-ada/shell/main/terminal/socket", {
    headers: { connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==", origin: "https://evil.example.org" },
  });
  expect(foreign.status()).toBe(403);
  const context = await browser.newContext({ ignoreHTTPSErrors: true, javaScriptEnabled: false });
  const plain = await context.newPage();
  await login(plain, "ada", path);
  const notice = plain.locator("noscript p");
  await expect(notice).toBeVisible();
  await expect(notice).toHaveText("A terminal needs JavaScript. Without it, use SSH.");
  await expect(plain.locator("code", { hasText: /^ssh -J / })).toBeVisible();
  await context.close();
});
