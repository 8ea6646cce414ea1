// Stores the time zone of the user in a cookie, and keeps the page live.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const known = document.cookie.split("; ").find((cookie) => cookie.startsWith("crownlabs-zone="));
if (zone && known !== `crownlabs-zone=${zone}`) {
  document.cookie = `crownlabs-zone=${zone}; path=/; secure; samesite=lax; max-age=31536000`;
}
// The stream of the page is open; its content could not be updated; its session is over, as the content says.
let isOpen = false;
let isAway = false;
let isOver = false;
// Shows a notice while the page is not live.
const show = () => {
  const isLive = isOpen && !isAway;
  document.documentElement.dataset.live = isLive ? "yes" : "no";
  const notice = document.getElementById("not-live");
  if (notice) notice.hidden = isLive || (isOver && !isAway);
};
const refresh = () => document.body.dispatchEvent(new Event("refresh"));
// Repeats the request of an element after once to twice this time: an outage ends for all pages at once.
const timers = new Map();
const retry = (element, seconds) => {
  clearTimeout(timers.get(element));
  const again = () => element.dispatchEvent(new Event("retry"));
  if (seconds) timers.set(element, setTimeout(again, seconds * 1000 * (1 + Math.random())));
};
// The stream cannot be opened. Without a session, the content is updated once, and again with the next stream.
const lost = (status) => {
  const isFirst = status === 401 && !isOver;
  isOpen = false;
  isOver ||= isFirst;
  if (isFirst) refresh();
  show();
};
// A stream that ends or breaks is opened again immediately.
document.addEventListener("htmx:sse:before:connection", () => { isOpen = false; });
document.addEventListener("htmx:sse:after:connection", () => {
  isOpen = true;
  if (isOver) refresh();
  isOver = false;
  show();
});
document.addEventListener("htmx:sse:error", ({ detail }) => lost(detail.status));
// After a form is sent, the browser loads another page, so this page is not updated. If no page is loaded, updates
// resume.
let leaves = false;
document.addEventListener("submit", () => {
  leaves = true;
  setTimeout(() => { leaves = false; }, 15_000);
});
document.addEventListener("htmx:before:request", (event) => {
  if (!leaves) return;
  event.preventDefault();
  retry(event.detail.ctx.sourceElement, 10);
});
// If the server is overloaded or does not respond, the page keeps its content and retries after the time in the
// response. The response of a proxy has no time, and no content. A page with typed text keeps it when the session
// is over, so that the user can send it and log in.
document.addEventListener("htmx:after:request", (event) => {
  const { sourceElement, response, text } = event.detail.ctx;
  if (sourceElement.id !== "content") {
    retry(sourceElement, 5);
    lost(response.status);
    return;
  }
  const fields = [...document.querySelectorAll("main input, main textarea")];
  const isTyped = fields.some((field) => field.value !== field.defaultValue);
  const isKept = response.status === 401 && isTyped;
  isAway = [429, 502, 503, 504].includes(response.status) || !text.includes('id="content"') || isKept;
  if (isAway) event.preventDefault();
  retry(sourceElement, isAway && (Number(response.headers.get("retry-after")) || 5));
  show();
});
// A request that gets no response. Other errors have no context.
document.addEventListener("htmx:error", ({ detail: { ctx } }) => {
  if (!ctx) return;
  isAway ||= ctx.sourceElement.id === "content";
  retry(ctx.sourceElement, 5);
  show();
});
