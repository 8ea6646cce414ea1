// The screen of a virtual machine: noVNC with limits for the data of a machine, and the controls of the page.
import RFB from "@novnc/novnc";

// The largest screen, of 8K. The browser keeps it twice, with four bytes for each pixel.
const MOST_PIXELS = 7680 * 4320;
const MOST_CURSOR = 256 * 256;
// The longest text of the clipboard, in characters, in both directions.
const MOST_CLIPBOARD = 65_536;
// The pictures that wait for the ones before them, in bytes, and the size of one without data.
const MOST_WAITING = 256 << 20;
const SMALL = 256;
// The encodings of cursors, and of H.264, which is decoded into a picture of any size, and of JPEG files, which have no end.
const CURSORS = [-239, 0x574d5664];
const REFUSED = [50, 21];
// The protocol of KubeVirt: the WebSocket carries the bytes of the VNC server unchanged.
const PROTOCOL = "plain.kubevirt.io";
// The codes of the server: the machine has no screen yet; someone else looks at it.
const NO_SCREEN = 4404;
const TAKEN = 4409;
const SESSION_OVER = 4401;
// The code of a connection without a close frame.
const LOST = 1006;
// The time between two attempts while there is no screen, in milliseconds.
const RETRY = 5_000;
// Proxies close connections that are idle for a minute.
const KEEP_ALIVE = 25_000;
// The time between two typed characters: the buffer of a virtual keyboard is short.
const TYPING = 20;

// A connection to a screen. noVNC trusts the sizes that a server states; a machine is not trusted, so they are checked before
// memory is reserved. The receive queue of noVNC has at most 40 MiB.
class Screen extends RFB {
  // The bytes of a long text of the clipboard that are still skipped.
  skipped = 0;
  // Whether the machine has sent something invalid.
  isInvalid = false;

  constructor(target, socket) {
    super(target, socket);
    this.limitWaiting(this._display);
    const receive = socket.onmessage;
    socket.onmessage = (event) => this.guarded(() => receive(event));
  }

  guarded(handle) {
    try {
      return handle();
    } catch (error) {
      this.isInvalid = true;
      return this._fail(error.message);
    }
  }

  // A picture waits until the ones before it are decoded, and a broken one never is.
  limitWaiting(display) {
    const push = display._renderQPush.bind(display);
    let waiting = 0;
    display._renderQPush = (action) => {
      if (!display.pending()) waiting = 0;
      waiting += action.data?.length ?? action.img?.getAttribute("src").length ?? SMALL;
      if (waiting > MOST_WAITING) {
        // noVNC itself handles the errors of decoders.
        this.isInvalid = true;
        throw new Error("too many pictures wait");
      }
      push(action);
    };
  }

  // It also runs outside of `onmessage`, after a picture is drawn.
  _handleMessage() {
    return this.guarded(() => super._handleMessage());
  }

  _normalMsg() {
    if (this.skipped === 0) return super._normalMsg();
    const bytes = Math.min(this.skipped, this._sock.rQlen());
    this._sock.rQskipBytes(bytes);
    this.skipped -= bytes;
    return true;
  }

  _resize(width, height) {
    if (width * height > MOST_PIXELS) throw new Error("the screen is too large");
    super._resize(width, height);
  }

  _handleRect() {
    const { x, y, width, height, encoding } = this._FBU;
    if (REFUSED.includes(encoding)) throw new Error("the encoding has no limit");
    const isOutside = x + width > this._fbWidth || y + height > this._fbHeight;
    if (encoding in this._decoders && isOutside) throw new Error("a picture is outside of the screen");
    if (CURSORS.includes(encoding) && width * height > MOST_CURSOR) throw new Error("the cursor is too large");
    return super._handleRect();
  }

  // A long text is skipped while it arrives. A negative length means a compressed text, which may be of any size.
  _handleServerCutText() {
    if (this._sock.rQwait("ServerCutText header", 7, 1)) return false;
    const header = this._sock.rQpeekBytes(7);
    const length = new DataView(header.buffer).getInt32(3);
    if (length >= 0 && length <= MOST_CLIPBOARD) return super._handleServerCutText();
    this._sock.rQskipBytes(7);
    this.skipped = Math.abs(length);
    if (length > 0) this.dispatchEvent(new CustomEvent("toolong"));
    return true;
  }

  // Asks for a change of one pixel, which a machine need not answer.
  keepAlive() {
    RFB.messages.fbUpdateRequest(this._sock, true, 0, 0, 1, 1);
  }

  // Releases the keys that are held down.
  release() {
    this._keyboard._allKeysUp();
  }

  name(label) {
    this._canvas.tabIndex = 0;
    this._canvas.setAttribute("role", "application");
    this._canvas.setAttribute("aria-label", label);
    this._canvas.setAttribute("aria-describedby", "console-leave");
  }
}

const part = (name) => document.getElementById(`console-${name}`);
const box = document.getElementById("console");
const target = part("screen");
const texts = JSON.parse(box.dataset.texts);
const pause = (time) => new Promise((next) => { setTimeout(next, time); });

// The connection, if there is one, and the time of the next attempt.
let screen = null;
let next = 0;

const say = (name) => {
  part("state").textContent = texts[name] ?? texts[LOST];
  box.dataset.state = screen && name === "connected" ? "connected" : "not-connected";
  for (const control of box.querySelectorAll("[data-needs-screen]")) control.disabled = box.dataset.state !== "connected";
  part("reconnect").hidden = Boolean(screen);
  part("take-over").hidden = name !== TAKEN;
};

const ended = (code) => {
  screen = null;
  say(code);
  next = code === NO_SCREEN ? Date.now() + RETRY : 0;
};

const options = () => {
  if (!screen) return;
  screen.scaleViewport = part("scale").checked;
  screen.viewOnly = part("view-only").checked;
};

const connect = (isTakeover) => {
  if (screen) return;
  next = 0;
  const url = new URL(box.dataset.socket, location.href);
  url.protocol = url.protocol.replace("http", "ws");
  if (isTakeover) url.search = "takeover=true";
  const socket = new WebSocket(url, [PROTOCOL]);
  let code = LOST;
  socket.addEventListener("close", (event) => { code = event.code; });
  const opened = new Screen(target, socket);
  screen = opened;
  say("connecting");
  opened.name(texts.screen);
  options();
  opened.addEventListener("connect", () => {
    say("connected");
    if (document.activeElement === document.body) opened.focus({ preventScroll: true });
  });
  opened.addEventListener("credentialsrequired", () => {
    opened.isInvalid = true;
    opened.disconnect();
  });
  opened.addEventListener("disconnect", () => ended(opened.isInvalid ? "invalid" : code));
  opened.addEventListener("clipboard", ({ detail }) => { part("text").value = detail.text; });
  opened.addEventListener("toolong", () => { part("said").textContent = texts.too_long; });
};

// The symbol of a key on a keyboard with the layout of the United States, and whether Shift is needed.
const ENTER = 0xff0d;
const TAB = 0xff09;
const SHIFT = 0xffe1;
const keyOf = (character) => ({ "\n": ENTER, "\t": TAB })[character] ?? character.codePointAt(0);
const isShifted = (character) => /[A-Z~!@#$%^&*()_+{}|:"<>?]/.test(character);

// Types a text with the keyboard of the machine, which works in every image. Other characters have no key there.
const type = async (text) => {
  const of = screen;
  const typed = [...text.replaceAll("\r\n", "\n")].filter((character) => /[\t\n\x20-\x7e]/.test(character));
  part("said").textContent = "";
  for (const character of typed) {
    if (!of || screen !== of) return;
    if (isShifted(character)) of.sendKey(SHIFT, "ShiftLeft", true);
    of.sendKey(keyOf(character), null);
    if (isShifted(character)) of.sendKey(SHIFT, "ShiftLeft", false);
    await pause(TYPING);
  }
  part("said").textContent = texts.typed;
};

part("reconnect").addEventListener("click", () => {
  // Without a session, the page leads to the login.
  if (part("state").textContent === texts[SESSION_OVER]) location.reload();
  else connect(false);
});
part("take-over").addEventListener("click", () => connect(true));
part("reset").addEventListener("click", () => screen?.sendCtrlAltDel());
// Browsers of some phones have no full screen.
part("full").hidden = !target.requestFullscreen;
part("full").addEventListener("click", () => target.requestFullscreen());
part("scale").addEventListener("change", options);
part("view-only").addEventListener("change", options);
part("paste").addEventListener("click", () => {
  screen?.clipboardPasteFrom(part("text").value.slice(0, MOST_CLIPBOARD));
  part("said").textContent = texts.pasted;
});
part("type").addEventListener("click", () => type(part("text").value.slice(0, MOST_CLIPBOARD)));
for (const key of box.querySelectorAll("[data-key]")) {
  key.addEventListener("click", () => screen?.sendKey(Number(key.dataset.key), key.dataset.code));
}
// The screen takes all keys, also Tab. This combination leads out of it.
target.addEventListener("keydown", (event) => {
  if (!event.shiftKey || event.key !== "F6") return;
  event.preventDefault();
  event.stopPropagation();
  screen?.release();
  part("reset").focus();
}, true);
setInterval(() => {
  if (box.dataset.state === "connected") screen.keepAlive();
}, KEEP_ALIVE);
// Without a screen, a visible page asks again.
setInterval(() => {
  if (next && next <= Date.now() && !document.hidden) connect(false);
}, 1_000);
addEventListener("pagehide", () => screen?.disconnect());
connect(false);
