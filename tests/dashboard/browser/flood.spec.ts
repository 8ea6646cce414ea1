// A session that floods the dashboard with requests and streams. The figures are in benches/figures/dashboard.
import type { IncomingMessage } from "node:http";
import { Agent, request } from "node:https";
import { expect, test, type BrowserContext } from "@playwright/test";
import { clear, kubectl, login, machine, url } from "./site";

// Sends a request with the cookies of a context on a connection of its own, and returns the beginning of the response.
async function opened(context: BrowserContext, path: string): Promise<IncomingMessage> {
  const cookie = (await context.cookies(url)).map(({ name, value }) => `${name}=${value}`).join("; ");
  const agent = new Agent({ rejectUnauthorized: false });
  return new Promise((resolve, reject) => {
    request(`${url}${path}`, { agent, headers: { cookie } }, resolve).on("error", reject).end();
  });
}

test("a session has at most sixteen streams at a replica, and they end with the session", async ({ page, context, browser }) => {
  await clear("ada");
  await clear("bob");
  await machine("bob", "calm", { prettyName: "Calm" });
  await login(page, "ada");
  const other = await browser.newPage();
  await login(other, "bob");
  const path = /\/events\?on=[\w-]+/.exec(await page.content())![0];
  const answers = await Promise.all(Array.from({ length: 60 }, () => opened(context, path)));
  const streams = answers.filter(({ statusCode }) => statusCode === 200);
  const refused = answers.filter(({ statusCode }) => statusCode === 429);
  expect(streams.length + refused.length).toBe(60);
  // There are two replicas.
  expect(streams.length).toBeGreaterThanOrEqual(16);
  expect(streams.length).toBeLessThanOrEqual(32);
  expect(refused[0].headers["retry-after"]).toBe("5");
  // Another user is live.
  await kubectl("patch", "instances.crownlabs.polito.it", "calm", "-n", "tenant-bob", "--type=merge", "-p", '{"spec":{"prettyName":"Still calm"}}');
  await expect(other.getByRole("article", { name: "Still calm" })).toBeVisible();
  const ends = streams.map((stream) => new Promise<void>((resolve) => stream.on("close", resolve).resume()));
  await page.getByRole("button", { name: "Log out" }).click();
  await Promise.all(ends);
  await other.context().close();
});

test("three hundred requests of one session at once are refused in part, and pages of others load", async ({ page, context, browser }) => {
  await clear("ada");
  await login(page, "ada");
  const other = await browser.newPage();
  await login(other, "bob");
  await expect.poll(async () => (await opened(context, "/")).resume().statusCode).toBe(200);
  const flood = Array.from({ length: 300 }, async () => (await opened(context, "/")).resume().statusCode);
  for (let count = 0; count < 5; count++) expect((await other.goto("/", { timeout: 5_000 }))!.status()).toBe(200);
  const codes = await Promise.all(flood);
  expect([...new Set(codes)].sort()).toEqual([200, 429]);
  // The session itself works again soon.
  await expect(async () => expect((await page.goto("/"))!.status()).toBe(200)).toPass({ timeout: 20_000 });
  await other.context().close();
});
