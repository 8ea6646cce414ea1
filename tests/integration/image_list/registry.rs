//! Registries that are open, or require a password, or tokens from a server of the test.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::json;
use tempfile::TempDir;

use crate::daemon::reserved_port;
use cluster::registry::Registry;

/// The user and the password, as written by `htpasswd -B`.
const HTPASSWD: &str = "ada:$2b$04$XuPuogoNW1JBI0rorRVF.umrz97r.i/5khRMx9p34wX4PmTeVc.oC\n";
/// `Authorization` of that user.
const BASIC: &str = "Basic YWRhOnMzY3JldA==";

/// The login of a registry.
pub enum Access {
    /// No login.
    Open,
    /// With user and password.
    Password,
    /// With tokens.
    Tokens(Arc<TokenServer>),
}

/// Starts an empty registry.
pub fn registry(access: &Access) -> Registry {
    let folder = TempDir::new().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (auth, authorization) = match access {
        Access::Open => (String::new(), String::new()),
        Access::Password => {
            fs::write(path("htpasswd"), HTPASSWD).expect("written");
            (format!("auth: {{htpasswd: {{realm: test, path: {}}}}}\n", path("htpasswd")), BASIC.to_owned())
        }
        Access::Tokens(server) => {
            fs::write(path("issuer.pem"), &server.certificate).expect("written");
            let auth = format!(
                "auth: {{token: {{realm: \"http://{}/token\", service: test, issuer: test, rootcertbundle: {}}}}}\n",
                server.address,
                path("issuer.pem")
            );
            (auth, format!("Bearer {}", server.token("ada", "repository", "vm", &["pull", "push"])))
        }
    };
    let address = format!("127.0.0.1:{}", reserved_port());
    Registry::start_in(folder, &address, &auth, &authorization).expect("a registry")
}

/// A server that issues tokens to the user of [`HTPASSWD`]. Its thread ends with the test process.
pub struct TokenServer {
    address: String,
    /// The certificate of its key, in PEM.
    certificate: String,
    /// The same in DER and Base64.
    encoded: String,
    key: EcdsaKeyPair,
}

impl TokenServer {
    /// Starts a server.
    pub fn start() -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let made = rcgen::generate_simple_self_signed(["issuer".to_owned()]).expect("a certificate");
        let document = made.signing_key.serialize_der();
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &document, &random);
        let server = Arc::new(Self {
            address: listener.local_addr().expect("an address").to_string(),
            certificate: made.cert.pem(),
            encoded: STANDARD.encode(made.cert.der()),
            key: key.expect("a key"),
        });
        let shared = Arc::clone(&server);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // The client may close the connection at any time.
                drop(shared.answer(stream));
            }
        });
        server
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}/token", self.address)
    }

    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let (mut first, mut login) = (String::new(), String::new());
        let mut reader = BufReader::new(stream.try_clone()?);
        reader.read_line(&mut first)?;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 || line.trim_end().is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("authorization: ") {
                value.trim_end().clone_into(&mut login);
            }
        }
        let scope =
            first.split(['?', '&', ' ']).find_map(|part| part.strip_prefix("scope=")).unwrap_or_default();
        let scope = scope.replace("%3A", ":").replace("%2F", "/");
        let parts: Vec<&str> = scope.split(':').collect();
        let (status, body) = match parts[..] {
            [type_, name, actions] if login == BASIC => {
                let actions: Vec<&str> = actions.split("%2C").collect();
                ("200 OK", json!({"token": self.token("ada", type_, name, &actions)}).to_string())
            }
            _ => ("401 Unauthorized", String::new()),
        };
        let length = body.len();
        write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
    }

    /// A signed token (RFC 7519) for a part of the registry.
    fn token(&self, subject: &str, type_: &str, name: &str, actions: &[&str]) -> String {
        let now = crownlabs::testing::clock::now().as_second();
        let header = json!({"typ": "JWT", "alg": "ES256", "x5c": [self.encoded]});
        let claims = json!({
            "iss": "test", "aud": "test", "sub": subject, "jti": "1", "iat": now, "nbf": now - 60, "exp": now + 3_600,
            "access": [{"type": type_, "name": name, "actions": actions}],
        });
        let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = format!("{header}.{claims}");
        let signature = self.key.sign(&SystemRandom::new(), signed.as_bytes()).expect("a signature");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}
