// Each machine has a host and a login of its own. NGINX asks the login of machines about each request, as ingress-nginx does.
import { createHmac } from "node:crypto";
import { connect } from "node:tls";
import { expect, request, test, type BrowserContext, type Page } from "@playwright/test";
import { clear, control, fillIn, get, login, machine, url } from "./site";

// The key of the host names, as in logins.rs.
const key = "0123456789abcdef0123456789abcdef";
const digits = "abcdefghijklmnopqrstuvwxyz234567";
const cookie = "__Host-crownlabs-machine";

// Creates a machine, and returns its origin, as the daemon computes it.
async function origin(user: string, name: string): Promise<string> {
  await machine(user, name);
  const object = () => get("instances.crownlabs.polito.it", `tenant-${user}`, name);
  await expect.poll(async () => (await object()).status?.environments?.length).toBe(1);
  const { metadata, status } = await object();
  const tag = createHmac("sha256", key).update(`${metadata.uid}/${status.environments[0].name}`).digest();
  const bits = [...tag].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  const label = bits.match(/.{5}/g)!.slice(0, 26).map((five) => digits[parseInt(five, 2)]).join("");
  const host = `https://${label}.machines.localhost:${new URL(url).port}`;
  // A machine that the login does not know yet is forbidden.
  await expect.poll(() => statusOf(host)).toEqual([302]);
  return host;
}

// Returns the status codes of a page of a machine. NGINX asks the replicas in turn.
async function statusOf(page: string, headers: Record<string, string> = {}): Promise<number[]> {
  const api = await request.newContext({ ignoreHTTPSErrors: true, extraHTTPHeaders: headers });
  const found = new Set<number>();
  for (let count = 0; count < 4; count++) found.add((await api.get(page, { maxRedirects: 0 })).status());
  await api.dispose();
  return [...found];
}

// Returns the login of a browser at a machine, as a header.
async function header(context: BrowserContext, machine: string): Promise<Record<string, string>> {
  const all = await context.cookies(machine);
  return { cookie: all.map(({ name, value }) => `${name}=${value}`).join("; ") };
}

// Sends a request whose first line names the server, and whose header `Host` can name another one. Returns the status.
function statusOfLine(server: string, host: string, cookie: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port: Number(new URL(url).port), rejectUnauthorized: false });
    let answer = "";
    socket.on("data", (data) => (answer += data));
    socket.on("end", () => resolve(answer.split(" ")[1]));
    socket.on("error", reject);
    socket.write(`GET ${server}/ HTTP/1.1\r\nHost: ${new URL(host).host}\r\nCookie: ${cookie}\r\nConnection: close\r\n\r\n`);
  });
}

const shows = (page: Page, machine: string) => expect(page.getByRole("heading", { name: new URL(machine).hostname })).toBeVisible();

const clearBoth = async () => { for (const user of ["ada", "bob"]) await clear(user); };
test.beforeEach(clearBoth);
test.afterEach(clearBoth);

test("a login leads to the page of the machine, and only to that of the own machine", async ({ page, context }) => {
  const [own, foreign] = [await origin("ada", "own"), await origin("bob", "foreign")];
  await page.goto(`${own}/page?x=1`);
  await fillIn(page, "ada");
  await expect(page).toHaveURL(`${own}/page?x=1`);
  await shows(page, own);
  // The machine gets the cookie of its own host, and no other.
  const seen = await page.locator("pre").textContent();
  expect(seen).toContain(`${cookie}=`);
  expect(seen).not.toContain("__Host-crownlabs=");
  const found = (await context.cookies(own)).find(({ name }) => name === cookie);
  expect(found).toMatchObject({ httpOnly: true, secure: true, sameSite: "Lax", path: "/" });
  expect((await page.goto(foreign))!.status()).toBe(403);
  const known = await header(context, own);
  expect(await statusOf(foreign, known)).toEqual([302]);
  // NGINX serves the host of the first line.
  expect(await statusOfLine(own, own, known.cookie)).toBe("200");
  expect(await statusOfLine(foreign, own, known.cookie)).toBe("403");
  const answer = await page.goto(`${url}/login/machine?rd=${encodeURIComponent("https://evil.example.org/")}`);
  expect([answer!.status(), new URL(page.url()).origin]).toEqual([404, url]);
});

test("a hostile page in a machine reads nothing of another machine or of the dashboard", async ({ page, context }) => {
  const [victim, evil] = [await origin("ada", "victim"), await origin("bob", "evil")];
  // A teacher opens the machines of both students.
  await page.goto(victim);
  await fillIn(page, "eve");
  await shows(page, victim);
  await page.evaluate(() => localStorage.setItem("secret", "of the victim"));
  await page.goto(evil);
  await shows(page, evil);
  const read = await page.evaluate(async ([victim, dashboard]) => {
    const tried = async (what: () => unknown) => {
      try {
        return String(await what());
      } catch {
        return "refused";
      }
    };
    const text = (url: string, mode: RequestMode) => tried(async () => (await fetch(url, { credentials: "include", mode })).text());
    const framed = (url: string) => tried(async () => {
      const frame = document.createElement("iframe");
      frame.src = url;
      document.body.append(frame);
      await new Promise((loaded) => (frame.onload = loaded));
      return frame.contentWindow!.document.body.innerText;
    });
    const socket = (url: string) => new Promise<string>((resolve) => {
      const opened = new WebSocket(url.replace("https", "wss"));
      opened.onopen = () => resolve("open");
      opened.onerror = () => resolve("refused");
    });
    const cookies = ["__Host-crownlabs-machine=evil", "__Host-crownlabs=evil", "crownlabs=evil"];
    for (const set of cookies) document.cookie = `${set}; domain=machines.localhost; path=/; secure`;
    return {
      cookies: document.cookie,
      storage: localStorage.length,
      answers: await Promise.all([text(victim, "cors"), text(victim, "no-cors"), text(`${dashboard}/account`, "cors"), framed(victim), framed(`${dashboard}/`), socket(victim), socket(dashboard)]),
    };
  }, [victim, url]);
  expect(read.cookies).toBe("crownlabs=evil");
  expect(read.storage).toBe(0);
  // The answer of a request without CORS is empty for the page.
  expect(read.answers.map((answer) => answer || "refused")).toEqual(Array(7).fill("refused"));
  // The teacher's cookies have not changed, and the victim's machine gets no request of the hostile page.
  await page.goto(victim);
  await shows(page, victim);
  const teacher = await header(context, victim);
  expect(await statusOf(victim, teacher)).toEqual([200]);
  for (const [name, value] of [["origin", evil], ["origin", url], ["origin", "null"], ["sec-fetch-site", "same-site"]]) {
    const headers = { ...teacher, [name]: value, "sec-fetch-mode": "websocket", "sec-fetch-dest": "websocket" };
    expect(await statusOf(victim, headers), `${name}: ${value}`).toEqual([403]);
  }
});

test("a code is used once, also after a restart, and a logout ends the login", async ({ page, context }) => {
  const own = await origin("ada", "once");
  const codes: string[] = [];
  page.on("request", (request) => {
    if (request.url().startsWith(`${own}/_crownlabs/login?code=`)) codes.push(request.url());
  });
  await login(page, "ada");
  await page.goto(own);
  await shows(page, own);
  expect(codes.length).toBe(1);
  const again = async () => {
    const api = await request.newContext({ ignoreHTTPSErrors: true });
    const answer = await api.get(codes[0], { maxRedirects: 0 });
    await api.dispose();
    return [answer.status(), answer.headers()["set-cookie"]];
  };
  expect(await again()).toEqual([302, undefined]);
  const before = await header(context, own);
  await control("restart-logins");
  expect(await again()).toEqual([302, undefined]);
  await expect.poll(() => statusOf(own, before)).toEqual([200]);
  await page.goto(url);
  await page.getByRole("button", { name: "Log out" }).click();
  await expect.poll(() => statusOf(own, before), { timeout: 10_000 }).toEqual([302]);
  await page.goto(own);
  await expect(page.locator("#password")).toBeVisible();
});

test("a browser without cookies of third parties logs in", async ({ playwright }) => {
  const own = await origin("ada", "third");
  const options = test.info().project.use.launchOptions!;
  const browser = await playwright.chromium.launch({ ...options, args: [...options.args!, "--test-third-party-cookie-phaseout"] });
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  const page = await context.newPage();
  await page.goto(own);
  await fillIn(page, "ada");
  await shows(page, own);
  await context.close();
  await browser.close();
});
