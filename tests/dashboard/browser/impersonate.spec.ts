// Impersonated users: the API server does not accept the tokens of their client.
import { expect, test } from "@playwright/test";
import { at, clear, control, get, kubectl, machine, terminal, tried } from "./site";

const keys = { clientId: "stranger", identity: "impersonate" };
const account = "system:serviceaccount:crownlabs-system:crownlabs-dashboard-impersonates";
const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ5mmjtLqUuVOzAcWLBHQUWp2ZO3cjU5YNDiX25qkrsf joe@laptop";

test("users are impersonated only for the requests of pages, with the rights of each user", async ({ browser }) => {
  await clear("ada");
  await kubectl("patch", "tenant", "joe", "--type=merge", "-p", '{"spec":{"workspaces":null,"publicKeys":null,"lastLogin":null}}');
  // A new user: the time of the login is written, and the user joins a course and adds a key.
  const joe = await at(browser, keys, "joe");
  await joe.goto("/courses");
  await joe.locator("#course-tea").getByRole("button", { name: /Join/ }).click();
  await expect.poll(async () => (await get("tenant", "", "joe")).spec.workspaces).toEqual([{ name: "tea", role: "user" }]);
  expect((await get("tenant", "", "joe")).spec.lastLogin).toBeTruthy();
  await joe.goto("/account");
  await joe.locator("#key").fill(key);
  await joe.getByRole("button", { name: /Add/ }).click();
  await expect(joe.getByText("The key was added.")).toBeVisible();
  expect((await joe.goto("/machines/tenant-ada/nothing"))!.status()).toBe(403);
  await joe.context().close();
  // A student: all actions on a machine, from its creation to its deletion.
  const page = await at(browser, keys, "ada");
  await page.getByRole("button", { name: "Start Routing exercise" }).click();
  await expect(page.getByRole("link", { name: /^Connect/ })).toBeVisible();
  await page.getByRole("article").first().getByRole("heading").getByRole("link").click();
  await page.locator("#pretty-name").fill("By her name");
  await page.getByRole("button", { name: "Rename" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("By her name");
  // The stand-in of KubeVirt has no screen of this machine.
  expect(await tried(page, new URL(page.url()).pathname.split("/").pop()!, "console")).toBe(4404);
  // While the machine starts again, its page reads the warnings about its objects.
  await page.getByRole("button", { name: "Stop" }).click();
  await expect(page.getByText("Stopped", { exact: true }).first()).toBeVisible();
  await page.getByRole("button", { name: "Start" }).click();
  await expect(page.getByText("Ready", { exact: true }).first()).toBeVisible();
  await page.locator("summary", { hasText: "Delete" }).click();
  await page.getByRole("button", { name: /Delete|Yes/ }).click();
  await expect(page).toHaveURL(/\/$/);
  await page.context().close();
  // A manager: the rights come from a group.
  await machine("ada", "seen", { prettyName: "Seen" });
  const eve = await at(browser, keys, "eve");
  expect((await eve.goto("/machines/tenant-ada/seen"))!.status()).toBe(200);
  await expect(eve.getByRole("heading", { level: 1 })).toHaveText("Seen");
  // Web SSH sends its requests with the account of the dashboard, as the user.
  await terminal("seen");
  expect(await tried(eve, "seen")).toBe("open");
  await eve.context().close();
  // An administrator: may read the events about a machine's objects, and create an image.
  const nodes = (await kubectl("get", "nodes", "-o", "name")).trim().split("\n");
  for (const node of nodes) await kubectl("cordon", node);
  await machine("ada", "waits", { prettyName: "Waits" });
  const root = await at(browser, keys, "root");
  await root.goto("/machines/tenant-ada/waits");
  await expect(root.getByRole("heading", { level: 1 })).toHaveText("Waits");
  // Web SSH asks for the right of administrators before it finds out that the machine does not run.
  expect(await tried(root, "waits")).toBe(4403);
  for (const node of nodes) await kubectl("uncordon", node);
  const { uid } = (await get("instances.crownlabs.polito.it", "tenant-ada", "waits")).metadata;
  const form = { uid, name: "image", imageName: "image", environment: "main" };
  const headers = { "sec-fetch-site": "same-origin" };
  await root.context().request.post("/machines/tenant-ada/waits/save", { form, maxRedirects: 0, headers });
  expect(await get("instancesnapshots.crownlabs.polito.it", "tenant-ada", "image")).toBeTruthy();
  await kubectl("delete", "instancesnapshots.crownlabs.polito.it", "image", "-n", "tenant-ada");
  // The pages of administrators: all reads, and a course and an announcement from their creation to their deletion.
  for (const path of ["/admin/people", "/admin/cluster", "/admin", "/admin/courses"]) expect((await root.goto(path))!.status()).toBe(200);
  await root.locator("#course-name").fill("imp");
  await root.locator("#course-title").fill("Impersonated");
  await root.getByRole("button", { name: "Create the course" }).click();
  await root.getByRole("link", { name: "Impersonated" }).click();
  await root.locator("#course-title").fill("Changed");
  await root.getByRole("button", { name: "Save" }).click();
  await expect(root.getByText("The course was changed.")).toBeVisible();
  await root.locator("summary", { hasText: "Delete the course" }).click();
  await root.getByRole("button", { name: "Delete the course for ever" }).click();
  await expect(root.getByText("The course is being deleted.")).toBeVisible();
  await root.goto("/courses/tea/announcements");
  await root.locator("#announcement-title").fill("Impersonated");
  await root.locator("#announcement-text").fill("A text");
  await root.getByRole("button", { name: "Publish" }).click();
  await expect(root.getByText("The announcement was published.")).toBeVisible();
  await root.locator("summary", { hasText: "Withdraw" }).click();
  await root.getByRole("button", { name: "Withdraw" }).click();
  await expect(root.getByText("The announcement was withdrawn.")).toBeVisible();
  // A Template of a course, from its creation to its deletion.
  await root.goto("/courses/tea/templates/new?from=workspace-tea/desktop");
  await root.locator('[id="field-name"]').fill("imp");
  await root.getByRole("button", { name: "Create template" }).click();
  await expect(root.getByText("The template was created.")).toBeVisible();
  await root.locator("#template-imp").getByRole("link", { name: "Edit Routing exercise" }).click();
  await root.locator('[id="field-prettyName"]').fill("Impersonated");
  await root.getByRole("button", { name: "Save template" }).click();
  await expect(root.getByText("The template was saved.")).toBeVisible();
  await root.locator("summary", { hasText: "Delete" }).click();
  await root.getByRole("button", { name: "Delete the template" }).click();
  await expect(root.getByText("The template was deleted.")).toBeVisible();
  // A shared volume, whose form is sent twice, and a new person.
  const send = async (path: string, form: Record<string, string>) => {
    const answer = await root.request.post(new URL(path, root.url()).href, { form, maxRedirects: 0, headers: { "sec-fetch-site": "same-origin" } });
    expect(answer.status(), path).toBe(303);
  };
  const volume = { namespace: "workspace-tea", name: "imp" };
  for (const _ of ["once", "again"]) await send("/courses/tea/volumes/create", { ...volume, prettyName: "Impersonated", size: "1" });
  const { metadata } = await get("sharedvolumes.crownlabs.polito.it", "workspace-tea", "imp");
  await send("/courses/tea/volumes/delete", { ...volume, uid: metadata.uid });
  await send("/courses/tea/people/add", { user: "imp", role: "user", first: "Imp", last: "Rossi", email: "imp@example.org" });
  await kubectl("delete", "tenant", "imp", "--wait=false");
  await root.context().close();

  // As the users, the account has used exactly its rights. As itself, it has only reviewed access and requested metadata.
  const lines = (await control("audit")).output!.trim().split("\n").map((line) => JSON.parse(line));
  const own = lines.filter((line) => line.user?.username === account && line.responseStatus?.code !== 403);
  const what = (line: any) => [`${line.verb} ${line.objectRef.resource}`, line.objectRef.subresource].filter(Boolean).join("/");
  const impersonated = own.filter((line) => line.impersonatedUser && !line.impersonatedUser.username.includes(":"));
  expect(new Set(impersonated.map((line) => line.impersonatedUser.username))).toEqual(new Set(["ada", "eve", "joe", "root"]));
  const role = JSON.parse(await kubectl("get", "clusterrole", "crownlabs-dashboard-impersonates", "-o", "json"));
  const verb = (text: string) => text.replace("impersonate-on:user-info:", "");
  const granted = role.rules
    .filter(({ verbs }: any) => !verbs.includes("impersonate:user-info"))
    .flatMap(({ verbs, resources }: any) => resources.flatMap((resource: string) => verbs.map((each: string) => `${verb(each)} ${resource}`)));
  const sent = lines.filter((line) => line.user?.username === account && line.impersonatedUser);
  expect([...new Set(sent.map(what))].sort()).toEqual(granted.sort());
  const reviews = ["create selfsubjectaccessreviews", "create selfsubjectrulesreviews"];
  const kinds = ["configmaps", "instances", "sharedvolumes", "templates", "tenants", "workspaces", "announcements"].flatMap((kind) => [`list ${kind}`, `watch ${kind}`]);
  const others = own.filter((line) => !line.impersonatedUser && line.objectRef);
  expect([...kinds, ...reviews, "patch configmaps"]).toEqual(expect.arrayContaining([...new Set(others.map(what))]));
  await clear("ada");
});
