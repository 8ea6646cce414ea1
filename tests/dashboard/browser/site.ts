// Functions for all tests: logins of users, and actions of an administrator.
import { expect, request, type Browser, type Page } from "@playwright/test";

export const url = process.env.DASHBOARD_URL!;
export const issuer = process.env.DASHBOARD_ISSUER!;
const password = process.env.DASHBOARD_PASSWORD!;

type Answer = { output?: string; error?: string };

// Sends a request to the harness.
export async function control(what: string, more: object = {}): Promise<Answer> {
  const answer = await fetch(process.env.DASHBOARD_CONTROL!, {
    method: "POST",
    body: JSON.stringify({ do: what, ...more }),
  });
  return (await answer.json()) as Answer;
}

// Runs kubectl as an administrator.
export async function kubectl(...args: string[]): Promise<string> {
  const { output, error } = await control("kubectl", { arguments: args });
  if (error) throw new Error(`kubectl ${args.join(" ")}: ${error}`);
  return output ?? "";
}

// Applies an object.
export async function apply(object: object): Promise<void> {
  const { error } = await control("kubectl", { arguments: ["apply", "-f", "-"], input: JSON.stringify(object) });
  if (error) throw new Error(error);
}

// Returns an object, or undefined if it does not exist.
export async function get(kind: string, namespace: string, name: string): Promise<any> {
  const args = ["get", kind, name, "-o", "json", "--ignore-not-found"];
  const text = await kubectl(...args, ...(namespace ? ["-n", namespace] : []));
  return text ? JSON.parse(text) : undefined;
}

// Opens a page of the dashboard, and logs in there.
export async function login(page: Page, user: string, path = "/"): Promise<void> {
  await page.goto(path);
  await fillIn(page, user);
  await expect(page).toHaveURL(new URL(path, url).href);
}

// Fills in the form of the issuer.
export async function fillIn(page: Page, user: string): Promise<void> {
  await page.locator("#username").fill(user);
  await page.locator("#password").fill(password);
  await page.locator("#kc-login").click();
}

// Starts a replica with further keys of the configuration, logs a user in, and returns the page.
export async function at(browser: Browser, keys: object, user: string): Promise<Page> {
  const { output } = await control("start-replica", { keys });
  const context = await browser.newContext({ baseURL: output, ignoreHTTPSErrors: true });
  const page = await context.newPage();
  await page.goto("/");
  await fillIn(page, user);
  return page;
}

// Returns a token of a user for kubectl, like those of the dashboard.
export async function token(user: string): Promise<string> {
  const api = await request.newContext({ ignoreHTTPSErrors: true });
  const form = { grant_type: "password", client_id: "kubectl", scope: "openid", username: user, password };
  const answer = await (await api.post(`${issuer}/protocol/openid-connect/token`, { form })).json();
  await api.dispose();
  return answer.id_token;
}

// Deletes all machines of a user, and waits until the quota counts none. After an outage of the API server, the controller manager
// counts again once it has the lease.
export async function clear(user: string): Promise<void> {
  await kubectl("delete", "instances.crownlabs.polito.it", "--all", "-n", `tenant-${user}`, "--wait=true");
  const used = '{.items[*].status.used.count/instances\\.crownlabs\\.polito\\.it}';
  await expect.poll(() => kubectl("get", "resourcequotas", "-n", `tenant-${user}`, "-o", `jsonpath=${used}`), { timeout: 150_000 }).toMatch(/^0*$/);
}

// Creates a machine of a user, as an administrator.
export async function machine(user: string, name: string, spec: object = {}): Promise<void> {
  await apply({
    apiVersion: "crownlabs.polito.it/v1alpha2",
    kind: "Instance",
    metadata: { name, namespace: `tenant-${user}` },
    spec: {
      "template.crownlabs.polito.it/TemplateRef": { name: "desktop", namespace: "workspace-tea" },
      "tenant.crownlabs.polito.it/TenantRef": { name: user },
      ...spec,
    },
  });
}

// Creates a Template in the course: a copy of the desktop's with changes of the spec.
export async function template(name: string, changes: object = {}): Promise<object> {
  const { apiVersion, kind, spec } = await get("templates.crownlabs.polito.it", "workspace-tea", "desktop");
  await apply({ apiVersion, kind, metadata: { name, namespace: "workspace-tea" }, spec: { ...spec, prettyName: name, ...changes } });
  return { "template.crownlabs.polito.it/TemplateRef": { name, namespace: "workspace-tea" } };
}

// The names of the students of the large course.
export const crowd = (count: number) => Array.from({ length: count }, (_, number) => `seat-${String(number).padStart(3, "0")}`);

// Enrols students in the large course, or makes them candidates, and waits until their namespaces exist.
export async function enrol(names: string[], role = "user"): Promise<void> {
  const items = names.map((name) => ({
    apiVersion: "crownlabs.polito.it/v1alpha2",
    kind: "Tenant",
    metadata: { name, labels: { "crownlabs.polito.it/operator-selector": "dashboard" } },
    spec: { firstName: name, lastName: "Rossi", email: `${name}@example.org`, lastLogin: "2099-01-01T00:00:00Z", workspaces: [{ name: "crowd", role }] },
  }));
  await apply({ apiVersion: "v1", kind: "List", items });
  const ready = "{range .items[*]}{.metadata.name} {.status.personalNamespace.created} {.status.ready}{'\\n'}{end}".replaceAll("'", '"');
  const all = async () => (await kubectl("get", "tenants", "-o", `jsonpath=${ready}`)).split("\n").filter((line) => line.endsWith(" true true")).map((line) => line.split(" ")[0]);
  await expect.poll(async () => { const known = new Set(await all()); return names.filter((name) => !known.has(name)); }, { timeout: 170_000 }).toEqual([]);
}

// The requests of a user that the API server has answered with success, with this verb and kind, without those that only check a change.
export async function sent(user: string, verb: string, resource: string): Promise<any[]> {
  const { output } = await control("audit", { containing: `"username":"${user}"` });
  const all = output!.split("\n").filter(Boolean).map((line) => JSON.parse(line));
  return all.filter((one) => one.user.username === user && one.verb === verb && one.objectRef?.resource === resource && one.responseStatus?.code < 300 && !one.requestURI.includes("dryRun"));
}

// Waits until a machine of ada is ready. Returns its address.
async function address(name: string): Promise<string> {
  const phase = () => kubectl("get", "instances.crownlabs.polito.it", name, "-n", "tenant-ada", "-o", "jsonpath={.status.phase}");
  await expect.poll(phase).toBe("Ready");
  return kubectl("get", "service", `${name}-main`, "-n", "tenant-ada", "-o", "jsonpath={.spec.clusterIP}");
}

// Lets the server of the terminals, or a desktop, answer at the address of a machine of ada.
export const terminal = async (name: string) => control("terminal-at", { address: await address(name) });
export const desktop = async (name: string) => control("desktop-at", { address: await address(name) });

// Opens the socket of a terminal or a console from a page of the dashboard. Returns "open" at the first output of the machine, or the
// code of the end.
export const tried = (page: Page, name: string, way: "terminal" | "console" = "terminal") =>
  page.evaluate(
    ([to, protocols]) =>
      new Promise<string | number>((done) => {
        const socket = new WebSocket(new URL(to, location.href).href.replace("https:", "wss:"), protocols);
        socket.binaryType = "arraybuffer";
        socket.addEventListener("close", ({ code }) => done(code));
        socket.addEventListener("message", ({ data }) => {
          const is = typeof data === "string" ? JSON.parse(data).type === "data" : new TextDecoder().decode(data).startsWith("RFB");
          if (!is) return;
          done("open");
          socket.close();
        });
      }),
    [`/machines/tenant-ada/${name}/main/${way}/socket?takeover=true`, way === "console" ? ["plain.kubevirt.io"] : []] as const,
  );
