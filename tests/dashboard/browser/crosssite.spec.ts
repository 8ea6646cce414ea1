// Requests that the page of another host makes the browser send. Windows may be led to the dashboard, and nothing else.
import { expect, test } from "@playwright/test";
import { clear, control, login, machine, url } from "./site";

const hosts = ["https://machines.localhost/", "https://evil.labs.localhost/"];

// Returns the number of responses of the dashboard with a status code, on some routes.
async function answers(code: number, routes: string[]): Promise<number> {
  const { output } = await control("metrics");
  const lines = [...output!.matchAll(/^dashboard_requests_total\{([^}]*)\} (\d+)$/gm)];
  const wanted = lines.filter(([, labels]) => labels.includes(`code="${code}"`) && routes.some((route) => labels.includes(`route="${route}"`)));
  return wanted.reduce((sum, [, , count]) => sum + Number(count), 0);
}

for (const host of hosts) {
  test(`requests of ${host} are rejected, and its links are served`, async ({ page, context }) => {
    await clear("ada");
    await machine("ada", "here", { prettyName: "Here", running: false });
    await login(page, "ada");
    const evil = await context.newPage();
    await evil.route(`${host}**`, (route) => route.fulfill({ contentType: "text/html", body: "<h1>a machine</h1>" }));
    await evil.goto(host);
    const pages = ["account", "courses"];
    const [rejected, served] = [await answers(403, ["other"]), await answers(200, pages)];
    await evil.evaluate(async (url) => {
      const ended = (element: HTMLElement) => new Promise<void>((resolve) => {
        element.onload = element.onerror = () => resolve();
        document.body.append(element);
      });
      const create = (name: string, properties: object) => Object.assign(document.createElement(name), properties);
      const ways = Array.from({ length: 20 }, () => fetch(`${url}/account`, { credentials: "include", mode: "no-cors" }).then(() => undefined, () => undefined));
      await Promise.all([
        ...ways,
        ended(create("img", { src: `${url}/courses` })),
        ended(create("script", { src: `${url}/` })),
        ended(create("link", { rel: "stylesheet", href: `${url}/` })),
        ended(create("iframe", { src: `${url}/account` })),
        ended(create("object", { data: `${url}/courses` })),
      ]);
    }, url);
    await expect.poll(() => answers(403, ["other"])).toBeGreaterThanOrEqual(rejected + 25);
    expect(await answers(200, pages)).toBe(served);
    // A link, and a window that is opened.
    await evil.evaluate((url) => {
      document.body.innerHTML = `<a href="${url}/">the laboratory</a>`;
    }, url);
    await evil.getByRole("link").click();
    await expect(evil.getByRole("article", { name: "Here", exact: true })).toBeVisible();
    await clear("ada");
  });
}
