//! A server for tests that takes connections and never answers.

use std::net::TcpListener;

use kube::Config;

/// It listens until it is dropped.
pub struct SilentServer(TcpListener);

impl SilentServer {
    /// Starts it at a port that the system chooses.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        listener.set_nonblocking(true).expect("it does not wait for connections");
        Self(listener)
    }

    /// The configuration of a client of it.
    pub fn config(&self) -> Config {
        let address = self.0.local_addr().expect("an address");
        let mut config = Config::new(format!("http://{address}").parse().expect("a URL"));
        // Without TLS no authority is needed.
        config.root_cert = Some(Vec::new());
        config
    }

    /// Whether anybody has connected since the last call.
    pub fn was_asked(&self) -> bool {
        let mut was_asked = false;
        while self.0.accept().is_ok() {
            was_asked = true;
        }
        was_asked
    }
}
