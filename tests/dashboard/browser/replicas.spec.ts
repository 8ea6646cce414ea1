// Two replicas are killed in turn: users stay logged in, and every action takes effect once.
import { expect, test } from "@playwright/test";
import { clear, control, get, kubectl, login } from "./site";

test("two hundred actions succeed while replicas are killed", async ({ page }) => {
  await clear("bob");
  await login(page, "bob");
  let goesOn = true;
  const killing = (async () => {
    for (let number = 0; goesOn; number = 1 - number) {
      await control("restart-replica", { number });
      await new Promise((resolve) => setTimeout(resolve, 5_000));
    }
  })();
  const fresh = async () =>
    page.evaluate(async () => {
      for (;;) {
        const answer = await fetch("/").catch(() => undefined);
        if (answer?.ok && !answer.redirected) return answer.text();
      }
    });
  // Retries each action until the dashboard responds, and not only the proxy.
  const send = (path: string, fields: Record<string, string>) =>
    page.evaluate(async ([path, body]) => {
      for (;;) {
        const answer = await fetch(path, {
          method: "POST",
          body,
          headers: { "content-type": "application/x-www-form-urlencoded" },
          redirect: "manual",
        }).catch(() => undefined);
        if (answer?.type === "opaqueredirect") return;
        if (answer && answer.status < 500) throw new Error(`${path}: ${answer.status}`);
      }
    }, [path, new URLSearchParams(fields).toString()]);
  expect(await fresh()).toContain("Routing exercise");
  const name = "routing-of-bob";
  await send("/machines", { name, templateNamespace: "workspace-tea", template: "desktop" });
  const uid = (await get("instances.crownlabs.polito.it", "tenant-bob", name)).metadata.uid;
  for (let number = 0; number < 199; number++) {
    await send(`/machines/tenant-bob/${name}/rename`, { uid, prettyName: `Name ${number}` });
    const { items } = JSON.parse(await kubectl("get", "instances.crownlabs.polito.it", "-n", "tenant-bob", "-o", "json"));
    expect(items).toHaveLength(1);
    expect(items[0].spec.prettyName).toBe(`Name ${number}`);
  }
  goesOn = false;
  await killing;
  await page.goto("/");
  await expect(page.getByRole("article", { name: "Name 198", exact: true })).toBeVisible();
});
