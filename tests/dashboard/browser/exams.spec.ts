// An exam, from the first status check to the receipt of its upload. The script of the uploader's image runs here, because the
// pods of the test cluster run nothing.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "@playwright/test";
import { faults } from "./axe";
import { clear, control, get, kubectl, login, machine } from "./site";

const instances = "instances.crownlabs.polito.it";
// The state of the exam, and the digests and sizes of the files that have arrived.
const exam = { isOver: false, accepts: false };
const received: { sha256: string; size: number }[] = [];
let server: Server;
let base: string;

// Returns the file in a form.
function file(body: Buffer): Buffer {
  const delimiter = body.subarray(0, body.indexOf("\r\n"));
  const begin = body.indexOf("\r\n\r\n", body.indexOf('name="binfile"')) + 4;
  return body.subarray(begin, body.indexOf(Buffer.concat([Buffer.from("\r\n"), delimiter]), begin));
}

test.beforeAll(async () => {
  server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      if (request.method === "GET") return response.writeHead(exam.isOver ? 404 : 200).end();
      const content = file(Buffer.concat(parts));
      if (exam.accepts) received.push({ sha256: createHash("sha256").update(content).digest("hex"), size: content.length });
      response.writeHead(exam.accepts ? 201 : 503).end();
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

test.afterAll(async () => {
  server.close();
  const nodes = (await kubectl("get", "nodes", "-o", "name")).trim().split("\n");
  await kubectl("uncordon", ...nodes);
});

// Runs the uploader for the pod of a Job, and writes its end into the status of the pod.
async function upload(work: string): Promise<void> {
  let pod: any;
  await expect.poll(async () => {
    const { items } = JSON.parse(await kubectl("get", "pods", "-n", "tenant-ada", "-o", "json"));
    pod = items.find((one: any) => one.metadata.ownerReferences?.[0]?.kind === "Job" && one.status.phase === "Pending");
    return Boolean(pod);
  }).toBe(true);
  const container = pod.spec.containers[0];
  const env = Object.fromEntries(container.env.map(({ name, value }: any) => [name, value]));
  const message = join(work, "..", `${pod.metadata.uid}.json`);
  const run = promisify(execFile)("sh", [join(process.cwd(), "../../../images/uploader/upload.sh")], {
    env: { PATH: process.env.PATH, ...env, SOURCE_PATH: work, TERMINATION_LOG: message },
  });
  const isDone = await run.then(() => true, () => false);
  const terminated = { exitCode: isDone ? 0 : 1, reason: isDone ? "Completed" : "Error", message: isDone ? readFileSync(message, "utf8") : "" };
  const status = { phase: isDone ? "Succeeded" : "Failed", containerStatuses: [{ name: container.name, image: container.image, imageID: "", ready: false, restartCount: 0, state: { terminated } }] };
  await kubectl("patch", "pod", pod.metadata.name, "-n", "tenant-ada", "--subresource=status", "--type=merge", "-p", JSON.stringify({ status }));
}

test("an exam is followed from its status check to the receipt, whose digest the server has received", async ({ page }) => {
  test.setTimeout(400_000);
  await clear("ada");
  const urls = { statusCheckUrl: `${base}/status`, contentUrls: { default: { destination: `${base}/upload` } } };
  await machine("ada", "exam", { prettyName: "The exam", ...urls });
  await login(page, "eve", "/courses/tea/exams");
  const row = page.locator("#exam-tenant-ada-exam");
  await expect(row).toContainText("In progress");
  await expect(row).toContainText("Ready");
  expect(await faults(page)).toEqual([]);
  const work = mkdtempSync(join(tmpdir(), "exam-"));
  writeFileSync(join(work, "answers.txt"), "42\n".repeat(1_000));
  // Without open nodes, the pod of the upload waits.
  const nodes = (await kubectl("get", "nodes", "-o", "name")).trim().split("\n");
  await kubectl("cordon", ...nodes);
  exam.isOver = true;
  await expect(row).toContainText("Ended", { timeout: 120_000 });
  await expect(row).toContainText(/Uploading|Waiting for the machine/);
  exam.accepts = true;
  await upload(work);
  await expect(row).toContainText("Uploaded");
  expect(received).toHaveLength(1);
  const [{ sha256, size }] = received;
  await expect(row).toContainText(sha256);
  const [{ automation }] = (await get(instances, "tenant-ada", "exam")).status.environments;
  expect(automation.submissionReceipt).toMatchObject({ sha256, size });

  // The file for spreadsheets, and the student's mail, have the same digest.
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Export as CSV" }).click()]);
  expect((await (await download.createReadStream()).toArray()).join("")).toContain(sha256);
  await expect.poll(async () => (await control("mails")).output!.replace(/=\r?\n/g, "").includes(sha256)).toBe(true);
  await clear("ada");
});

test("a failed upload is requested again with one click, and succeeds", async ({ page }) => {
  await clear("ada");
  // The nodes are still closed, so the pods of the uploads wait.
  await machine("ada", "failed", { prettyName: "Failed", running: false, contentUrls: { default: { destination: `${base}/upload` } } });
  await kubectl("label", instances, "failed", "-n", "tenant-ada", "crownlabs.polito.it/instance-submission-requested=true");
  const jobs = async () => JSON.parse(await kubectl("get", "jobs", "-n", "tenant-ada", "-o", "json")).items;
  await expect.poll(async () => (await jobs()).length).toBe(1);
  // A deleted Job counts as a failed attempt, and one attempt is allowed here.
  await kubectl("delete", "job", (await jobs())[0].metadata.name, "-n", "tenant-ada");
  await login(page, "eve", "/courses/tea/exams");
  const row = page.locator("#exam-tenant-ada-failed");
  await expect(row).toContainText("Upload failed");
  await row.getByRole("button", { name: /upload/i }).click();
  const work = mkdtempSync(join(tmpdir(), "exam-"));
  writeFileSync(join(work, "answers.txt"), "43\n");
  exam.accepts = true;
  await upload(work);
  await expect(row).toContainText("Uploaded");
  await expect(row).toContainText(received.at(-1)!.sha256);
  await clear("ada");
});
