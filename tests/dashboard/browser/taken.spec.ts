// Revoked rights take effect soon, also on open pages.
import { expect, test } from "@playwright/test";
import { clear, control, kubectl, login, machine } from "./site";

const instances = "instances.crownlabs.polito.it";
const path = "/machines/tenant-ada/victim";
const rename = (prettyName: string) =>
  kubectl("patch", instances, "victim", "-n", "tenant-ada", "--type=merge", "-p", JSON.stringify({ spec: { prettyName } }));

// Sends a request about the realm to Keycloak, as its administrator.
async function keycloak(method: string, path: string, body?: object): Promise<any> {
  const { output, error } = await control("keycloak", { method, path, body: body ?? null });
  if (error) throw new Error(error);
  return JSON.parse(output!);
}

test("a deleted RoleBinding takes effect at the next read, also on an open page", async ({ page }) => {
  await clear("ada");
  await machine("ada", "victim", { prettyName: "Victim" });
  await kubectl("create", "rolebinding", "for-joe", "-n", "tenant-ada", "--clusterrole=crownlabs-view-instances", "--user=joe");
  await login(page, "joe", path);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Victim");
  await kubectl("delete", "rolebinding", "for-joe", "-n", "tenant-ada");
  await rename("A secret");
  await expect(page.getByRole("heading", { level: 1 })).not.toHaveText("Victim");
  await expect(page.locator("body")).not.toContainText("A secret");
  expect((await page.goto(path))!.status()).toBe(403);
});

test("a role that is removed in Keycloak takes effect within the lifetime of a token, also on an open page", async ({ page, context }) => {
  await clear("ada");
  await machine("ada", "victim", { prettyName: "Victim" });
  const of = async (kind: string, query: string) => (await keycloak("GET", `/${kind}?${query}`))[0];
  const client = await of("clients", "clientId=dashboard");
  const roles = await of("clients", "clientId=client-api-server");
  const eve = await of("users", "username=eve&exact=true");
  const role = await keycloak("GET", `/clients/${roles.id}/roles/workspace-tea:manager`);
  const mapping = `/users/${eve.id}/role-mappings/clients/${roles.id}`;
  const living = (seconds: string) =>
    keycloak("PUT", `/clients/${client.id}`, { ...client, attributes: { ...client.attributes, "access.token.lifespan": seconds } });
  // Shorter than the time that this test waits. Other tokens last five minutes.
  await living("20");
  try {
    await login(page, "eve", path);
    await expect(page.getByRole("heading", { level: 1 })).toHaveText("Victim");
    await keycloak("DELETE", mapping, [role]);
    let count = 0;
    await expect(async () => {
      await rename(`Name ${count++}`);
      await expect(page.getByRole("heading", { level: 1 })).not.toHaveText(/Victim|Name/, { timeout: 1_000 });
    }).toPass({ timeout: 60_000 });
    // Each replica has its own token for the session, which continues.
    const answers = async () => {
      const all = [path, path, path, path, "/"].map((path) => context.request.get(path));
      return (await Promise.all(all)).map((answer) => answer.status());
    };
    await expect.poll(answers).toEqual([403, 403, 403, 403, 200]);
    await rename("A secret");
    await expect(page.locator("body")).not.toContainText("A secret");
  } finally {
    await keycloak("POST", mapping, [role]);
    await living("");
  }
});
