// Attacks: pages of machines, forged requests, invalid cookies, texts with scripts.
import { expect, request, test } from "@playwright/test";
import { clear, control, get, kubectl, login, machine, url } from "./site";

const scripts = ["<script>window.owned=1</script>", "\"><img src=x onerror=window.owned=1>", "javascript:window.owned=1"];

test("texts of users are shown as plain text", async ({ page }) => {
  await clear("ada");
  for (const [number, text] of scripts.entries()) await machine("ada", `text-${number}`, { prettyName: text });
  await login(page, "ada");
  for (const text of scripts) await expect(page.getByRole("link", { name: text, exact: true })).toBeVisible();
  for (const number of scripts.keys()) await page.goto(`/machines/tenant-ada/text-${number}`);
  expect(await page.evaluate(() => (window as any).owned)).toBeUndefined();
});

test("the security policy allows only the dashboard's own content", async ({ page }) => {
  await login(page, "ada");
  const answer = await page.goto("/");
  const headers = answer!.headers();
  expect(headers["content-security-policy"]).toMatch(/^default-src 'none'; script-src 'nonce-[\w-]+'; style-src 'self'/);
  expect(headers["content-security-policy"]).not.toContain("unsafe");
  expect(headers).toMatchObject({
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
  });
  // Injected markup has no effect.
  await page.evaluate(() => {
    const main = document.querySelector("main")!;
    for (const inner of ["<img src=x onerror='window.owned=1'>", "<a hx-get='/account' hx-trigger='load'>x</a>"]) {
      try {
        main.insertAdjacentHTML("beforeend", inner);
      } catch {
        // Trusted types reject it.
      }
    }
  });
  expect(await page.evaluate(() => (window as any).owned)).toBeUndefined();
});

test("a page of another host can read and change nothing", async ({ page, context }) => {
  await clear("ada");
  await machine("ada", "victim", { prettyName: "Victim" });
  await login(page, "ada");
  const uid = (await get("instances.crownlabs.polito.it", "tenant-ada", "victim")).metadata.uid;
  const evil = await context.newPage();
  const hosts = ["https://machines.localhost", "https://evil.labs.localhost"];
  for (const host of hosts) {
    await evil.route(`${host}/**`, (route) =>
      route.fulfill({ contentType: "text/html", body: "<title>evil</title><h1>a machine</h1>" }));
    await evil.goto(`${host}/`);
    const read = await evil.evaluate(async (url) => {
      const attempts: string[] = [];
      const tried = async (name: string, what: () => Promise<unknown>) => {
        try {
          attempts.push(`${name}: ${await what()}`);
        } catch {
          // The attempt is rejected.
        }
      };
      await tried("fetch", async () => (await fetch(`${url}/`, { credentials: "include" })).text());
      await tried("blind", async () => (await fetch(`${url}/account`, { credentials: "include", mode: "no-cors" })).text());
      await tried("frame", () => new Promise((resolve) => {
        const frame = document.createElement("iframe");
        frame.src = `${url}/`;
        frame.onload = () => {
          try {
            resolve(frame.contentDocument?.body?.innerText || "");
          } catch {
            resolve("");
          }
        };
        document.body.append(frame);
      }));
      document.cookie = "__Host-crownlabs=evil; path=/; domain=labs.localhost; secure";
      document.cookie = "crownlabs-lang=xx; path=/; domain=labs.localhost; secure";
      return attempts.filter((attempt) => /Victim|ada@example/.test(attempt));
    }, url);
    expect(read).toEqual([]);
    // A form of the attacker, sent with the user's cookies if the browser adds them.
    await evil.setContent(
      `<form id=f method=post action="${url}/machines/tenant-ada/victim/delete"><input name=uid value="${uid}"></form>`);
    await Promise.all([
      evil.waitForURL(/\/delete$/).catch(() => undefined),
      evil.evaluate(() => (document.getElementById("f") as HTMLFormElement).submit()),
    ]);
    await evil.waitForLoadState();
  }
  const after = await get("instances.crownlabs.polito.it", "tenant-ada", "victim");
  expect(after.metadata.deletionTimestamp).toBeUndefined();
  await page.goto("/");
  await expect(page.getByRole("article", { name: "Victim" })).toBeVisible();
});

test("an invalid cookie leads to the login", async ({ page, context }) => {
  await login(page, "ada");
  const cookie = (await context.cookies()).find(({ name }) => name === "__Host-crownlabs")!;
  expect(cookie).toMatchObject({ httpOnly: true, secure: true, sameSite: "Lax", path: "/" });
  const stranger = await request.newContext({ baseURL: url, ignoreHTTPSErrors: true });
  for (const value of ["", "x", cookie.value.slice(0, -3), `${cookie.value}AA`, "A".repeat(3_900), "%00%ff"]) {
    const answer = await stranger.get("/", { headers: { cookie: `__Host-crownlabs=${value}` }, maxRedirects: 0 });
    expect(answer.status(), value).toBe(303);
  }
  await stranger.dispose();
});

test("no token appears in a page, in browser storage or in a log", async ({ page, context }) => {
  await login(page, "ada");
  const seen: string[] = [];
  page.on("response", async (answer) => seen.push(answer.url(), await answer.text().catch(() => "")));
  for (const path of ["/", "/courses", "/account"]) await page.goto(path);
  // The cookies of the issuer are not searched.
  const { cookies, origins } = await context.storageState();
  seen.push(await page.content(), JSON.stringify([cookies.filter(({ domain }) => domain === "labs.localhost"), origins]));
  seen.push((await control("logs")).output!);
  const token = /ey[\w-]{10,}\.ey[\w-]{10,}\./;
  expect(seen.filter((text) => token.test(text)).map((text) => text.slice(0, 200))).toEqual([]);
});

test("objects of users are requested as these users", async ({ page }) => {
  await login(page, "ada");
  for (const path of ["/", "/courses", "/account"]) await page.goto(path);
  const lines = (await control("audit")).output!.trim().split("\n").map((line) => JSON.parse(line));
  const own = lines.filter(({ user }) => user?.username === "system:serviceaccount:crownlabs-system:crownlabs-dashboard");
  const done = new Set(own.map(({ verb, objectRef }) => `${verb} ${objectRef?.resource}`));
  const known = ["configmaps", "instances", "sharedvolumes", "templates", "tenants", "workspaces", "announcements"].flatMap((kind) => [`list ${kind}`, `watch ${kind}`]);
  // Consoles of managers and administrators are recorded.
  known.push("patch configmaps");
  expect([...done].filter((each) => !known.includes(each) && !/undefined|customresourcedefinitions/.test(each))).toEqual([]);
  // The record of open connections.
  const maps = own.filter(({ objectRef }) => objectRef?.resource === "configmaps").map(({ objectRef }) => objectRef.name);
  expect(new Set(maps)).toEqual(new Set(["crownlabs-peers"]));
  expect(lines.some(({ user, verb, objectRef }) => user?.username === "ada" && verb === "list" && objectRef?.resource === "instances")).toBe(true);
});
