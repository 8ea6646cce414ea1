// The people of a course: requests to join, and lists with mistakes.
import { expect, test } from "@playwright/test";
import { faults } from "./axe";
import { enrol, get, kubectl, login, sent } from "./site";

const candidates = Array.from({ length: 30 }, (_, number) => `asks-${String(number).padStart(2, "0")}`);
const role = async (name: string) => (await get("tenants", "", name))?.spec.workspaces?.find((entry: any) => entry.name === "crowd")?.role;

const accept = (mode: string | null) => kubectl("patch", "workspace", "crowd", "--type=merge", "-p", JSON.stringify({ spec: { autoEnroll: mode } }));

test.beforeAll(() => accept("withApproval"));
test.afterAll(() => accept(null));

test("thirty candidates are approved with three clicks, and nothing happens twice", async ({ page, context }) => {
  test.setTimeout(300_000);
  await enrol(candidates, "candidate");
  await login(page, "ned", "/courses/crowd");
  await page.getByRole("link", { name: "People" }).click();
  await expect(page.getByRole("heading", { name: "Requests to join (30)" })).toBeVisible();
  expect(await faults(page)).toEqual([]);
  await page.getByRole("button", { name: "Approve all (30)" }).click();
  await expect(page.getByText("30 changes.")).toBeVisible();
  expect(await role(candidates[0])).toBe("candidate");
  const list = await page.locator("input[name=list]").inputValue();
  await page.getByRole("button", { name: "Make these changes" }).click();
  await expect(page.getByText("30 changes were made.")).toBeVisible();
  for (const name of candidates) expect(await role(name), name).toBe("user");
  // The same form again, as after a reload: every person is in the course already.
  const again = await context.request.post("/courses/crowd/people/import", { form: { list, made: "yes" }, headers: { "sec-fetch-site": "same-origin" } });
  expect(await again.text()).toContain("0 changes were made.");
  const patches = (await sent("ned", "patch", "tenants")).filter((one) => one.objectRef.name.startsWith("asks-"));
  expect(patches).toHaveLength(candidates.length);
});

test("a list with twelve kinds of errors names each line, and only the other lines change something", async ({ page }) => {
  const mine = "new.person,New,Person,new.person@example.org,user";
  const bad: [string, RegExp][] = [
    ["Ada Rossi,,,,", /A user name has lowercase letters/],
    [`${"a".repeat(57)},A,B,a@example.org,`, /at most 56 characters/],
    [`long.name,${"x".repeat(201)},B,long@example.org,`, /at most 200 characters/],
    ["no.name,,,no.name@example.org,", /has no account yet: enter a first name/],
    ["bad.address,A,B,not an address,", /This is not an email address/],
    ["no.address,A,B,,", /has no account yet: enter an email address/],
    ["bob,,,other@example.org,", /belongs to a person with another email address/],
    ["bad.role,A,B,bad.role@example.org,teacher", /The role is user or manager/],
    ["ned,,,,user", /You cannot change your own role/],
    ["few,A", /more or fewer fields/],
    ['"quoted"x,A,B,q@example.org,', /A quotation mark in this line/],
    ["new.person,New,Person,new.person@example.org,user", /this user name twice/],
    ["other.person,A,B,new.person@example.org,user", /this email address twice/],
    ["is.unknown,,,,reject", /has no account/],
  ];
  await login(page, "ned", "/courses/crowd/people/import");
  await page.locator("#list").fill(["user,first,last,email,role", mine, ...bad.map(([line]) => line)].join("\n"));
  await page.getByRole("button", { name: "Check the list" }).click();
  await expect(page.getByText("1 change.")).toBeVisible();
  for (const [index, [line, problem]] of bad.entries()) await expect(page.locator(`#line-${index + 3}`), line).toContainText(problem);
  await expect(page.locator("#line-2")).toContainText("New account: Student");
  expect(await faults(page)).toEqual([]);
  expect(await get("tenants", "", "new.person")).toBeUndefined();
  await page.getByRole("button", { name: "Make these changes" }).click();
  await expect(page.getByText("1 change was made.")).toBeVisible();
  expect(await role("new.person")).toBe("user");
  for (const name of ["no.name", "bad.address", "no.address", "bad.role", "other.person", "is.unknown"]) expect(await get("tenants", "", name), name).toBeUndefined();
  expect(await role("ned")).toBe("manager");
  await kubectl("delete", "tenant", "new.person");
});

test("a list of another kind is rejected with its fault beside the field, and stays in the form", async ({ page }) => {
  await login(page, "ned", "/courses/crowd/people/import");
  for (const [text, problem] of [["first,last\nA,B", /one of them must be user/], ["user,phone\nada,1", /is unknown or there twice/], ["user", /has no people/]] as const) {
    await page.locator("#list").fill(text);
    await page.getByRole("button", { name: "Check the list" }).click();
    await expect(page.locator("#list-error")).toContainText(problem);
    await expect(page.locator("#list")).toHaveValue(text);
  }
  // The script reads a file into the field.
  await page.locator("#file").setInputFiles({ name: "people.csv", mimeType: "text/csv", buffer: Buffer.from("\ufeffuser;role\r\nada;user\r\n") });
  await expect(page.locator("#list")).toHaveValue(/ada;user/);
});

test("a person has a page with machines, and who did what", async ({ page }) => {
  await login(page, "ned", "/courses/crowd/people");
  await page.getByRole("link", { name: "asks-00 Rossi" }).or(page.getByRole("link", { name: "Rossi asks-00" })).click();
  await page.locator("summary", { hasText: "Who did what" }).click();
  await expect(page.locator("#past li", { hasText: "Created" })).toHaveCount(1);
  await expect(page.locator("#past li", { hasText: "spec.workspaces" }).first()).toBeVisible();
  expect(await faults(page)).toEqual([]);
});
