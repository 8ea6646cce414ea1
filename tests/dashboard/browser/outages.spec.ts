// Pages during outages and limits of the API server and Keycloak, at a replica with a suitable configuration.
import { expect, test, type Page } from "@playwright/test";
import { faults, says } from "./axe";
import { apply, at, clear, control, fillIn, kubectl, login, machine } from "./site";

// A client with tokens that last twenty seconds.
const brief = { clientId: "brief" };

// Returns the ids of the tokens that the API server accepted from a user.
async function tokens(user: string): Promise<Set<string>> {
  const lines = (await control("audit")).output!.trim().split("\n").map((line) => JSON.parse(line));
  const own = lines.filter((line) => line.user?.username === user && line.responseStatus?.code === 200);
  return new Set(own.flatMap((line) => line.user.extra?.["authentication.kubernetes.io/credential-id"] ?? []));
}

test("pages above the limit of live pages work, and say that they are not live", async ({ browser }) => {
  await clear("ada");
  await machine("ada", "one", { prettyName: "One" });
  const first = await at(browser, { maxPages: 1 }, "ada");
  await first.waitForFunction(() => document.documentElement.dataset.live === "yes");
  const second = await first.context().newPage();
  await second.goto("/");
  await expect(second.getByRole("status").filter({ hasText: "Many people are online" })).toBeVisible();
  expect(await faults(second)).toEqual([]);
  const card = (page: Page) => page.getByRole("article", { name: "One", exact: true });
  await card(second).getByRole("button", { name: "Stop" }).click();
  await expect(card(first).getByText("Stopped", { exact: true })).toBeVisible();
  // The second page shows the change after a reload; the first one is live.
  await second.getByRole("link", { name: "Reload" }).click();
  await expect(card(second).getByText("Stopped", { exact: true })).toBeVisible();
  await card(second).getByRole("button", { name: "Start" }).click();
  await expect(card(first).getByText("Ready", { exact: true })).toBeVisible();
  await first.context().close();
});

test("if the API server does not accept the tokens of the issuer, the page names the issuer", async ({ browser }) => {
  const page = await at(browser, { clientId: "stranger" }, "ada");
  await says(page, "The laboratory does not accept your login");
  await expect(page.getByRole("main")).toContainText(process.env.DASHBOARD_ISSUER!);
  expect((await control("logs")).output).toContain("the API server does not accept the tokens of the issuer");
  await page.context().close();
});

test("an expired token is replaced without an interruption", async ({ browser }) => {
  await clear("ada");
  await machine("ada", "same", { prettyName: "Same" });
  const page = await at(browser, brief, "ada");
  const card = page.getByRole("article", { name: "Same", exact: true });
  await expect(card).toBeVisible();
  const before = await tokens("ada");
  expect(before.size).toBeGreaterThan(0);
  await expect(async () => {
    const answer = await page.goto("/");
    expect(answer!.request().redirectedFrom()).toBeNull();
    expect((await tokens("ada")).size).toBeGreaterThan(before.size);
  }).toPass();
  // The same holds for an open page, and for an action on it.
  const open = await tokens("ada");
  await expect.poll(async () => {
    await kubectl("annotate", "instances.crownlabs.polito.it", "same", "-n", "tenant-ada", "--overwrite", `example.org/at=${Date.now()}`);
    return (await tokens("ada")).size;
  }).toBeGreaterThan(open.size);
  await expect(card).toBeVisible();
  await card.getByRole("button", { name: "Stop" }).click();
  await expect(page.getByText("The machine is shutting down.")).toBeVisible();
  await page.context().close();
});

test("while Keycloak is stopped, pages work until the token expires, and typed text is kept until Keycloak is back", async ({ page, browser }) => {
  await clear("ada");
  await machine("ada", "kept", { prettyName: "Kept" });
  // The usual replicas have tokens that last for minutes; the additional replica has a short-lived token.
  await login(page, "ada");
  for (let count = 0; count < 4; count++) await page.goto("/courses");
  const soon = await at(browser, brief, "ada");
  const card = (page: Page) => page.getByRole("article", { name: "Kept", exact: true });
  await expect(card(soon)).toBeVisible();
  await soon.goto("/machines/tenant-ada/kept");
  await soon.locator("#pretty-name").fill("What I typed");
  await control("stop-keycloak");
  try {
    const other = await soon.context().newPage();
    await expect(async () => expect((await other.goto("/courses"))!.status()).toBe(503)).toPass();
    await other.close();
    await soon.getByRole("button", { name: "Rename" }).click();
    await says(soon, "The login server does not respond");
    await page.goto("/");
    await card(page).getByRole("button", { name: "Stop" }).click();
    await expect(page.getByText("The machine is shutting down.")).toBeVisible();
  } finally {
    await control("start-keycloak");
  }
  // The page loads again without the user.
  await expect(soon.getByRole("alert")).toContainText("nothing was changed");
  await expect(soon.locator("#pretty-name")).toHaveValue("What I typed");
  await soon.getByRole("button", { name: "Rename" }).click();
  await expect(soon.getByRole("heading", { level: 1 })).toHaveText("What I typed");
  await soon.context().close();
});

test("while Keycloak is stopped, a new replica shows an error page instead of the login", async ({ browser }) => {
  // A replica requests the addresses of the issuer when it starts, so Keycloak is stopped before.
  await control("stop-keycloak");
  const { output } = await control("start-replica", { keys: {} });
  const context = await browser.newContext({ baseURL: output, ignoreHTTPSErrors: true });
  const page = await context.newPage();
  try {
    await page.goto("/courses");
    await says(page, "The login server does not respond");
    expect(await faults(page)).toEqual([]);
  } finally {
    await control("start-keycloak");
  }
  // The page loads again without the user.
  await fillIn(page, "ada");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Courses");
  await context.close();
});

test("after too many requests, a new page waits and retries, and an open page keeps its content", async ({ browser }) => {
  await clear("bob");
  await machine("bob", "busy", { prettyName: "Busy" });
  const page = await at(browser, {}, "bob");
  const card = page.getByRole("article", { name: "Busy", exact: true });
  await expect(card.getByText("Ready", { exact: true })).toBeVisible();
  const open = await page.context().newPage();
  await open.goto("/machines/tenant-bob/busy");
  await open.waitForFunction(() => document.documentElement.dataset.live === "yes");
  await open.locator("#pretty-name").fill("half of a na");
  const flowcontrol = { apiVersion: "flowcontrol.apiserver.k8s.io/v1" };
  // The API server rejects all requests of this user.
  const limited = { nominalConcurrencyShares: 0, lendablePercent: 0, borrowingLimitPercent: 0, limitResponse: { type: "Reject" } };
  await apply({ ...flowcontrol, kind: "PriorityLevelConfiguration", metadata: { name: "none" }, spec: { type: "Limited", limited } });
  const rule = { verbs: ["*"], apiGroups: ["*"], resources: ["*"], clusterScope: true, namespaces: ["*"] };
  const rules = [{ subjects: [{ kind: "User", user: { name: "bob" } }], resourceRules: [rule] }];
  const spec = { priorityLevelConfiguration: { name: "none" }, matchingPrecedence: 10, rules };
  await apply({ ...flowcontrol, kind: "FlowSchema", metadata: { name: "none-for-bob" }, spec });
  try {
    await expect(async () => {
      const answer = await page.goto("/");
      expect(answer!.status()).toBe(429);
      expect(answer!.headers()).toMatchObject({ "retry-after": "5", refresh: "5; url=/" });
    }).toPass();
    // The page reloads in the meantime.
    await expect(() => says(page, "Too many requests")).toPass();
    await expect(page.getByRole("main")).toContainText("Wait 5 seconds");
    // The request of the open page is rejected, and the page keeps the typed text.
    const refused = open.waitForResponse((answer) => answer.status() === 429);
    await kubectl("patch", "instances.crownlabs.polito.it", "busy", "-n", "tenant-bob", "--type=merge", "-p", '{"spec":{"prettyName":"Busier"}}');
    await refused;
    await expect(open.getByRole("status").filter({ hasText: "Not live" })).toBeVisible();
    await expect(open.getByRole("heading", { level: 1 })).toHaveText("Busy");
  } finally {
    await kubectl("delete", "flowschema", "none-for-bob");
    await kubectl("delete", "prioritylevelconfiguration", "none");
  }
  // Both pages recover without the user.
  await expect(page.getByRole("article", { name: "Busier", exact: true })).toBeVisible();
  await expect(open.getByRole("heading", { level: 1 })).toHaveText("Busier");
  await expect(open.locator("#pretty-name")).toHaveValue("half of a na");
  await page.context().close();
});
