// Each phase of a machine, held by a real cause.
import { expect, test, type Page } from "@playwright/test";
import { faults } from "./axe";
import { apply, clear, control, get, kubectl, login, machine, template } from "./site";

const namespace = "tenant-ada";
const instances = "instances.crownlabs.polito.it";

// Waits until the page shows and announces the phase of a machine, and asserts that the page is accessible.
async function shows(page: Page, title: string, word: string, phase: string): Promise<void> {
  const card = page.getByRole("article", { name: title, exact: true });
  await expect(card.getByText(word, { exact: true })).toBeVisible();
  await expect.poll(async () => (await get(instances, namespace, title.toLowerCase()))?.status?.phase ?? "").toBe(phase);
  await expect(page.getByRole("main").getByRole("status")).toContainText(`${title}: ${word}.`);
  expect(await faults(page), word).toEqual([]);
}

// Limits the objects in the namespace.
async function limit(hard: Record<string, string>): Promise<void> {
  await apply({ apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "hold", namespace }, spec: { hard } });
  await expect.poll(async () => (await get("resourcequota", namespace, "hold")).status?.hard).toEqual(hard);
}

const patch = (kind: string, name: string, change: object | object[]) =>
  kubectl("patch", kind, name, "-n", namespace, `--type=${Array.isArray(change) ? "json" : "merge"}`, "-p", JSON.stringify(change));

test("an open page shows every phase of a machine", async ({ page }) => {
  await clear("ada");
  await login(page, "ada");
  await limit({ persistentvolumeclaims: "0" });
  await machine("ada", "phased", { prettyName: "Phased" });
  await shows(page, "Phased", "Preparing", "Importing");
  await limit({ pods: "0" });
  await shows(page, "Phased", "Waiting for quota", "ResourceQuotaExceeded");
  const nodes = (await kubectl("get", "nodes", "-o", "name")).trim().split("\n");
  for (const node of nodes) await kubectl("cordon", node);
  await kubectl("delete", "resourcequota", "hold", "-n", namespace);
  await shows(page, "Phased", "Starting", "Starting");
  for (const node of nodes) await kubectl("uncordon", node);
  await shows(page, "Phased", "Ready", "Ready");
  const vmi = (await kubectl("get", "vmi", "-n", namespace, "-o", "jsonpath={.items[0].metadata.name}")).trim();
  const conditions = (await get("vmi", namespace, vmi)).status.conditions;
  const paused = [{ type: "Ready", status: "False", reason: "PausedByUser" }, { type: "Paused", status: "True", reason: "PausedByUser" }];
  await patch("vmi", vmi, { status: { conditions: paused } });
  await shows(page, "Phased", "Almost ready", "Running");
  await patch("vmi", vmi, { status: { conditions } });
  await shows(page, "Phased", "Ready", "Ready");
  // A finalizer holds the machine while it shuts down.
  await patch("vmi", vmi, [{ op: "add", path: "/metadata/finalizers/-", value: "example.org/hold" }]);
  await page.getByRole("button", { name: "Stop Phased" }).click();
  await shows(page, "Phased", "Stopping", "Stopping");
  await patch("vmi", vmi, { metadata: { finalizers: null } });
  await shows(page, "Phased", "Stopped", "Off");
  await patch(instances, "phased", { metadata: { finalizers: ["example.org/hold"] } });
  await kubectl("delete", instances, "phased", "-n", namespace, "--wait=false");
  await shows(page, "Phased", "Deleting", "Off");
  await patch(instances, "phased", { metadata: { finalizers: null } });
  await expect(page.getByRole("article", { name: "Phased", exact: true })).toHaveCount(0);
});

test("failed, blocked and unprocessed machines are shown as such", async ({ page }) => {
  await clear("ada");
  const desktop = (await get("templates.crownlabs.polito.it", "workspace-tea", "desktop")).spec.environmentList[0];
  const cloud = await template("cloud", { environmentList: [{ ...desktop, environmentType: "CloudVM", persistent: false }] });
  const mounts = [{ sharedVolume: { name: "nowhere", namespace: "workspace-tea" }, mountPath: "/data", readOnly: true }];
  const bound = await template("bound", { environmentList: [{ ...desktop, environmentType: "Container", persistent: false, sharedVolumeMounts: mounts }] });
  await machine("ada", "failing", { prettyName: "Failing", ...cloud });
  await machine("ada", "blocked", { prettyName: "Blocked", ...bound });
  await login(page, "ada");
  await shows(page, "Failing", "Failed", "Failed");
  await shows(page, "Blocked", "Cannot be created", "CreationLoopBackoff");
  await page.goto(`/machines/${namespace}/blocked`);
  await expect(page.getByRole("region", { name: "Why it is not ready" })).toContainText("nowhere");
  expect(await faults(page)).toEqual([]);
  await clear("ada");
  for (const each of ["cloud", "bound"]) await kubectl("delete", "templates.crownlabs.polito.it", each, "-n", "workspace-tea");
  // The daemon cannot write the status of this machine.
  const name = "no-status";
  const rule = { apiGroups: ["crownlabs.polito.it"], apiVersions: ["*"], operations: ["UPDATE"], resources: ["instances/status"] };
  const policy = { apiVersion: "admissionregistration.k8s.io/v1", metadata: { name } };
  await apply({ ...policy, kind: "ValidatingAdmissionPolicy", spec: {
    matchConstraints: { resourceRules: [rule] }, validations: [{ expression: "object.metadata.name != 'unseen'" }] } });
  await apply({ ...policy, kind: "ValidatingAdmissionPolicyBinding", spec: { policyName: name, validationActions: ["Deny"] } });
  try {
    await machine("ada", "unseen", { prettyName: "Unseen" });
    const status = ["patch", instances, "unseen", "-n", namespace, "--subresource=status", "--dry-run=server", "--type=merge", "-p", '{"status":{"phase":"Off"}}'];
    await expect.poll(async () => (await control("kubectl", { arguments: status })).error ?? "").toContain(name);
    await clear("ada");
    await machine("ada", "unseen", { prettyName: "Unseen" });
    await page.goto("/");
    await shows(page, "Unseen", "New", "");
  } finally {
    for (const kind of ["validatingadmissionpolicybinding", "validatingadmissionpolicy"]) await kubectl("delete", kind, name);
    await clear("ada");
  }
});
