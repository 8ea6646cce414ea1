// Stores the time zone of the user in a cookie, and shows a notice while the page is not live.
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
// A stream that ends is opened again immediately. An error means that it cannot be opened.
document.addEventListener("htmx:sse:error", () => live(false));
// After a form is sent, the browser loads another page, so this page is not updated. If no page is loaded, updates resume.
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
// When the session has expired, a page with typed text keeps it, so that the user can send it and log in.
document.addEventListener("htmx:before:swap", (event) => {
  const fields = [...document.querySelectorAll("main input, main textarea")];
  const isTyped = fields.some((field) => field.value !== field.defaultValue);
  if (event.detail.ctx.response.status !== 401 || !isTyped) return;
  event.preventDefault();
  live(false);
});
// If the server is overloaded or does not respond, the page keeps its content and retries after the time in the response.
// The response of a proxy has no time.
let waits = false;
document.addEventListener("htmx:after:request", ({ detail: { ctx: { response } } }) => {
  const isAway = [502, 503, 504].includes(response.status);
  const seconds = Number(response.headers.get("retry-after")) || (isAway ? 5 : 0);
  if (seconds) setTimeout(() => document.body.dispatchEvent(new Event("refresh")), seconds * 1000);
  if (isAway) live(false);
  else if (waits) live(true);
  waits = isAway;
});
