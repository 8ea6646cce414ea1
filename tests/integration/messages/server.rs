//! Servers for the daemon's clients: with a certificate that they reject, or without any response.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A certificate that is signed by its own key, and the key, both in PEM.
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

impl Pair {
    /// A certificate for this name or address that is valid until this year.
    pub fn create(name: &str, until: i32) -> Self {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        Self { certificate: certificate.pem(), key: key.serialize_pem() }
    }

    /// Writes the certificate as the file of authorities for clients, and returns its path.
    pub fn authority(&self, folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, &self.certificate).expect("written");
        path
    }

    /// Writes both files as cert-manager mounts them.
    pub fn write(&self, folder: &Path) {
        fs::write(folder.join("tls.crt"), &self.certificate).expect("written");
        fs::write(folder.join("tls.key"), &self.key).expect("written");
    }
}

/// Calls `serve` with each connection, in a thread of its own, until the process ends. Returns the port.
fn serve(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(stream));
        }
    });
    port
}

/// Starts a TLS server with a certificate that clients reject, and returns its port.
pub fn with_certificate(pair: &Pair) -> u16 {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pair.certificate.as_bytes()).collect();
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the versions of TLS")
        .with_no_client_auth()
        .with_single_cert(chain.expect("a certificate"), key)
        .expect("they match");
    let config = Arc::new(config);
    serve(move |stream| {
        let connection = ServerConnection::new(Arc::clone(&config)).expect("a connection");
        // The client rejects the certificate and closes the connection.
        let _ = StreamOwned::new(connection, stream).read(&mut [0; 1]);
    })
}

/// Starts a server that accepts connections and never responds, and returns its port.
pub fn silent() -> u16 {
    serve(|mut stream| {
        let mut request = [0; 1_024];
        while stream.read(&mut request).is_ok_and(|length| length > 0) {}
    })
}

/// Starts an HTTP server that answers each request with this status line and body, and returns its port.
pub fn answering(status: &'static str, body: &'static str) -> u16 {
    serve(move |mut stream| {
        // A request fits into one read.
        let _ = stream.read(&mut [0; 8_192]);
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        // The client may have given up. The connection is closed after it has read the response.
        let _ = stream.write_all(format!("{head}{body}").as_bytes());
        let _ = stream.shutdown(Shutdown::Write);
        while stream.read(&mut [0; 1_024]).is_ok_and(|length| length > 0) {}
    })
}
