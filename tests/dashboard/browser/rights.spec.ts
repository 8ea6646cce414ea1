// The dashboard gives no more rights than kubectl with the same token: each route and each kind of user is compared to kubectl.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { expect, request, test, type APIRequestContext } from "@playwright/test";
import { changing as ofTeachers, open, pages, teaching } from "./routes";
import { apply, clear, control, get, kubectl, login, machine, token, url } from "./site";

// The kinds of users, with the groups in their tokens, and whether they have a Tenant.
const people: [string, string[], boolean][] = [
  ["zoe", [], false], // without Tenant
  ["joe", [], true], // in no course
  ["kim", [], true], // asked to join the course
  ["bob", ["kubernetes:workspace-tea:user"], true], // another student
  ["ada", ["kubernetes:workspace-tea:user"], true], // the owner
  ["eve", ["kubernetes:workspace-tea:manager"], true], // manages the course
  ["mia", ["kubernetes:workspace-ask:manager"], true], // manages another course
  ["root", ["kubernetes:labs:admin"], false], // administers the cluster
];
const instances = "instances.crownlabs.polito.it";
const snapshots = "instancesnapshots.crownlabs.polito.it";
const path = "/machines/tenant-ada/victim";
const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE9cB4iV7sYcyDnYcLxXa0tFvMZ2yfaSFTzTm5f2k9rW a key of rights";
const courses = { "rights-open": "immediate", "rights-door": "withApproval", "rights-shut": undefined };

const victim = () => get(instances, "tenant-ada", "victim");
const tenant = (user: string) => get("tenants", "", user);

// Whether a command of kubectl with this token succeeds. With --dry-run=server, the server makes all checks and changes nothing.
async function does(token: string, args: string[], object?: object): Promise<boolean> {
  const { error } = await control("kubectl", { token, arguments: args, input: object ? JSON.stringify(object) : "" });
  expect(error ?? "", args.join(" ")).not.toMatch(/Unauthorized|provide credentials|unknown flag|connection refused/);
  return error === undefined;
}

const dry = "--dry-run=server";
const patching = (kind: string, name: string, patch: object) => ["patch", kind, name, "--type=merge", "-p", JSON.stringify(patch), dry];

// Sends a form as the pages do.
async function send(api: APIRequestContext, path: string, form: Record<string, string>): Promise<number> {
  const answer = await api.post(path, { form, maxRedirects: 0, headers: { "sec-fetch-site": "same-origin" } });
  return answer.status();
}

// A machine of the desktop's Template.
const desktop = (user: string, name: string) => ({
  apiVersion: "crownlabs.polito.it/v1alpha2",
  kind: "Instance",
  metadata: { name, namespace: `tenant-${user}` },
  spec: {
    "template.crownlabs.polito.it/TemplateRef": { name: "desktop", namespace: "workspace-tea" },
    "tenant.crownlabs.polito.it/TenantRef": { name: user },
    running: true,
  },
});

// An attempt: the preparation by an administrator, the form, the same command of kubectl, and whether the change was made.
type Attempt = {
  before?: () => Promise<unknown>;
  form: Record<string, string>;
  same: (token: string) => Promise<boolean>;
  done: () => Promise<boolean>;
};

// An attempt to change the machine of Ada.
function change(is: object, form: Record<string, string>, patch: object, done: (machine: any) => boolean): Attempt {
  return {
    before: () => kubectl("patch", instances, "victim", "-n", "tenant-ada", "--type=merge", "-p", JSON.stringify(is)),
    form,
    same: (token) => does(token, [...patching(instances, "victim", patch), "-n", "tenant-ada"]),
    done: async () => done(await victim()),
  };
}

// An attempt to change the user's own Tenant, with the list before and after.
function own(user: string, hasTenant: boolean, list: string, is: any[], becomes: any[], form: Record<string, string> = {}): Attempt {
  const patch = (entries: any[]) => ({ spec: { [list]: entries } });
  return {
    before: async () => hasTenant && kubectl("patch", "tenants", user, "--type=merge", "-p", JSON.stringify(patch(is))),
    form,
    same: (token) => does(token, patching("tenants", user, patch(becomes))),
    done: async () => {
      const of = await tenant(user);
      return of !== undefined && JSON.stringify(of.spec[list] ?? []) === JSON.stringify(becomes);
    },
  };
}

// An attempt to create a machine of the user.
function make(user: string, hasTenant: boolean, name: string, form: Record<string, string>): Attempt {
  return {
    before: async () => hasTenant && clear(user),
    form: { name, ...form },
    same: (token) => does(token, ["create", "-f", "-", dry], desktop(user, name)),
    done: async () => Boolean(await get(instances, `tenant-${user}`, name)),
  };
}

const ports = [{ name: "web", targetPort: 80, port: 0, protocol: "TCP" }];
const exposing = (ports: object[]) => ({ spec: { publicExposure: { ports } } });
const shared = (people: object[]) => ({ metadata: { annotations: { "crownlabs.polito.it/shared-with": people.length ? JSON.stringify(people) : null } } });
const isShared = (machine: any) => "crownlabs.polito.it/shared-with" in (machine.metadata.annotations ?? {});
const peer = [{ user: "max", access: "view", until: new Date(Date.now() + 6 * 3_600_000).toISOString().replace(/\.\d+/, "") }];
const exposed = (machine: any) => (machine.spec.publicExposure?.ports ?? []).length;

// All attempts, each with its route and its path.
function attempts(user: string, hasTenant: boolean, uid: string, has: any): [string, string, Attempt][] {
  const entries = has?.spec.workspaces ?? [];
  const of = (word: string) => `${path}/${word}`;
  const joining = (course: string, role: string) =>
    own(user, hasTenant, "workspaces", entries, [...entries, { name: course, role }]);
  const image = { apiVersion: "crownlabs.polito.it/v1alpha2", kind: "InstanceSnapshot", metadata: { name: `image-of-${user}`, namespace: "tenant-ada" } };
  const imageSpec = { instanceRef: { name: "victim", namespace: "tenant-ada" }, environmentRef: { name: "main" }, imageName: "lab" };
  const off = { spec: { running: false } };
  const digest = createHash("sha256").update(key).digest("base64url");
  return [
    ["/machines/:namespace/:name/rename", of("rename"), change({ spec: { prettyName: "Victim" } }, { uid, prettyName: `By ${user}` }, { spec: { prettyName: `By ${user}` } }, (of) => of.spec.prettyName === `By ${user}`)],
    ["/machines/:namespace/:name/keep", of("keep"), change({ metadata: { annotations: { "crownlabs.polito.it/kept-at": null } } }, { uid }, { metadata: { annotations: { "crownlabs.polito.it/kept-at": new Date().toISOString().replace(/\.\d+/, "") } } }, (of) => "crownlabs.polito.it/kept-at" in (of.metadata.annotations ?? {}))],
    ["/machines/:namespace/:name/restart", of("restart"), change({ metadata: { annotations: { "crownlabs.polito.it/restarted-at": null } } }, { uid }, { metadata: { annotations: { "crownlabs.polito.it/restarted-at": new Date().toISOString().replace(/\.\d+/, "") } } }, (of) => "crownlabs.polito.it/restarted-at" in (of.metadata.annotations ?? {}))],
    ["/machines/:namespace/:name/start", of("start"), change(off, { uid }, { spec: { running: true } }, (of) => of.spec.running)],
    ["/machines/:namespace/:name/stop", of("stop"), change({ spec: { running: true } }, { uid }, off, (of) => !of.spec.running)],
    ["/machines/:namespace/:name/expose", of("expose"), change(exposing([]), { uid, name: "web", targetPort: "80", port: "0", protocol: "TCP" }, exposing(ports), (of) => exposed(of) === 1)],
    ["/machines/:namespace/:name/unexpose", of("unexpose"), change(exposing(ports), { uid, entry: "web 0 80 TCP", at: "0", same: "1" }, exposing([]), (of) => exposed(of) === 0)],
    ["/machines/:namespace/:name/share", of("share"), change(shared([]), { uid, user: "max", access: "view", until: "tomorrow", zone: "UTC" }, shared(peer), isShared)],
    ["/machines/:namespace/:name/unshare", of("unshare"), change(shared(peer), { uid, user: "max" }, shared([]), (of) => !isShared(of))],
    ["/machines/:namespace/:name/save", of("save"), {
      ...change(off, { uid, name: image.metadata.name, imageName: "lab", environment: "main" }, off, () => false),
      same: (token) => does(token, ["create", "-f", "-", dry], { ...image, spec: imageSpec }),
      done: async () => Boolean(await get(snapshots, "tenant-ada", image.metadata.name)),
    }],
    ["/courses/:course/join", "/courses/rights-open/join", joining("rights-open", "user")],
    ["/courses/:course/join", "/courses/rights-shut/join", joining("rights-shut", "user")],
    ["/courses/:course/ask", "/courses/rights-door/ask", joining("rights-door", "candidate")],
    ["/courses/:course/withdraw", "/courses/rights-door/withdraw", own(user, hasTenant, "workspaces", [...entries, { name: "rights-door", role: "candidate" }], entries)],
    ["/courses/:course/leave", "/courses/rights-open/leave", own(user, hasTenant, "workspaces", [...entries, { name: "rights-open", role: "user" }], entries)],
    ["/account/keys/add", "/account/keys/add", own(user, hasTenant, "publicKeys", [], [key], { key })],
    ["/account/keys/remove", "/account/keys/remove", own(user, hasTenant, "publicKeys", [key], [], { entry: digest })],
    ["/machines/:namespace/:name/delete", of("delete"), {
      form: { uid },
      same: (token) => does(token, ["delete", instances, "victim", "-n", "tenant-ada", dry]),
      done: async () => (await victim())?.metadata.deletionTimestamp !== undefined || (await victim())?.metadata.uid !== uid,
    }],
    ["/machines", "/machines", make(user, hasTenant, `made-by-${user}`, { templateNamespace: "workspace-tea", template: "desktop" })],
    ["/files/open", "/files/open", make(user, hasTenant, `drive-of-${user}`, {})],
  ];
}

// The routes of changes.
const changing = [...new Set(attempts("", false, "", undefined).map(([route]) => route)), "/logout", "/favourites"];

test.beforeAll(async () => {
  for (const [name, autoEnroll] of Object.entries(courses)) {
    await apply({
      apiVersion: "crownlabs.polito.it/v1alpha1",
      kind: "Workspace",
      metadata: { name, labels: { "crownlabs.polito.it/operator-selector": "dashboard" } },
      spec: { prettyName: name, autoEnroll, quota: { cpu: 1, memory: "1Gi", instances: 1 } },
    });
  }
});

test.afterAll(async () => {
  await kubectl("delete", "workspaces", ...Object.keys(courses), "--wait=true");
});

test("the tests cover every route", async () => {
  const source = (file: string) => readFileSync(`../../../src/controllers/dashboard/${file}`, "utf8");
  const files = readdirSync("../../../src/controllers/dashboard", { recursive: true, encoding: "utf8" }).filter((file) => /(^|\/)(router|paths|actions)\.rs$/.test(file));
  // Tests are not searched: they have other paths.
  const code = files.map((file) => source(file).split("#[cfg(test)]")[0]).join("\n");
  const found = [...code.matchAll(/"(\/[^"\s]*)"/g)].map(([, path]) => path.replace(/{(\w+)}/g, ":$1"));
  // Paths of JSON patches are no routes.
  const routes = [...new Set(found)].filter((path) => !path.startsWith("/spec/"));
  expect(routes.sort()).toEqual([...new Set([...pages, ...open, ...changing, ...teaching, ...ofTeachers])].sort());
});

test.describe("every user has the same rights as with kubectl, on every route", () => {
  for (const [user, groups, hasTenant] of people) {
    test(user, async ({ page, context }) => {
      await clear("ada");
      await machine("ada", "victim", { prettyName: "Victim", running: false });
      const before = await tenant(user);
      expect(Boolean(before)).toBe(hasTenant);
      const bearer = await token(user);
      const me = JSON.parse((await control("kubectl", { token: bearer, arguments: ["auth", "whoami", "-o", "json"] })).output!);
      expect(me.status.userInfo).toMatchObject({ username: user, groups: [...groups, "system:authenticated"] });
      await login(page, user);
      const api = context.request;

      // Reads.
      const reads = (kind: string, ...more: string[]) => does(bearer, ["get", kind, ...more]);
      const sees = await reads(instances, "victim", "-n", "tenant-ada");
      const read = await api.get(path);
      expect([read.status(), (await read.text()).includes("Victim")]).toEqual([sees ? 200 : 403, sees]);
      // A machine that never ran may have no environment yet. Who may open a terminal is in terminal.spec.ts.
      expect(sees ? [200, 404] : [403]).toContain((await api.get(`${path}/main/terminal`)).status());
      // The same for its console, in console.spec.ts.
      expect(sees ? [200, 403, 404] : [403]).toContain((await api.get(`${path}/main/console`)).status());
      const hasOwn = await reads("tenants", user);
      expect((await (await api.get("/account")).text()).includes(`${user}@example.org`)).toBe(hasOwn);
      const seesCourses = hasOwn && (await reads("workspaces"));
      const listed = await (await api.get("/courses")).text();
      for (const course of ["rights-open", "rights-door"]) expect(listed.includes(`course-${course}`), course).toBe(seesCourses);
      const home = await (await api.get("/")).text();
      const isOwner = user === "ada" && (await reads(instances, "-n", `tenant-${user}`));
      expect(home.includes("Victim")).toBe(isOwner);
      const stream = /\/events\?on=[\w-]+/.exec(await read.text())?.[0];
      expect(stream !== undefined, "the address of a stream").toBe(sees);
      const status = (path: string) => page.evaluate(async (path) => {
        const aborting = new AbortController();
        const { status } = await fetch(path, { signal: aborting.signal });
        aborting.abort();
        return status;
      }, path);
      expect(await status(stream ?? "/events?on=x")).toBe(sees ? 200 : 403);

      // Changes.
      const { uid } = (await victim()).metadata;
      const did: string[] = [];
      for (const [, path, { before: prepared, form, same, done }] of attempts(user, hasTenant, uid, before)) {
        await prepared?.();
        expect(await done(), `${path}: before`).toBe(false);
        const may = await same(bearer);
        await send(api, path, form);
        expect(await done(), `${path}: as kubectl`).toBe(may);
        if (may) did.push(path);
      }
      // Not every student may create images, and no student may join a closed course.
      const own = attempts(user, hasTenant, uid, before).map(([, path]) => path).filter((path) => !/save$|shut/.test(path));
      if (user === "ada") expect(did).toEqual(own);
      if (user === "zoe") expect(did).toEqual([]);
      await kubectl("delete", snapshots, "--all", "-n", "tenant-ada", "--wait=true");
      if (hasTenant) await kubectl("patch", "tenants", user, "--type=merge", "-p", JSON.stringify({ spec: { workspaces: before.spec.workspaces ?? null, publicKeys: before.spec.publicKeys ?? null } }));
      if (hasTenant) await clear(user);
    });
  }
});

test("each route accepts one method", async ({ page, context }) => {
  await machine("ada", "victim", { prettyName: "Victim" });
  await login(page, "ada");
  const is = (await victim()).spec;
  const filled = (route: string) => route.replace(":namespace", "tenant-ada").replace(/:name/, route.startsWith("/courses") ? "rights-open" : "victim").replace(/:\w+/g, "x");
  for (const route of [...pages, ...open, ...changing]) {
    const isRead = !changing.includes(route);
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"].filter((method) => method !== (isRead ? "GET" : "POST"))) {
      const answer = await context.request.fetch(filled(route), { method, maxRedirects: 0, headers: { "sec-fetch-site": "same-origin" } });
      expect(answer.status(), `${method} ${route}`).toBe(405);
    }
  }
  expect((await victim()).spec).toEqual(is);
});

// Sends all forms with this function, and asserts that they change nothing.
async function nothing(send: (path: string, form: Record<string, string>) => Promise<void>): Promise<void> {
  await clear("ada");
  await machine("ada", "victim", { prettyName: "Victim" });
  const [{ uid }, has] = [(await victim()).metadata, await tenant("ada")];
  for (const [, path, { before, form, done }] of attempts("ada", true, uid, has)) {
    await before?.();
    await send(path, form);
    expect(await done(), path).toBe(false);
  }
  await kubectl("patch", "tenants", "ada", "--type=merge", "-p", JSON.stringify({ spec: { workspaces: has.spec.workspaces, publicKeys: null } }));
}

test("a visitor without a login can read and change nothing", async () => {
  const api = await request.newContext({ baseURL: url, ignoreHTTPSErrors: true });
  for (const page of ["/", path, `${path}/main/terminal`, `${path}/main/console`, "/courses", "/account"]) {
    const answer = await api.get(page, { maxRedirects: 0 });
    expect(answer.status(), page).toBe(303);
    expect(await answer.text()).toBe("");
  }
  expect((await api.get("/events?on=x")).status()).toBe(401);
  await nothing(async (path, form) => expect(await send(api, path, form), path).toBe(303));
  await api.dispose();
});

test("forms from other origins are rejected", async ({ page, context }) => {
  await login(page, "ada");
  const others = [{ "sec-fetch-site": "cross-site" }, { "sec-fetch-site": "same-site" }, { origin: "https://evil.example.org" }, {}];
  const refused = async (path: string, form: Record<string, string>) => {
    for (const headers of others) {
      const answer = await context.request.post(path, { form, headers: headers as any, maxRedirects: 0 });
      expect(answer.status(), `${path} ${JSON.stringify(headers)}`).toBe(403);
    }
  };
  await nothing(refused);
  await refused("/logout", {});
  await refused("/favourites", { key: "aaaaaa", on: "true" });
  expect((await context.request.get("/")).url()).toBe(`${url}/`);
});
