// The parts of a page that need a script: buttons that copy, drafts of forms, questions that close, and the focus.
document.documentElement.dataset.scripts = "yes";

// Copies the text of a button, and says so in the element behind it. Without the permission to copy, the text is selected.
document.addEventListener("click", async ({ target }) => {
  const button = target.closest?.("button.copy");
  if (!button) return;
  const said = button.nextElementSibling;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    said.textContent = button.dataset.done;
    setTimeout(() => { said.textContent = ""; }, 4_000);
  } catch {
    const text = button.parentElement.querySelector("code");
    if (text) getSelection().selectAllChildren(text);
  }
});

// Keeps typed text until its form has succeeded, for a reload and for Back. Fields without `data-draft`, such as keys, are
// never kept. The storage belongs to the tab, and is emptied at the logout.
const drafts = (() => {
  try {
    return window.sessionStorage;
  } catch {
    return null;
  }
})();
const who = document.querySelector(".person span")?.textContent ?? "";
const draftsOf = (action) => `draft ${who} ${action} `;
const draftOf = (field) =>
  `${draftsOf(field.form.getAttribute("action"))}${field.form.elements.template?.value ?? ""} ${field.name}`;
const unchanged = (field) =>
  field.value === (field.options ? [...field.options].find((option) => option.defaultSelected)?.value ?? "" : field.defaultValue);
const keep = ({ target }) => {
  if (!drafts || !target.form || !target.matches?.("[data-draft]")) return;
  if (unchanged(target)) drafts.removeItem(draftOf(target));
  else drafts.setItem(draftOf(target), target.value);
};
document.addEventListener("input", keep);
document.addEventListener("change", keep);
document.addEventListener("submit", ({ target }) => {
  const action = target.getAttribute("action");
  if (action === "/logout") drafts?.clear();
  else if (target.method === "post") drafts?.setItem("sent", action);
});
const restore = () => {
  if (!drafts) return;
  const sent = drafts.getItem("sent");
  drafts.removeItem("sent");
  if (sent && document.querySelector(".notice.done")) {
    for (const key of Object.keys(drafts)) if (key.startsWith(draftsOf(sent))) drafts.removeItem(key);
  }
  for (const field of document.querySelectorAll("[data-draft]")) {
    const text = drafts.getItem(draftOf(field));
    if (text === null || text === field.value) continue;
    field.value = text;
    for (let around = field.closest("details"); around; around = around.parentElement.closest("details")) around.open = true;
  }
};
restore();

// Reads a file into the text field that it names.
document.addEventListener("change", async ({ target }) => {
  const field = document.getElementById(target.dataset?.into ?? "");
  if (!field || !target.files?.[0]) return;
  field.value = await target.files[0].text();
  keep({ target: field });
});

// Selects all boxes of a table, or none of them if all are selected.
document.addEventListener("click", ({ target }) => {
  const button = target.closest?.("[data-selects]");
  if (!button) return;
  const boxes = [...button.form.querySelectorAll(`[name="${button.dataset.selects}"]`)];
  const isChecked = boxes.some((box) => !box.checked);
  for (const box of boxes) box.checked = isChecked;
});

// Closes a question when the user cancels or presses Escape. The page does not move.
const closeQuestion = (question) => {
  if (!question) return;
  question.open = false;
  question.querySelector("summary").focus({ preventScroll: true });
};
document.addEventListener("click", (event) => {
  const cancel = event.target.closest?.(".cancel");
  if (!cancel) return;
  event.preventDefault();
  closeQuestion(cancel.closest("details"));
});
document.addEventListener("keydown", ({ key }) => {
  if (key === "Escape") closeQuestion(document.querySelector("details.confirm[open]"));
});

// Sends the form of an action on a class. If no replica answers, it is sent again: nothing is done twice. An action that is
// not complete continues by itself.
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches("[data-again]")) return;
  event.preventDefault();
  const body = new URLSearchParams(new FormData(form));
  for (const button of document.querySelectorAll("[data-again] button")) button.disabled = true;
  for (;;) {
    try {
      const answer = await fetch(form.action, { method: "POST", body });
      if (answer.redirected) return location.assign(answer.url);
      if (answer.status < 500) break;
    } catch {
      // The connection was closed.
    }
    await new Promise((next) => { setTimeout(next, 2_000); });
  }
  form.submit();
});
document.querySelector("form[data-automatic]")?.requestSubmit();

// If an update removes the element with the focus, the focus moves to the next element around it that is still there.
let focused = null;
let around = [];
document.addEventListener("focusin", ({ target }) => {
  focused = target;
  around = [];
  for (let element = target; element; element = element.parentElement) if (element.id) around.push(element.id);
});
document.addEventListener("pointerdown", () => { focused = null; });
new MutationObserver(() => {
  const isLost = focused && !focused.isConnected && document.activeElement === document.body;
  if (!isLost) return;
  const place = around.map((id) => document.getElementById(id)).find((element) => element);
  const next = place?.id === "content" ? place : place?.querySelector("a[href], button:enabled, summary, input, select");
  (next ?? document.getElementById("content"))?.focus({ preventScroll: true });
}).observe(document.body, { childList: true, subtree: true });
