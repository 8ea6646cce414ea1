// The pages of teachers and administrators give no more rights than the API server gives the same token: twelve kinds of people, each
// route, each change. A change is first sent to the API server as a dry run, with the token of the user.
import { expect, request, test, type APIRequestContext } from "@playwright/test";
import { changing, teaching } from "./routes";
import { apply, clear, control, get, kubectl, login, machine, token, url } from "./site";

const crown = "/apis/crownlabs.polito.it";
const tenants = `${crown}/v1alpha2/tenants`;
const workspaces = `${crown}/v1alpha1/workspaces`;
const of = (namespace: string, plural: string) => `${crown}/v1alpha2/namespaces/${namespace}/${plural}`;
const announcements = (namespace: string) => `/apis/lab.crownlabs.polito.it/v1alpha1/namespaces/${namespace}/announcements`;
const system = "crownlabs-system";
const other = { "crownlabs.polito.it/operator-selector": "other" };

// The kinds of people who can log in, with their user.
const people = {
  student: "ada",
  candidate: "kim",
  "manager of the course": "eve",
  "manager of another course": "mia",
  "manager of both courses": "leo",
  administrator: "root",
  "auditor with the role view": "ivy",
  "user without a Tenant": "zoe",
  "user whose Tenant was deleted": "dan",
};

// Opens the API server with a token.
async function server(token: string): Promise<APIRequestContext> {
  const { output } = await control("server");
  return request.newContext({ baseURL: output, ignoreHTTPSErrors: true, extraHTTPHeaders: { authorization: `Bearer ${token}` } });
}

// Whether a read with the token of a user is allowed, where a missing object counts as allowed, or whether the user has a right, such as
// `patch tenants`.
async function may(api: APIRequestContext, needed: string): Promise<boolean> {
  if (needed.startsWith("/")) return [200, 404].includes((await api.get(needed)).status());
  const [verb, resource] = needed.split(" ");
  const data = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec: { resourceAttributes: { group: "crownlabs.polito.it", verb, resource } } };
  return (await (await api.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", { data })).json()).status.allowed;
}

// The reads of each page: a page is shown if all of them are allowed.
function reads(user: string): [string, string, string[]][] {
  const course = `${workspaces}/tea`;
  const inCourse = (plural: string) => of("workspace-tea", plural);
  const own = `tenant-${user}`;
  return [
    ["/courses/:course", "/courses/tea", [course, tenants]],
    ["/courses/:course/class.csv", "/courses/tea/class.csv", [course, tenants]],
    ["/courses/:course/actions/:verb", "/courses/tea/actions/stop", [course, tenants]],
    ["/courses/:course/actions/:verb/result.csv", "/courses/tea/actions/stop/result.csv", [course, tenants]],
    ["/courses/:course/people", "/courses/tea/people", [course, tenants]],
    ["/courses/:course/person/:person", "/courses/tea/person/bob", [course, `${tenants}/bob`]],
    ["/courses/:course/people/import", "/courses/tea/people/import", [course, "patch tenants"]],
    ["/courses/:course/templates", "/courses/tea/templates", [course, inCourse("templates")]],
    ["/courses/:course/templates/new", "/courses/tea/templates/new", [course]],
    ["/courses/:course/templates/:template", "/courses/tea/templates/desktop", [course, `${inCourse("templates")}/desktop`]],
    ["/courses/:course/templates/:template/edit", "/courses/tea/templates/desktop/edit", [course, `${inCourse("templates")}/desktop`]],
    ["/personal/templates", "/personal/templates", [of(own, "templates")]],
    ["/personal/templates/new", "/personal/templates/new", []],
    ["/personal/templates/:template", "/personal/templates/none", [`${of(own, "templates")}/none`]],
    ["/personal/templates/:template/edit", "/personal/templates/none/edit", [`${of(own, "templates")}/none`]],
    ["/courses/:course/volumes", "/courses/tea/volumes", [course, inCourse("sharedvolumes")]],
    ["/courses/:course/exams", "/courses/tea/exams", [course, tenants]],
    ["/courses/:course/exams.csv", "/courses/tea/exams.csv", [course, tenants]],
    ["/courses/:course/announcements", "/courses/tea/announcements", [course, announcements("workspace-tea")]],
    ["/admin", "/admin", [tenants]],
    ["/admin/courses", "/admin/courses", [workspaces]],
    ["/admin/courses/:course", "/admin/courses/tea", [course]],
    ["/admin/people", "/admin/people", [tenants]],
    ["/admin/people/:user", "/admin/people/bob", [`${tenants}/bob`]],
    ["/admin/cluster", "/admin/cluster", ["/api/v1/nodes"]],
  ];
}

// An attempt: its route, its path, its form; the object with its state before; the same request to the API server; whether an object has
// the change; and what the page has to read before. `before` is a merge patch of a new or an existing object; null deletes the object.
type Attempt = {
  route: string;
  path: string;
  form: (object: any) => Record<string, string>;
  at: string;
  before: any;
  same: [method: "POST" | "PATCH" | "DELETE", body?: object];
  needs?: string[];
  done: (object: any) => boolean;
};

const gone = (object: any) => !object || Boolean(object.metadata.deletionTimestamp);

// Attempts to change the entries of a person in the course, as their manager.
function ofPerson(user: string): Attempt[] {
  const at = `${tenants}/subject`;
  const role = (role?: string) => ({ spec: { workspaces: role ? [{ name: "tea", role }] : [] } });
  const is = (wanted?: string) => (object: any) => object?.spec.workspaces?.find((entry: any) => entry.name === "tea")?.role === wanted;
  const change = (word: string, from: string, to?: string): Attempt => ({
    route: `/courses/:course/people/${word}`,
    path: `/courses/tea/people/${word}`,
    form: ({ metadata }) => ({ uid: metadata.uid, who: "subject" }),
    at,
    before: role(from),
    same: ["PATCH", role(to)],
    done: is(to),
  });
  const names = { firstName: "Added", lastName: "Person", email: `added-by-${user}@example.org` };
  const added = { apiVersion: "crownlabs.polito.it/v1alpha2", kind: "Tenant", metadata: { name: `added-by-${user}` }, spec: { ...names, workspaces: [{ name: "tea", role: "user" }] } };
  return [
    change("approve", "candidate", "user"),
    change("reject", "candidate"),
    change("promote", "user", "manager"),
    change("demote", "manager", "user"),
    change("remove", "user"),
    { ...change("import", "candidate", "user"), route: "/courses/:course/people/import", form: () => ({ list: "user,role\nsubject,user\n", made: "yes" }) },
    {
      route: "/courses/:course/people/add",
      path: "/courses/tea/people/add",
      form: () => ({ user: `added-by-${user}`, role: "user", first: names.firstName, last: names.lastName, email: names.email }),
      at: `${tenants}/added-by-${user}`,
      before: null,
      same: ["POST", added],
      done: (object) => !gone(object),
    },
  ];
}

// Attempts to change the objects in the namespace of the course.
function ofCourse(user: string, desktop: any): Attempt[] {
  const namespace = "workspace-tea";
  const templates = of(namespace, "templates");
  const template = (name: string, prettyName: string) => ({ apiVersion: desktop.apiVersion, kind: "Template", metadata: { name, namespace }, spec: { ...desktop.spec, prettyName } });
  const volume = (name: string) => ({ apiVersion: desktop.apiVersion, kind: "SharedVolume", metadata: { name, namespace }, spec: { prettyName: "Shared", size: "1Gi" } });
  const volumes = of(namespace, "sharedvolumes");
  const told = (name: string, namespace: string) => ({ apiVersion: "lab.crownlabs.polito.it/v1alpha1", kind: "Announcement", metadata: { name, namespace }, spec: { title: "T", text: "t", until: "2099-01-01T00:00:00Z" } });
  const publish = (route: string, path: string, namespace: string): Attempt => ({
    route: `${route}/publish`,
    path: `${path}/publish`,
    form: () => ({ namespace, name: `by-${user}`, title: "T", text: "t", days: "1", at: new Date().toISOString().replace(/\.\d+/, "") }),
    at: `${announcements(namespace)}/by-${user}`,
    before: null,
    same: ["POST", told(`by-${user}`, namespace)],
    done: (object) => !gone(object),
  });
  const withdraw = (route: string, path: string, namespace: string): Attempt => ({
    route: `${route}/withdraw`,
    path: `${path}/withdraw`,
    form: ({ metadata }) => ({ uid: metadata.uid, namespace, name: "told" }),
    at: `${announcements(namespace)}/told`,
    before: told("told", namespace),
    same: ["DELETE"],
    done: gone,
  });
  const [mine, everyone] = [["/courses/:course/announcements", "/courses/tea/announcements", namespace], ["/admin/announcements", "/admin/announcements", system]] as const;
  return [
    {
      route: "/courses/:course/templates/new",
      path: "/courses/tea/templates/new",
      form: () => ({ do: "save", yaml: JSON.stringify(template(`by-${user}`, "By a form")) }),
      at: `${templates}/by-${user}`,
      before: null,
      same: ["POST", template(`by-${user}`, "By a form")],
      done: (object) => !gone(object),
    },
    {
      route: "/courses/:course/templates/:template/edit",
      path: "/courses/tea/templates/edited/edit",
      form: ({ metadata }) => ({ do: "save", uid: metadata.uid, generation: String(metadata.generation), yaml: JSON.stringify(template("edited", `By ${user}`)) }),
      at: `${templates}/edited`,
      before: template("edited", "Before"),
      same: ["PATCH", { spec: { prettyName: `By ${user}` } }],
      done: (object) => object?.spec.prettyName === `By ${user}`,
    },
    {
      route: "/courses/:course/templates/:template/delete",
      path: "/courses/tea/templates/edited/delete",
      form: ({ metadata }) => ({ uid: metadata.uid, namespace }),
      at: `${templates}/edited`,
      before: template("edited", "Before"),
      same: ["DELETE"],
      done: gone,
    },
    {
      route: "/courses/:course/volumes/create",
      path: "/courses/tea/volumes/create",
      form: () => ({ namespace, name: `by-${user}`, prettyName: "Shared", size: "1" }),
      at: `${volumes}/by-${user}`,
      before: null,
      same: ["POST", volume(`by-${user}`)],
      done: (object) => !gone(object),
    },
    {
      route: "/courses/:course/volumes/delete",
      path: "/courses/tea/volumes/delete",
      form: ({ metadata }) => ({ uid: metadata.uid, namespace, name: `of-${user}` }),
      at: `${volumes}/of-${user}`,
      before: volume(`of-${user}`),
      same: ["DELETE"],
      done: gone,
    },
    publish(...mine),
    withdraw(...mine),
    publish(...everyone),
    withdraw(...everyone),
  ];
}

// The second of the last action on the class.
let last = 0;

// Attempts to change the machine of another student, alone and as a part of the class.
function ofMachine(desktop: any): Attempt[] {
  const at = `${of("tenant-bob", "instances")}/rights`;
  const labels = (requested: string | null, completed: string | null) => ({ "crownlabs.polito.it/instance-submission-requested": requested, "crownlabs.polito.it/instance-submission-completed": completed });
  const is = (running: boolean, requested: string | null = null, completed: string | null = null) => ({
    apiVersion: desktop.apiVersion,
    kind: "Instance",
    metadata: { name: "rights", namespace: "tenant-bob", labels: labels(requested, completed) },
    spec: {
      "template.crownlabs.polito.it/TemplateRef": { name: "desktop", namespace: "workspace-tea" },
      "tenant.crownlabs.polito.it/TenantRef": { name: "bob" },
      running,
      contentUrls: { default: { destination: "http://127.0.0.1:1/upload" } },
    },
  });
  // A later action takes precedence over an earlier one, so each one is in a second of its own.
  const id = () => `abcdefghijklmnop-${(last = Math.max(last + 1, Math.floor(Date.now() / 1_000)))}`;
  const act = (verb: string, before: object, same: Attempt["same"], done: Attempt["done"]): Attempt => ({
    route: "/courses/:course/actions/:verb",
    path: `/courses/tea/actions/${verb}`,
    form: () => ({ id: id(), who: "bob", ...(verb === "start" ? { template: "desktop" } : {}) }),
    at,
    before,
    same,
    done,
    // The Template of the machines to start.
    needs: verb === "start" ? [`${of("workspace-tea", "templates")}/desktop`] : [],
  });
  const isRequested = (object: any) => Object.entries(labels("", "")).some(([key]) => object?.metadata.labels?.[key] === "true");
  return [
    act("start", is(false), ["PATCH", { spec: { running: true } }], (object) => object?.spec.running === true),
    act("stop", is(true), ["PATCH", { spec: { running: false } }], (object) => object?.spec.running === false),
    act("collect", is(true), ["PATCH", { metadata: { labels: labels("true", null) }, spec: { running: false } }], (object) => object?.spec.running === false),
    {
      route: "/courses/:course/exams/retry",
      path: "/courses/tea/exams/retry",
      form: ({ metadata }) => ({ uid: metadata.uid, namespace: "tenant-bob", name: "rights" }),
      at,
      before: is(true, "false", "false"),
      same: ["PATCH", { metadata: { labels: labels("true", "false") } }],
      done: isRequested,
    },
    act("delete", is(true), ["DELETE"], gone),
  ];
}

// Attempts to change courses and people, as an administrator.
function ofLaboratory(user: string): Attempt[] {
  const quota = { cpu: "1", memory: "1Gi", instances: 1 };
  const course = (name: string, prettyName: string) => ({ apiVersion: "crownlabs.polito.it/v1alpha1", kind: "Workspace", metadata: { name, labels: other }, spec: { prettyName, quota } });
  const fields = { title: `By ${user}`, enrolment: "closed", cpu: "1", memory: "1Gi", instances: "1", disk: "" };
  const entries = (...names: string[]) => ({ spec: { workspaces: names.map((name) => ({ name, role: "user" })) } });
  const enrolled = (object: any) => (object?.spec.workspaces ?? []).map((entry: any) => entry.name).join();
  const person = (word: string, before: object, form: Record<string, string>, same: object, done: (spec: any) => boolean): Attempt => ({
    route: `/admin/people/:user/${word}`,
    path: `/admin/people/subject/${word}`,
    form: ({ metadata }) => ({ uid: metadata.uid, ...form }),
    at: `${tenants}/subject`,
    before,
    same: ["PATCH", same],
    done: (object) => done(object?.spec),
  });
  const amounts = { cpu: "1", memory: "1Gi", instances: "1" };
  const limited = (instances: number) => ({ spec: { quota: { cpu: "1", memory: "1Gi", instances } } });
  const [no, nothing] = [{ spec: { quota: null } }, { spec: { quota: { cpu: "0", memory: "0", instances: 0 } } }];
  const own = (value: object | null) => ({ spec: { personalWorkspace: value } });
  return [
    {
      route: "/admin/create-course",
      path: "/admin/create-course",
      form: () => ({ ...fields, course: `by-${user}`, selector: "crownlabs.polito.it/operator-selector=other" }),
      at: `${workspaces}/by-${user}`,
      before: null,
      same: ["POST", course(`by-${user}`, "T")],
      done: (object) => !gone(object),
    },
    {
      route: "/admin/courses/:course/edit",
      path: "/admin/courses/edited/edit",
      form: ({ metadata }) => ({ ...fields, uid: metadata.uid }),
      at: `${workspaces}/edited`,
      before: course("edited", "Before"),
      same: ["PATCH", { spec: { prettyName: `By ${user}` } }],
      done: (object) => object?.spec.prettyName === `By ${user}`,
    },
    {
      route: "/admin/courses/:course/delete",
      path: "/admin/courses/edited/delete",
      form: ({ metadata }) => ({ uid: metadata.uid }),
      at: `${workspaces}/edited`,
      before: course("edited", "Before"),
      same: ["DELETE"],
      done: gone,
    },
    person("keep", { spec: { lastLogin: "2020-01-01T00:00:00Z" } }, {}, { spec: { lastLogin: new Date().toISOString().replace(/\.\d+/, "") } }, (spec) => spec?.lastLogin > "2021"),
    person("limit", no, amounts, limited(1), (spec) => spec?.quota?.instances === 1),
    person("restore", limited(1), {}, no, (spec) => spec && !spec.quota),
    person("disable", no, {}, nothing, (spec) => spec?.quota?.instances === 0),
    person("give", { spec: { quota: null, personalWorkspace: null } }, { ...amounts, disk: "" }, own(quota), (spec) => spec?.personalWorkspace?.instances === 1),
    person("take", own(quota), {}, own(null), (spec) => spec && !spec.personalWorkspace),
    person("enrol", entries("tea"), { course: "ask", role: "user" }, entries("tea", "ask"), (spec) => enrolled({ spec }) === "tea,ask"),
    person("remove", entries("tea", "ask"), { course: "ask" }, entries("tea"), (spec) => enrolled({ spec }) === "tea"),
  ];
}

const attempts = (user: string, desktop: any) => [...ofPerson(user), ...ofCourse(user, desktop), ...ofMachine(desktop), ...ofLaboratory(user)];

// Brings an object into its state before an attempt, as an administrator. Returns the object.
async function prepare(admin: APIRequestContext, { at, before }: Attempt): Promise<any> {
  const read = async () => ((answer) => (answer.ok() ? answer.json() : undefined))(await admin.get(at));
  if (before === null) {
    if (await read()) await admin.delete(at);
    await expect.poll(async () => (await read()) === undefined, { message: at }).toBe(true);
    return undefined;
  }
  await expect.poll(async () => (await read())?.metadata.deletionTimestamp, { message: at }).toBeUndefined();
  const headers = { "content-type": "application/merge-patch+json" };
  if (await read()) {
    const patched = await admin.patch(at, { headers, data: before });
    expect(patched.ok(), `${at}: ${await patched.text()}`).toBe(true);
  } else {
    const made = await admin.post(at.slice(0, at.lastIndexOf("/")), { data: JSON.parse(JSON.stringify(before, (_, value) => value ?? undefined)) });
    expect(made.ok(), `${at}: ${await made.text()}`).toBe(true);
  }
  return read();
}

// Whether the API server would accept the same request with this token.
async function would(api: APIRequestContext, { at, same: [method, data] }: Attempt): Promise<boolean> {
  const [path, type] = method === "POST" ? [at.slice(0, at.lastIndexOf("/")), "application/json"] : [at, "application/merge-patch+json"];
  return (await api.fetch(`${path}?dryRun=All`, { method, headers: { "content-type": method === "DELETE" ? "application/json" : type }, data })).ok();
}

const send = (api: APIRequestContext, path: string, form: Record<string, string>, headers: object = {}) =>
  api.post(path, { form, maxRedirects: 0, headers: { "sec-fetch-site": "same-origin", ...headers } });

let desktop: any;
const accept = (autoEnroll: string) => kubectl("patch", "workspace", "tea", "--type=merge", "-p", JSON.stringify({ spec: { autoEnroll } }));

test.beforeAll(async () => {
  test.setTimeout(300_000);
  // Otherwise the daemon approves the candidates of the attempts.
  await accept("withApproval");
  desktop = await get("templates.crownlabs.polito.it", "workspace-tea", "desktop");
  const tenant = (name: string, workspaces: object[]) => apply({
    apiVersion: "crownlabs.polito.it/v1alpha2",
    kind: "Tenant",
    metadata: { name, labels: { "crownlabs.polito.it/operator-selector": "dashboard" } },
    spec: { firstName: name, lastName: "Rossi", email: `${name}@example.org`, lastLogin: "2099-01-01T00:00:00Z", workspaces },
  });
  await tenant("subject", [{ name: "tea", role: "user" }]);
  // This user had a Tenant with a namespace, and still has the roles in Keycloak.
  await tenant("dan", [{ name: "tea", role: "user" }]);
  await expect.poll(async () => (await get("tenant", "", "dan")).status?.personalNamespace?.created).toBe(true);
  await kubectl("delete", "tenant", "dan", "--wait=true");
  await clear("bob");
});

test.afterAll(async () => {
  await accept("immediate");
  await kubectl("delete", "tenants", "subject", "--wait=false");
  await kubectl("delete", "workspaces", "-l", "crownlabs.polito.it/operator-selector=other", "--wait=false");
  await kubectl("delete", "templates.crownlabs.polito.it", "edited", "-n", "workspace-tea", "--ignore-not-found");
  await kubectl("delete", "sharedvolumes.crownlabs.polito.it", "--all", "-n", "workspace-tea", "--wait=false");
  for (const namespace of ["workspace-tea", system]) await kubectl("delete", "announcements.lab.crownlabs.polito.it", "--all", "-n", namespace);
  await clear("bob");
});

test("the attempts cover every route of a change", async () => {
  const covered = attempts("nobody", { spec: {} }).map(({ route }) => route);
  const personal = "/personal/templates/:template/delete";
  expect([...new Set(covered)].filter((route) => !teaching.includes(route)).sort()).toEqual(changing.filter((route) => route !== personal).sort());
  expect(reads("nobody").map(([route]) => route)).toEqual(teaching);
});

test("each route accepts its methods only", async ({ page, context }) => {
  await login(page, "eve", "/courses");
  const filled = (route: string) => route.replace(":course", "tea").replace(":verb", "stop").replace(":template", "desktop").replace(/:\w+/g, "bob");
  const both = attempts("nobody", desktop).map(({ route }) => route);
  for (const route of [...teaching, ...changing]) {
    const methods = ["PUT", "PATCH", "DELETE", ...(changing.includes(route) ? ["GET"] : []), ...(teaching.includes(route) && !both.includes(route) && !route.startsWith("/personal") ? ["POST"] : [])];
    for (const method of methods) {
      const answer = await context.request.fetch(filled(route), { method, maxRedirects: 0, headers: { "sec-fetch-site": "same-origin" } });
      expect(answer.status(), `${method} ${route}`).toBe(405);
    }
  }
});

test.describe("each kind of people has the rights of their token, on every route", () => {
  for (const [kind, user] of Object.entries(people)) {
    test(`${kind} (${user})`, async ({ page, context }) => {
      test.setTimeout(300_000);
      const [mine, admin] = [await server(await token(user)), await server(await token("root"))];
      await login(page, user, "/courses");
      const api = context.request;
      for (const [, path, needed] of reads(user)) {
        const allowed = (await Promise.all(needed.map((one) => may(mine, one)))).every(Boolean);
        const isMissing = path.includes("/none");
        const answer = await api.get(path);
        expect(answer.status(), path).toBe(allowed ? (isMissing ? 404 : 200) : 403);
        if (!allowed) expect(await answer.text(), path).not.toContain("bob@example.org");
      }
      let count = 0;
      for (const attempt of attempts(user, desktop)) {
        const { path, form, at, done } = attempt;
        const object = await prepare(admin, attempt);
        expect(done(object), `${path}: before`).toBe(false);
        const needed = await Promise.all((attempt.needs ?? []).map((one) => may(mine, one)));
        const allowed = needed.every(Boolean) && (await would(mine, attempt));
        await send(api, path, form(object));
        const after = await admin.get(at);
        expect(done(after.ok() ? await after.json() : undefined), `${path}: as the API server`).toBe(allowed);
        count += Number(allowed);
      }
      if (user === "root") expect(count).toBe(attempts(user, desktop).length);
      if (["zoe", "dan", "kim", "ada", "ivy"].includes(user)) expect(count).toBe(0);
      if (user === "eve") expect(count).toBeGreaterThan(15);
      await kubectl("delete", "tenant", `added-by-${user}`, "--ignore-not-found", "--wait=false");
      await Promise.all([mine.dispose(), admin.dispose()]);
    });
  }
});

// Asserts that a client reads no page, and changes nothing.
async function nothing(api: APIRequestContext, headers: object = {}): Promise<void> {
  const admin = await server(await token("root"));
  for (const [, path] of reads("nobody")) {
    const answer = await api.get(path, { maxRedirects: 0, headers: headers as any });
    expect([303, 401], path).toContain(answer.status());
    expect(await answer.text(), path).not.toContain("example.org");
  }
  for (const attempt of attempts("nobody", desktop)) {
    const object = await prepare(admin, attempt);
    const answer = await send(api, attempt.path, attempt.form(object), headers);
    expect([303, 401], attempt.path).toContain(answer.status());
    const after = await admin.get(attempt.at);
    expect(attempt.done(after.ok() ? await after.json() : undefined), attempt.path).toBe(false);
  }
  await admin.dispose();
}

test("an anonymous visitor reads and changes nothing", async () => {
  const api = await request.newContext({ baseURL: url, ignoreHTTPSErrors: true });
  await nothing(api);
  await api.dispose();
});

test("the token of a ServiceAccount, even of an administrator, opens nothing", async () => {
  await kubectl("create", "serviceaccount", "robot", "-n", "default");
  await kubectl("create", "clusterrolebinding", "robot", "--clusterrole=cluster-admin", "--serviceaccount=default:robot");
  const bearer = (await kubectl("create", "token", "robot", "-n", "default")).trim();
  const api = await request.newContext({ baseURL: url, ignoreHTTPSErrors: true });
  await nothing(api, { authorization: `Bearer ${bearer}` });
  await api.dispose();
  await kubectl("delete", "clusterrolebinding", "robot");
  await kubectl("delete", "serviceaccount", "robot", "-n", "default");
});

test("a manager whose session has ended in Keycloak reads and changes nothing", async ({ page, context }) => {
  await login(page, "leo", "/courses/tea");
  const { output } = await control("keycloak", { method: "GET", path: "/users?username=leo&exact=true" });
  await control("keycloak", { method: "POST", path: `/users/${JSON.parse(output!)[0].id}/logout` });
  // The replicas forget the token that they have.
  for (const number of [0, 1]) await control("restart-replica", { number });
  await expect.poll(async () => (await context.request.get("/healthz").catch(() => undefined))?.status()).toBe(200);
  await nothing(context.request);
});

test("a machine of a student is read and changed by the same people as with kubectl", async ({ page, context }) => {
  await machine("bob", "rights", { prettyName: "Of Bob", running: false });
  await login(page, "ivy", "/courses");
  const seen = await context.request.get("/machines/tenant-bob/rights");
  const text = await seen.text();
  expect([seen.status(), text.includes("Of Bob"), text.includes('id="technical"')]).toEqual([200, true, true]);
  // An auditor may list events, and is offered no action.
  expect(text).not.toMatch(/<form method="post" action="\/machines/);
});
