// Stores the time zone of the user in a cookie, and keeps the page live.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const known = document.cookie.split("; ").find((cookie) => cookie.startsWith("__Host-crownlabs-zone="));
if (zone && known !== `__Host-crownlabs-zone=${zone}`) {
  document.cookie = `__Host-crownlabs-zone=${zone}; path=/; secure; samesite=lax; max-age=31536000`;
}
// The stream of the page is open; its content could not be updated; its session is over, as the content says.
let isOpen = false;
let isAway = false;
let isOver = false;
// The API server does not answer, as the stream says.
let isSilent = false;
// Shows a notice while the page is not live. Old content has its own notice.
const show = () => {
  const isLive = isOpen && !isAway && !isSilent;
  document.documentElement.dataset.live = isLive ? "yes" : "no";
  const isShown = { silent: isSilent && !document.getElementById("old"), "not-live": !isLive && !isSilent && (!isOver || isAway) };
  for (const id of Object.keys(isShown)) {
    const notice = document.getElementById(id);
    if (notice) notice.hidden = !isShown[id];
  }
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
// A stream that ends or breaks is opened again immediately. A hidden page has no stream: over HTTP/1.1, a browser opens at most
// six connections to a host for all of its pages. htmx closes the stream of a page that becomes hidden, unless it is being
// opened.
document.addEventListener("htmx:sse:before:connection", (event) => {
  isOpen = false;
  if (document.hidden) event.preventDefault();
});
document.addEventListener("htmx:sse:after:connection", ({ detail }) => {
  if (document.hidden) {
    detail.connection.abortController.abort();
    return;
  }
  isOpen = true;
  isSilent = false;
  if (isOver) refresh();
  isOver = false;
  show();
});
document.addEventListener("htmx:sse:error", ({ detail }) => lost(detail.status));
// The stream says it again when it is opened.
document.addEventListener("silent", () => {
  isSilent = true;
  show();
});
document.addEventListener("answers", () => {
  isSilent = false;
  isAway = false;
  refresh();
  show();
});
const isTyped = () =>
  [...document.querySelectorAll("main input, main textarea")].some((field) => field.value !== field.defaultValue);
// After half an hour without a visit, an open page gets no updates. A user who returns to it visits it.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  const isConnected = document.querySelector("[data-socket]") !== null;
  if (performance.now() > 1_500_000 && !isTyped() && !isConnected) location.reload();
  refresh();
  document.getElementById("stream")?.dispatchEvent(new Event("retry"));
});
// Without a stream, a hidden page asks for a machine that starts or stops.
setInterval(() => {
  if (document.hidden && document.querySelector(".badge.busy")) refresh();
}, 15_000);
// After a form is sent, the browser loads another page, so this page is not updated. If no page is loaded, updates
// resume.
let leaves = false;
document.addEventListener("submit", () => {
  leaves = true;
  setTimeout(() => { leaves = false; }, 15_000);
});
document.addEventListener("htmx:before:request", (event) => {
  const { sourceElement } = event.detail.ctx;
  const isHidden = sourceElement.id === "stream" && document.hidden;
  if (!leaves && !isHidden) return;
  event.preventDefault();
  if (!isHidden) retry(sourceElement, 10);
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
  const isKept = response.status === 401 && isTyped();
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
// Counts the elapsed time of each start from the time in the page.
setInterval(() => {
  for (const element of document.querySelectorAll("[data-elapsed]")) {
    const { elapsed } = element.dataset;
    if (element.shown !== elapsed) Object.assign(element, { shown: elapsed, start: Date.now() - elapsed * 1000 });
    const seconds = Math.floor((Date.now() - element.start) / 1000);
    const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
    const text = (parts[0] ? parts : parts.slice(1)).map((part) => String(part).padStart(2, "0")).join(":");
    element.textContent = text.replace(/^0/, "");
  }
}, 1000);
// The machines that change, and the machine of the last form, which the notice is about. When its change ends, so does
// the notice. A machine that is ready is announced if the page is hidden.
const changing = new Set();
// Stores the machine of a form for the next page, and returns that of the form before. A browser can forbid to store it.
const formOf = (machine) => {
  try {
    const before = sessionStorage.getItem("about");
    sessionStorage.setItem("about", machine);
    return before;
  } catch {
    return null;
  }
};
const about = formOf("");
document.addEventListener("submit", ({ target }) => {
  const [, , , machine] = new URL(target.action).pathname.split("/");
  formOf(machine ?? target.elements.name?.value ?? "");
});
const may = () => ("Notification" in window ? Notification.permission : "denied");
const ended = (name, top) => {
  if (name === about) document.querySelector(".notice.done")?.remove();
  const badge = top?.querySelector(".badge.good");
  if (!badge || !document.hidden || may() !== "granted") return;
  try {
    new Notification(`${top.querySelector("h1, h2").textContent}: ${badge.textContent}`, { tag: name });
  } catch {
    // Browsers of phones have the class, but do not allow pages to use it.
  }
};
// The page of the files opens their machine once it is ready, if the last form has started it or it was not ready when the
// page was loaded.
let waits = document.querySelector("[data-waits]") !== null;
const follow = () => {
  const place = document.querySelector("[data-opens]")?.dataset.opens;
  if (!waits || !place) return;
  waits = false;
  location.replace(place);
};
const observe = () => {
  follow();
  const button = document.getElementById("notify");
  const isUseless = may() !== "default";
  // Only a difference is written: every write is a mutation, which is observed.
  if (button && button.hidden !== isUseless) button.hidden = isUseless;
  const tops = new Map([...document.querySelectorAll("[data-machine]")].map((top) => [top.dataset.machine, top]));
  const isBusy = (name) => tops.get(name)?.querySelector(".badge.busy");
  for (const name of [...changing]) {
    if (isBusy(name)) continue;
    changing.delete(name);
    ended(name, tops.get(name));
  }
  for (const name of tops.keys()) if (isBusy(name)) changing.add(name);
};
document.addEventListener("click", ({ target }) => {
  if (target.id === "notify") Notification.requestPermission().then(observe);
});
new MutationObserver(observe).observe(document.body, { subtree: true, childList: true, attributeFilter: ["class", "hidden"] });
observe();
