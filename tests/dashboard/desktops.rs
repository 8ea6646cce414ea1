//! The desktops of machines: each serves a page at the address of a Service, and echoes the messages of its `WebSocket`.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread;

use cluster::sshd::LocalAddress;
use parking_lot::Mutex;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocket};

/// The port of the web interface of a machine.
const PORT: u16 = 6_080;
/// The page says what its `WebSocket` gets, and when it ends.
const PAGE: &str = r#"<!doctype html><title>Desktop</title><h1>Desktop</h1><p id="screen"></p>
<script>
  const screen = document.getElementById("screen");
  const socket = new WebSocket(new URL("websockify", location.href.replace("https:", "wss:")));
  socket.onopen = () => socket.send("a picture");
  socket.onmessage = ({ data }) => { screen.textContent = data; };
  socket.onclose = () => { screen.textContent = "closed"; };
</script>"#;

/// The desktops that were opened.
#[derive(Default)]
pub struct Desktops(Mutex<Vec<LocalAddress>>);

impl Desktops {
    /// Opens a desktop at an address of a Service, until the end of the test program.
    pub fn open_at(&self, address: &str) {
        let address: IpAddr = address.parse().expect("an address");
        self.0.lock().push(LocalAddress::add(address).expect("the address"));
        let listener = TcpListener::bind(SocketAddr::new(address, PORT)).expect("a port");
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || serve(stream));
            }
        });
    }
}

/// Serves one request. `None` means that the other side is gone.
fn serve(mut stream: TcpStream) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?;
    let mut headers = head.lines().filter_map(|line| line.split_once(": "));
    let key =
        headers.find_map(|(name, value)| name.eq_ignore_ascii_case("sec-websocket-key").then_some(value));
    let Some(key) = key else {
        let length = PAGE.len();
        let answer =
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n{PAGE}");
        return stream.write_all(answer.as_bytes()).ok();
    };
    let accept = derive_accept_key(key.as_bytes());
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    stream.write_all(answer.as_bytes()).ok()?;
    let mut socket = WebSocket::from_raw_socket(stream, Role::Server, None);
    loop {
        let message = socket.read().ok()?;
        if message.is_text() {
            socket.send(message).ok()?;
        }
    }
}
