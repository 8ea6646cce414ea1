//! A browser with an open terminal: the WebSocket of web SSH, as the web client uses it.

use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, WebSocket};
use tokio_tungstenite::tungstenite::{Error, client};

/// How long a browser waits for a message.
const PATIENCE: Duration = Duration::from_mins(1);

/// A WebSocket to `/webssh`.
pub struct Browser {
    socket: WebSocket<TcpStream>,
}

/// A message or event from the daemon.
#[derive(Debug, Clone, PartialEq)]
pub enum Received {
    /// Output of the shell.
    Data(String),
    /// The reason for the end.
    Error(String),
    /// The response to a ping.
    Pong,
    /// The close frame, with its code.
    Close(u16),
    /// The end of the connection.
    End,
}

/// The first message of the web client, with the same capitalisation.
pub fn request(token: &str, namespace: &str, instance: &str) -> Value {
    json!({
        "namespace": namespace, "vmName": instance, "token": token,
        "Environment": "main", "InitialWidth": 80, "InitialHeight": 24,
    })
}

impl Browser {
    /// Opens a WebSocket at that port of this machine.
    pub fn connect(port: u16) -> Self {
        Self::connect_to("127.0.0.1", port)
    }

    /// The same at another address.
    pub fn connect_to(host: &str, port: u16) -> Self {
        let stream = TcpStream::connect((host, port)).expect("the daemon listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        stream.set_write_timeout(Some(PATIENCE)).expect("a time limit");
        stream.set_nodelay(true).expect("no delay");
        let (socket, _) = client(format!("ws://localhost:{port}/webssh"), stream).expect("a WebSocket");
        Self { socket }
    }

    /// Opens a terminal.
    pub fn open(port: u16, request: &Value) -> Self {
        let mut browser = Self::connect(port);
        browser.send(request);
        browser
    }

    /// Sends a message.
    pub fn send(&mut self, message: &Value) {
        self.send_text(&message.to_string());
    }

    /// Sends a text unchanged.
    pub fn send_text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).expect("sent");
    }

    /// Sends a message as binary.
    pub fn send_binary(&mut self, message: &Value) {
        self.socket.send(Message::binary(message.to_string())).expect("sent");
    }

    /// Types a text.
    pub fn enter(&mut self, text: &str) {
        self.send(&json!({"type": "input", "data": text}));
    }

    /// Closes the WebSocket, with or without a code.
    pub fn close(&mut self, code: Option<u16>) {
        let frame = code.map(|code| CloseFrame { code: code.into(), reason: "".into() });
        self.socket.close(frame).expect("closed");
    }

    /// The next message.
    pub fn receive(&mut self) -> Received {
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => {
                    let message: Value = serde_json::from_str(&text).expect("JSON");
                    let of = |key: &str| message[key].as_str().map(str::to_owned).expect("a text");
                    return match message["type"].as_str() {
                        Some("data") => Received::Data(of("data")),
                        Some("error") => Received::Error(of("error")),
                        Some("pong") => Received::Pong,
                        _ => panic!("an unknown message: {message}"),
                    };
                }
                Ok(Message::Close(frame)) => {
                    return Received::Close(frame.map_or(1005, |frame| frame.code.into()));
                }
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Ok(message) => panic!("an unexpected message: {message}"),
                Err(Error::Io(error)) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    panic!("nothing arrived in {PATIENCE:?}")
                }
                Err(_) => return Received::End,
            }
        }
    }

    /// The output until it contains `wanted`.
    pub fn until(&mut self, wanted: &str) -> String {
        let mut output = String::new();
        while !output.contains(wanted) {
            match self.receive() {
                Received::Data(data) => {
                    assert!(data.len() <= 3 * 1024, "a message of {} bytes", data.len());
                    output += &data;
                }
                Received::Pong => {}
                other => panic!("{other:?} instead of {wanted:?} after {output:?}"),
            }
        }
        output
    }

    /// The end of the terminal: the last error and the close code. Earlier messages are skipped.
    pub fn end(&mut self) -> (String, u16) {
        let mut error = String::new();
        loop {
            match self.receive() {
                Received::Error(text) => error = text,
                Received::Close(code) => {
                    assert_eq!(self.receive(), Received::End, "the connection ends after the last message");
                    return (error, code);
                }
                Received::End => panic!("no close frame after {error:?}"),
                Received::Data(_) | Received::Pong => {}
            }
        }
    }

    /// The underlying connection.
    pub fn stream(&mut self) -> &mut TcpStream {
        self.socket.get_mut()
    }
}
