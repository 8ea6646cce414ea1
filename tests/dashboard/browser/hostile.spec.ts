// Attacks by pages of machines, which students can write: at the host of machines, and at a subdomain of the dashboard's host.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, type BrowserContext, type Page } from "@playwright/test";
import { clear, get, login, machine, url } from "./site";

const instances = "instances.crownlabs.polito.it";
const secret = /Victim|ada@example/;
const remove = `${url}/machines/tenant-ada/victim/delete`;
let server: Server;
let hosts: string[];
// The requests of the dashboard's user to machines.
let received: string[] = [];

// Starts a machine: `/?to=…&code=…` redirects to an address with this status code, and `/cookies?…` sets cookies.
test.beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), "machine-"));
  const [key, cert] = ["key", "cert"].map((name) => join(folder, name));
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=machine"], { stdio: "ignore" });
  server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (request, answer) => {
    const { pathname, searchParams } = new URL(request.url!, "https://machine");
    received.push(JSON.stringify([request.headers.cookie, request.headers.referer, request.url]));
    if (pathname === "/cookies") answer.setHeader("set-cookie", searchParams.getAll("cookie"));
    const to = searchParams.get("to");
    if (to) answer.writeHead(Number(searchParams.get("code")), { location: to }).end();
    else answer.setHeader("content-type", "text/html").end("<title>evil</title><h1>a machine</h1>");
  });
  rmSync(folder, { recursive: true });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  hosts = [`https://machines.localhost:${port}`, `https://evil.labs.localhost:${port}`];
});

test.afterAll(() => new Promise((resolve) => server.close(resolve)));

// Logs Ada in with a machine, and opens a second page in the same browser for the page of a machine.
async function begin(page: Page, context: BrowserContext): Promise<{ evil: Page; uid: string }> {
  await clear("ada");
  await machine("ada", "victim", { prettyName: "Victim", running: false });
  await login(page, "ada");
  return { evil: await context.newPage(), uid: (await get(instances, "tenant-ada", "victim")).metadata.uid };
}

// Asserts that the machine has not changed, and that Ada is still logged in.
async function nothingHasChanged(page: Page): Promise<void> {
  const { metadata, spec } = await get(instances, "tenant-ada", "victim");
  expect([metadata.deletionTimestamp, spec.prettyName, spec.running]).toEqual([undefined, "Victim", false]);
  await page.goto("/");
  await expect(page.getByRole("article", { name: "Victim" })).toBeVisible();
}

test("pages of the dashboard and of a machine cannot access the windows of each other", async ({ page, context }) => {
  const { evil } = await begin(page, context);
  for (const host of hosts) {
    await evil.goto(host);
    const [popup] = await Promise.all([
      context.waitForEvent("page"),
      evil.evaluate((url) => {
        (window as any).opened = window.open(`${url}/`, "dashboard");
      }, url),
    ]);
    await expect(popup.getByRole("article", { name: "Victim" })).toBeVisible();
    const seen = await evil.evaluate((host) => {
      const { opened } = window as any;
      const tried = (what: () => unknown) => {
        try {
          return String(what());
        } catch {
          return "refused";
        }
      };
      const read = [() => opened.document.body.innerText, () => opened.location.href, () => opened.closed].map(tried);
      tried(() => opened.postMessage("hello", "*"));
      tried(() => opened.close());
      tried(() => (opened.location = `${host}/navigated`));
      return read;
    }, host);
    // The machine sees the window as closed.
    expect(seen[2]).toBe("true");
    expect(seen.join(" ")).not.toMatch(secret);
    await evil.goto(`${host}/again`);
    expect(await popup.evaluate(() => window.opener)).toBeNull();
    expect(popup.url()).toBe(`${url}/`);
    await popup.close();
  }
  // Connect opens the machine, which does not get the address of the dashboard.
  await context.route("https://machines.localhost/**", (route) => route.fulfill({ contentType: "text/html", body: "a machine" }));
  await page.getByRole("article", { name: "Victim" }).getByRole("button", { name: "Start" }).click();
  const connect = page.getByRole("link", { name: /^Connect/ });
  const [opened] = await Promise.all([context.waitForEvent("page"), connect.click()]);
  await expect(opened.getByText("a machine")).toBeVisible();
  expect(await opened.evaluate(() => [window.opener, document.referrer])).toEqual([null, ""]);
  await clear("ada");
});

test("the page of a machine cannot open a web socket to the dashboard", async ({ page, context }) => {
  const { evil } = await begin(page, context);
  const stream = /\/events\?on=[\w-]+/.exec(await page.content())![0];
  for (const host of hosts) {
    await evil.goto(host);
    const opened = await evil.evaluate(async (addresses) => {
      const ends = addresses.map((address) => new Promise<string>((resolve) => {
        const socket = new WebSocket(address);
        socket.onopen = () => resolve(`${address} is open`);
        socket.onmessage = ({ data }) => resolve(String(data));
        socket.onerror = () => resolve("refused");
      }));
      return Promise.all(ends);
    }, ["/", stream, "/machines/tenant-ada/victim"].map((path) => `${url.replace("https", "wss")}${path}`));
    expect(opened).toEqual(["refused", "refused", "refused"]);
  }
  await nothingHasChanged(page);
});

test("a form that a machine redirects to the dashboard changes nothing", async ({ page, context }) => {
  const { evil, uid } = await begin(page, context);
  for (const host of hosts) {
    for (const [code, method] of [[307, "post"], [308, "post"], [302, "get"], [303, "post"]] as const) {
      const to = `${host}/?code=${code}&to=${encodeURIComponent(remove)}`;
      await evil.goto(host);
      await evil.evaluate(([to, method, uid]) => {
        const form = document.createElement("form");
        Object.assign(form, { method, action: to });
        for (const [name, value] of [...new URL(to).searchParams, ["uid", uid]]) form.append(Object.assign(document.createElement("input"), { name, value }));
        document.body.append(form);
        form.submit();
      }, [to, method, uid]);
      await evil.waitForURL(/\/delete/);
      await evil.waitForLoadState();
      // The request has another method, or does not come from the dashboard.
      await expect(evil.locator("main")).not.toContainText(secret);
      await evil.goto(host);
      const read = await evil.evaluate(async ([to, uid]) => {
        const answer = await fetch(to, { method: "POST", body: new URLSearchParams({ uid }), credentials: "include", mode: "no-cors" });
        return [answer.type, await answer.text()];
      }, [to, uid]).catch(() => []);
      expect(read.filter((text) => text && text !== "opaque")).toEqual([]);
      await nothingHasChanged(page);
    }
  }
});

test("the dashboard redirects only to itself and to the issuer", async ({ page, context }) => {
  await begin(page, context);
  const [host] = hosts;
  const elsewhere = new Set<string>();
  context.on("request", (request) => {
    const { hostname } = new URL(request.url());
    if (!["labs.localhost", "127.0.0.1"].includes(hostname)) elsewhere.add(request.url());
  });
  const plain = host.replace("https:", "");
  const ways = [host, plain, `/\\${plain.slice(2)}`, `\\\\${plain.slice(2)}`, `https:${plain.slice(2)}`, `/\t${plain}`, `\n${plain}`, `///${plain.slice(2)}`,
    `/..${plain}`, `/%2f${plain.slice(2)}`, `/%5c${plain.slice(2)}`, `javascript:location='${host}'`, `@${plain.slice(2)}`, `.${plain.slice(2)}`, `/\r\nlocation: ${host}`];
  for (const way of ways.flatMap((way) => [encodeURIComponent(way), encodeURIComponent(encodeURIComponent(way))])) {
    // Ada is logged in at the issuer, which redirects back immediately.
    await page.goto(`/login?return=${way}`);
    expect(new URL(page.url()).origin, way).toBe(url);
  }
  const queries = ["state=x&code=y", `error=x&error_description=${host}`, `iss=${host}&state=x&code=y`, `return=${plain}`];
  for (const path of [...queries.map((query) => `/callback?${query}`), `/?lang=it&return=${plain}`, `/${plain}/?lang=en`, `/${plain}/..?lang=en`]) {
    await page.goto(`${url}${path}`);
    expect(new URL(page.url()).origin, path).toBe(url);
  }
  // A form returns to its page, whatever the referer says.
  for (const referer of [`${host}/account`, `${host}//${plain}`, `${url}//${plain}`, `${url}/login?return=${plain}`]) {
    const headers = { referer, "sec-fetch-site": "same-origin" };
    const answer = await context.request.post("/account/keys/remove", { form: { entry: "x" }, headers, maxRedirects: 0 });
    expect([answer.status(), answer.headers().location], referer).toEqual([303, "/account"]);
  }
  expect([...elsewhere]).toEqual([]);
});

test("cookies that a machine sets for the parent domain change nothing", async ({ page, context, browser }) => {
  const { evil } = await begin(page, context);
  const own = async () => (await context.cookies(url)).filter(({ name }) => name.startsWith("__Host-"));
  const before = await own();
  const tossed = ["__Host-crownlabs=evil", "__Host-crownlabs-flash=evil", "crownlabs=evil", "__host-crownlabs=evil", "crownlabs-lang=xx", "crownlabs-zone=../../etc/passwd", "=__Host-crownlabs=evil"];
  const set = (cookies: string[]) => {
    const query = cookies.map((cookie) => `cookie=${encodeURIComponent(`${cookie}; Domain=labs.localhost; Path=/; Secure`)}`).join("&");
    return evil.goto(`${hosts[1]}/cookies?${query}`);
  };
  await set(tossed);
  await evil.evaluate((tossed) => tossed.forEach((cookie) => (document.cookie = `${cookie}; domain=labs.localhost; path=/account; secure`)), tossed);
  // The browser accepts them, except for names that only the host itself can set.
  expect((await context.cookies(url)).map(({ name }) => name)).toContain("crownlabs-lang");
  expect(await own()).toEqual(before);
  await nothingHasChanged(page);
  await page.goto("/account");
  await expect(page.locator("body")).toContainText("ada@example.org");

  // Many cookies make the request header too long. Only this user gets an error, until the cookies are removed.
  for (let begin = 0; begin < 40; begin += 4) {
    await set(Array.from({ length: 4 }, (_, number) => `tossed-${begin + number}=${"x".repeat(2_000)}`));
  }
  const answer = await page.goto("/");
  expect(answer!.status()).toBe(400);
  await expect(page.locator("body")).toContainText("Cookie Too Large");
  const other = await browser.newPage();
  await login(other, "bob");
  expect((await other.goto("/"))!.status()).toBe(200);
  await other.context().close();
  await context.clearCookies({ name: /^tossed/ });
  await nothingHasChanged(page);
  // No cookie and no address of the dashboard was sent to a machine.
  expect(received.filter((text) => /__Host-crownlabs=(?!evil)|tenant-ada|events\?on/.test(text.replace(/to=[^"]*/, "")))).toEqual([]);
});
