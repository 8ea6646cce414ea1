// Tells the dashboard the zone of the user's times, and the user when the page is not live.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const known = document.cookie.split("; ").find((cookie) => cookie.startsWith("crownlabs-zone="));
if (zone && known !== `crownlabs-zone=${zone}`) {
  document.cookie = `crownlabs-zone=${zone}; path=/; secure; samesite=lax; max-age=31536000`;
}
const live = (isLive) => {
  document.documentElement.dataset.live = isLive ? "yes" : "no";
  const notice = document.getElementById("not-live");
  if (notice) notice.hidden = isLive;
};
document.addEventListener("htmx:sse:after:connection", () => live(true));
// A stream that ends is begun anew at once; one that cannot be begun is broken.
document.addEventListener("htmx:sse:error", () => live(false));
// A form leads to a page that is read then: this one is not read anew meanwhile, unless the form leads nowhere.
let leaves = false;
document.addEventListener("submit", () => {
  leaves = true;
  setTimeout(() => {
    leaves = false;
    document.body.dispatchEvent(new Event("refresh"));
  }, 15_000);
});
document.addEventListener("htmx:before:request", (event) => {
  if (leaves) event.preventDefault();
});
// What is typed stays when the session is over: it is sent after the login.
document.addEventListener("htmx:before:swap", (event) => {
  const fields = [...document.querySelectorAll("main input, main textarea")];
  const isTyped = fields.some((field) => field.value !== field.defaultValue);
  if (event.detail.ctx.response.status !== 401 || !isTyped) return;
  event.preventDefault();
  live(false);
});
// Too many requests, or nobody answers: the page stays as it is, and is asked for again when it was told to be.
let waits = false;
document.addEventListener("htmx:after:request", ({ detail: { ctx: { response } } }) => {
  const seconds = Number(response.headers.get("retry-after"));
  if (seconds) setTimeout(() => document.body.dispatchEvent(new Event("refresh")), seconds * 1000);
  if (response.status === 503) live(false);
  else if (waits) live(true);
  waits = response.status === 503;
});
