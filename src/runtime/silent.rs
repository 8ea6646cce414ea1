//! A server for tests that accepts connections and never responds.

use std::net::TcpListener;

use kube::Config;

/// A listener that lives until it is dropped.
pub struct SilentServer(TcpListener);

impl SilentServer {
    /// Starts the server on a free port.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        listener.set_nonblocking(true).expect("a non-blocking listener");
        Self(listener)
    }

    /// Returns the configuration of a client that connects to it.
    pub fn config(&self) -> Config {
        let address = self.0.local_addr().expect("an address");
        let mut config = Config::new(format!("http://{address}").parse().expect("a URL"));
        // Without TLS, no CA is needed.
        config.root_cert = Some(Vec::new());
        config
    }

    /// Whether a client has connected since the last call.
    pub fn was_asked(&self) -> bool {
        let mut was_asked = false;
        while self.0.accept().is_ok() {
            was_asked = true;
        }
        was_asked
    }
}
