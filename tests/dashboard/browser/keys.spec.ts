// Texts that are no SSH public key: each has its own sentence, and a private key is not shown again.
import { expect, test, type Page } from "@playwright/test";
import { control, fillIn, get, kubectl, login } from "./site";

const secret = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW";
const openssh = `-----BEGIN OPENSSH PRIVATE KEY-----\n${secret}\n-----END OPENSSH PRIVATE KEY-----`;
const putty = "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPrivate-Lines: 1\nAAAAIHNlY3JldA==";
const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ5mmjtLqUuVOzAcWLBHQUWp2ZO3cjU5YNDiX25qkrsf";

async function add(page: Page, text: string): Promise<void> {
  await page.locator("#key").fill(text);
  await page.getByRole("button", { name: "Add key" }).click();
}

test("a private key is refused, and neither shown again, nor stored, nor logged", async ({ page, context }) => {
  await kubectl("patch", "tenant", "joe", "--type=merge", "-p", '{"spec":{"publicKeys":null}}');
  await login(page, "joe", "/account");
  for (const text of [openssh, openssh.replaceAll("OPENSSH", "RSA"), putty]) {
    await add(page, text);
    await expect(page.locator("#key-error")).toHaveText("This is a private key. Do not share it; paste the .pub file.");
    await expect(page.locator("#key")).toHaveValue("");
    expect(await page.content()).not.toContain(text.split("\n")[1]);
  }
  // The session has ended: the form is not kept during the login.
  await page.locator("#key").fill(openssh);
  await context.clearCookies();
  await page.getByRole("button", { name: "Add key" }).click();
  await fillIn(page, "joe");
  await expect(page.locator("#key")).toHaveValue("");
  expect(await page.content()).not.toContain(secret);
  expect((await get("tenant", "", "joe")).spec.publicKeys ?? []).toEqual([]);
  expect((await control("logs")).output).not.toContain(secret);
  expect((await control("audit")).output).not.toContain(secret);
});

test("other texts have their own sentences, and stay in the field", async ({ page }) => {
  await login(page, "joe", "/account");
  for (const [text, sentence] of [
    ['---- BEGIN SSH2 PUBLIC KEY ----\nComment: "joe"\nAAAA\n---- END SSH2 PUBLIC KEY ----', "ssh-keygen -i -f"],
    [`${key}\n${key}`, "A key is a single line"],
    ["256 SHA256:N3ypM7HpMb+WUSj3M2L1bECryrCTporGfpvq7+J1ksU joe (ED25519)", "fingerprint"],
    [`from="10.0.0.1" ${key}`, "Remove the options"],
    [" ", "Paste the content of your .pub file"],
  ]) {
    await add(page, text);
    await expect(page.locator("#key-error")).toContainText(sentence);
    if (text.trim()) await expect(page.locator("#key")).toHaveValue(text);
  }
});
