// Nobody gets more than kubectl gives him with the same name and groups.
import { expect, request, test, type APIRequestContext } from "@playwright/test";
import { clear, control, get, kubectl, login, machine, url } from "./site";

// The kinds of people, with the groups that their tokens have.
const people: [string, string[]][] = [
  ["zoe", []], // without Tenant
  ["joe", []], // in no course
  ["kim", []], // has asked for the course
  ["bob", ["kubernetes:workspace-tea:user"]], // another student
  ["ada", ["kubernetes:workspace-tea:user"]], // the owner
  ["eve", ["kubernetes:workspace-tea:manager"]], // manages the course
  ["root", []], // administers the cluster
];
const victim = "instances.crownlabs.polito.it/victim";

// Whether somebody may do something with the machine.
async function may(verb: string, user: string, groups: string[]): Promise<boolean> {
  const as = ["system:authenticated", ...groups].flatMap((group) => ["--as-group", group]);
  // With "no", kubectl ends with a failure that says nothing on standard error.
  const { output, error } = await control("kubectl", {
    arguments: ["auth", "can-i", verb, victim, "-n", "tenant-ada", "--as", user, ...as],
  });
  expect(output?.trim() === "yes" || error === "", error).toBe(true);
  return output?.trim() === "yes";
}

// Sends a form as the pages do.
async function send(api: APIRequestContext, path: string, form: Record<string, string>): Promise<number> {
  const answer = await api.post(path, { form, maxRedirects: 0, headers: { "sec-fetch-site": "same-origin" } });
  return answer.status();
}

test("each kind of person may what kubectl may, on each route", async ({ browser }) => {
  await clear("ada");
  for (const [user, groups] of people) {
    await machine("ada", "victim", { prettyName: "Victim", running: false });
    const context = await browser.newContext({ baseURL: url, ignoreHTTPSErrors: true });
    const page = await context.newPage();
    await login(page, user);
    const api = context.request;
    const of = async () => get("instances.crownlabs.polito.it", "tenant-ada", "victim");
    const path = "/machines/tenant-ada/victim";
    const uid = (await of()).metadata.uid;
    const read = await api.get(path);
    expect(read.status() === 200, `${user} reads`).toBe(await may("get", user, groups));
    expect((await read.text()).includes("Victim"), `${user} sees`).toBe(await may("get", user, groups));
    const changes = await may("patch", user, groups);
    await send(api, `${path}/rename`, { uid, prettyName: `By ${user}` });
    expect((await of()).spec.prettyName === `By ${user}`, `${user} renames`).toBe(changes);
    await send(api, `${path}/keep`, { uid });
    expect("crownlabs.polito.it/kept-at" in ((await of()).metadata.annotations ?? {}), `${user} keeps`).toBe(changes);
    await send(api, `${path}/start`, { uid });
    expect((await of()).spec.running, `${user} starts`).toBe(changes);
    await send(api, `${path}/stop`, { uid });
    expect((await of()).spec.running, `${user} stops`).toBe(false);
    await send(api, `${path}/expose`, { uid, name: "web", targetPort: "80", port: "0", protocol: "TCP" });
    expect(((await of()).spec.publicExposure?.ports ?? []).length === 1, `${user} exposes`).toBe(changes);
    await send(api, `${path}/delete`, { uid });
    const after = await of();
    const isGone = !after || Boolean(after.metadata.deletionTimestamp);
    expect(isGone, `${user} deletes`).toBe(await may("delete", user, groups));
    await context.close();
    await clear("ada");
  }
});

test("who is not logged in reads nothing and changes nothing", async () => {
  await machine("ada", "victim", { prettyName: "Victim" });
  const api = await request.newContext({ baseURL: url, ignoreHTTPSErrors: true });
  for (const path of ["/", "/machines/tenant-ada/victim", "/courses", "/account"]) {
    const answer = await api.get(path, { maxRedirects: 0 });
    expect(answer.status(), path).toBe(303);
    expect(await answer.text()).toBe("");
  }
  expect((await api.get("/events?on=x")).status()).toBe(401);
  const { uid } = (await get("instances.crownlabs.polito.it", "tenant-ada", "victim")).metadata;
  expect(await send(api, "/machines/tenant-ada/victim/delete", { uid })).toBe(303);
  expect((await get("instances.crownlabs.polito.it", "tenant-ada", "victim")).metadata.deletionTimestamp).toBeUndefined();
  await api.dispose();
});

test("what was sent by another page is refused, whoever is logged in", async ({ page, context }) => {
  await machine("ada", "victim", { prettyName: "Victim" });
  await login(page, "ada");
  const { uid } = (await get("instances.crownlabs.polito.it", "tenant-ada", "victim")).metadata;
  for (const headers of [{ "sec-fetch-site": "cross-site" }, { "sec-fetch-site": "same-site" }, { origin: "https://evil.example.org" }, {}]) {
    const answer = await context.request.post("/machines/tenant-ada/victim/delete", { form: { uid }, headers: headers as any, maxRedirects: 0 });
    expect(answer.status(), JSON.stringify(headers)).toBe(403);
  }
  expect((await get("instances.crownlabs.polito.it", "tenant-ada", "victim")).metadata.deletionTimestamp).toBeUndefined();
});

test("a right that is taken away counts at the next read, on an open page too", async ({ page }) => {
  await clear("ada");
  await machine("ada", "victim", { prettyName: "Victim" });
  await kubectl("create", "rolebinding", "for-joe", "-n", "tenant-ada", "--clusterrole=crownlabs-view-instances", "--user=joe");
  await login(page, "joe", "/machines/tenant-ada/victim");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Victim");
  await kubectl("delete", "rolebinding", "for-joe", "-n", "tenant-ada");
  await kubectl("patch", victim.split("/")[0], "victim", "-n", "tenant-ada", "--type=merge", "-p", '{"spec":{"prettyName":"A secret"}}');
  await expect(page.getByRole("heading", { level: 1 })).not.toHaveText("Victim");
  await expect(page.locator("body")).not.toContainText("A secret");
  expect((await page.goto("/machines/tenant-ada/victim"))!.status()).toBe(403);
});
