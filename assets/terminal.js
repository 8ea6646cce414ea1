// The terminal of a machine: xterm.js, and the WebSocket of its page.
import { FitAddon } from "@xterm/addon-fit";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { Terminal } from "@xterm/xterm";

// The number of characters in one message, and of messages on the way, as in src/controllers/dashboard/terminal/relay.rs.
const PIECE = 4_096;
const ON_THE_WAY = 8;
// The number of shown messages that are confirmed at once.
const CONFIRMED = 64;
// A machine that causes more input than this without reading it loses its connection.
const MOST_WAITING = 4 << 20;
const LONGEST_TITLE = 80;
const SESSION_OVER = 4_401;

const element = (id) => document.getElementById(id);
const screen = element("screen");
const [tools, ended, why, again, said, reader, copy] = ["tools", "ended", "why", "again", "said", "reader", "copy"].map(element);
const { socket: path, name, label, much } = screen.dataset;
const sentence = (code) => document.querySelector(`#sentences [data-code="${code}"]`)?.textContent;

// The policy of the page allows only styles with its nonce.
const { nonce } = document.querySelector("script[nonce]");
const create = document.createElement.bind(document);
document.createElement = (tag, options) => {
  const created = create(tag, options);
  if (tag === "style") created.nonce = nonce;
  return created;
};

// Opens a link of the output after a click. The machine chooses it, so the page of the dashboard is unknown to it.
const open = (event, address) => {
  if (/^https?:\/\//i.test(address)) window.open(address, "_blank", "noopener,noreferrer");
};
const hover = (event, address) => { screen.title = address; };
const leave = () => { screen.title = ""; };

Terminal.strings.promptLabel = label;
Terminal.strings.tooMuchOutput = much;
const terminal = new Terminal({
  scrollback: 5_000,
  minimumContrastRatio: 4.5,
  linkHandler: { activate: open, hover, leave },
  theme: { background: "#15171c", foreground: "#e9ebef" },
});
const fit = new FitAddon();
terminal.loadAddon(fit);
terminal.loadAddon(new WebLinksAddon(open, { hover, leave }));

// The output cannot reach the clipboard, and the bell is silent.
terminal.parser.registerOscHandler(52, () => true);

// The title of the shell, behind the name of the machine, so that it cannot pretend to be another page.
const page = document.title;
let title = "";
let titled = 0;
terminal.onTitleChange((text) => {
  title = text.replace(/\p{C}/gu, "").slice(0, LONGEST_TITLE);
  titled ||= setTimeout(() => {
    titled = 0;
    document.title = title ? `${name}: ${title}` : page;
  }, 250);
});

// What is not sent yet: the typed text, and the size of the terminal. Neither outlives its connection.
let socket = null;
let waiting = "";
let size = null;
let onTheWay = 0;
let unconfirmed = 0;
const send = (message) => {
  onTheWay += 1;
  socket.send(JSON.stringify(message));
};
const isOpen = () => socket?.readyState === WebSocket.OPEN;
const flush = () => {
  while (isOpen() && onTheWay < ON_THE_WAY && (size || waiting)) {
    if (size) {
      send({ type: "resize", ...size });
      size = null;
      continue;
    }
    // A character outside of the basic plane is not cut.
    const last = waiting.charCodeAt(PIECE - 1);
    const length = last >= 0xd800 && last <= 0xdbff ? PIECE - 1 : PIECE;
    send({ type: "input", data: waiting.slice(0, length).toWellFormed() });
    waiting = waiting.slice(length);
  }
};
const enter = (text) => {
  if (!isOpen()) return;
  waiting += text;
  if (waiting.length > MOST_WAITING) socket.close();
  else flush();
};

// Control, as a key that counts for the next character.
let isControl = false;
const control = (pressed) => {
  isControl = pressed;
  document.querySelector("[data-key=control]").setAttribute("aria-pressed", pressed);
};
terminal.onData((text) => {
  const isMeant = isControl && /^[@-_a-z ]$/.test(text);
  if (isControl) control(false);
  enter(isMeant ? String.fromCharCode(text.toUpperCase().charCodeAt(0) & 31) : text);
});
terminal.onResize(({ cols, rows }) => {
  size = { cols, rows };
  flush();
});

const shown = () => {
  unconfirmed += 1;
  if (unconfirmed < CONFIRMED) return;
  if (isOpen()) socket.send(`{"ack":${unconfirmed}}`);
  unconfirmed = 0;
};
const received = (message, from) => {
  // The output of an earlier connection.
  if (from !== socket) return;
  if (message.type === "taken") {
    onTheWay -= message.count;
    flush();
  } else if (message.type === "data") {
    terminal.write(message.data, () => from === socket && shown());
  } else {
    shown();
  }
};

const end = (code) => {
  waiting = "";
  size = null;
  terminal.options.disableStdin = true;
  why.textContent = sentence(code) ?? sentence(1_006);
  said.textContent = "";
  again.dataset.code = code;
  ended.hidden = false;
};
const connect = () => {
  ended.hidden = true;
  why.textContent = "";
  said.textContent = sentence("connecting");
  [waiting, size, onTheWay, unconfirmed] = ["", null, 0, 0];
  terminal.reset();
  fit.fit();
  const to = new URL(`${path}?cols=${terminal.cols}&rows=${terminal.rows}`, location.href);
  to.protocol = "wss:";
  const opened = new WebSocket(to);
  socket = opened;
  opened.addEventListener("open", () => {
    terminal.options.disableStdin = false;
    said.textContent = sentence("open");
    terminal.focus();
  });
  opened.addEventListener("message", ({ data }) => received(JSON.parse(data), opened));
  opened.addEventListener("close", ({ code }) => opened === socket && end(code));
};
again.addEventListener("click", () => {
  // The page leads to the login, and back.
  if (again.dataset.code === `${SESSION_OVER}`) location.reload();
  else connect();
});

// Copies the selected text.
const copySelection = () => {
  if (terminal.hasSelection()) navigator.clipboard.writeText(terminal.getSelection()).catch(() => {});
};
copy.addEventListener("click", copySelection);
terminal.attachCustomKeyEventHandler((event) => {
  const isCopy = event.ctrlKey && event.shiftKey && event.code === "KeyC";
  const isExit = event.shiftKey && event.key === "F6";
  if (!isCopy && !isExit) return true;
  event.preventDefault();
  if (event.type === "keydown") {
    if (isCopy) copySelection();
    // The tabulator belongs to the shell.
    else (ended.hidden ? copy : again).focus();
  }
  return false;
});

const arrow = (letter) => `\x1b${terminal.modes.applicationCursorKeysMode ? "O" : "["}${letter}`;
const typed = {
  escape: () => "\x1b",
  tab: () => "\t",
  left: () => arrow("D"),
  up: () => arrow("A"),
  down: () => arrow("B"),
  right: () => arrow("C"),
};
for (const button of tools.querySelectorAll("[data-key]")) {
  const { key } = button.dataset;
  if (key === "control") button.setAttribute("aria-pressed", "false");
  // The keyboard of a phone stays open.
  button.addEventListener("pointerdown", (event) => event.preventDefault());
  button.addEventListener("click", () => {
    if (key === "control") control(!isControl);
    else enter(typed[key]());
  });
}

// The mode for screen readers, which the browser remembers. It can forbid that.
const stored = (value) => {
  try {
    if (value !== undefined) localStorage.setItem("screen-reader", value);
    return localStorage.getItem("screen-reader");
  } catch {
    return null;
  }
};
const read = (isOn) => {
  terminal.options.screenReaderMode = isOn;
  reader.setAttribute("aria-pressed", isOn);
};
reader.addEventListener("click", () => {
  const isOn = !terminal.options.screenReaderMode;
  read(isOn);
  stored(isOn ? "on" : "off");
});

screen.hidden = false;
tools.hidden = false;
terminal.open(screen);
read(stored() === "on");
new ResizeObserver(() => fit.fit()).observe(screen);
// A page that the browser keeps for Back has lost its connection.
window.addEventListener("pageshow", ({ persisted }) => persisted && !isOpen() && end(1_006));
connect();
