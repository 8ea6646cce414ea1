//! The connection to web SSH (`webSshUrl`).

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures::SinkExt;
use http::Uri;
use kube::client::ConfigExt;
use rustls::pki_types::ServerName;
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::protocol::Message;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::relay::LONGEST;
use crate::controllers::dashboard::http::socket::settings;
use crate::runtime::client::PassedIdentity;

/// The configuration key of the URL.
const KEY: &str = "controllers.dashboard.webSshUrl";
/// The time limit of a new connection, until its first message is sent.
const LIMIT: Duration = Duration::from_secs(5);

/// A connection, with or without TLS.
pub trait Connection: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Connection for S {}

/// A WebSocket to web SSH.
pub type Machine = WebSocketStream<Box<dyn Connection>>;

/// Web SSH.
pub struct WebSsh {
    uri: Uri,
    /// Its host and port.
    address: String,
    /// TLS, with the name in its certificate; `None` for plain connections.
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

/// The terminal that a page asks for. The names come from the path, and web SSH checks them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The namespace of the Instance.
    pub namespace: String,
    /// The name of the Instance.
    pub name: String,
    /// The name of the environment.
    pub environment: String,
    /// The number of columns, not 0.
    pub columns: u16,
    /// The number of rows, not 0.
    pub rows: u16,
}

/// The first message.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct First<'a> {
    namespace: &'a str,
    vm_name: &'a str,
    environment: &'a str,
    initial_width: u16,
    initial_height: u16,
    #[serde(flatten)]
    identity: PassedIdentity,
}

impl Asked {
    /// Returns the first message, which is a secret.
    fn first(&self, identity: PassedIdentity) -> serde_json::Result<String> {
        serde_json::to_string(&First {
            namespace: &self.namespace,
            vm_name: &self.name,
            environment: &self.environment,
            initial_width: self.columns,
            initial_height: self.rows,
            identity,
        })
    }
}

impl WebSsh {
    /// Returns the web SSH at a URL; `None` without one.
    ///
    /// # Errors
    /// When the URL is invalid, or the certificate authorities of the platform cannot be read.
    pub fn new(url: &str) -> anyhow::Result<Option<Self>> {
        if url.is_empty() {
            return Ok(None);
        }
        let uri: Uri = url.parse().with_context(|| format!("{KEY} {url} is not a URL"))?;
        let host = uri.host().with_context(|| format!("{KEY} {url} has no host"))?;
        let is_tls = uri.scheme_str() == Some("wss");
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let address = format!("{host}:{port}");
        let tls = is_tls.then(|| tls(host)).transpose()?;
        Ok(Some(Self { uri, address, tls }))
    }

    /// Opens a connection, and asks for a terminal.
    ///
    /// # Errors
    /// When web SSH cannot be reached.
    pub async fn open(&self, asked: &Asked, identity: PassedIdentity) -> anyhow::Result<Machine> {
        let first = asked.first(identity)?;
        let opened = async {
            let stream = TcpStream::connect(self.address.as_str()).await?;
            // A key press must not wait for the next one.
            stream.set_nodelay(true)?;
            let stream: Box<dyn Connection> = match &self.tls {
                Some((connector, name)) => Box::new(connector.connect(name.clone(), stream).await?),
                None => Box::new(stream),
            };
            let (mut machine, _) =
                client_async_with_config(self.uri.clone(), stream, Some(settings(LONGEST))).await?;
            machine.send(Message::text(first)).await?;
            anyhow::Ok(machine)
        };
        let opened = timeout(LIMIT, Box::pin(opened)).await;
        let late = || anyhow::anyhow!("no connection within {} s", LIMIT.as_secs());
        opened
            .unwrap_or_else(|_| Err(late()))
            .with_context(|| format!("{KEY} {} cannot be reached", self.uri))
    }
}

/// Returns TLS for connections to a host, whose certificate is verified by the authorities of the platform.
fn tls(host: &str) -> anyhow::Result<(TlsConnector, ServerName<'static>)> {
    let url: Uri =
        format!("https://{host}").parse().with_context(|| format!("{KEY}: {host} is not a host"))?;
    let mut config = kube::Config::new(url)
        .rustls_client_config()
        .with_context(|| format!("{KEY}: the certificate authorities of the platform cannot be read"))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())
        .with_context(|| format!("{KEY}: {host} is not the name of a server"))?;
    Ok((TlsConnector::from(Arc::new(config)), name))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn asked() -> Asked {
        Asked {
            namespace: "tenant-ada".to_owned(),
            name: "vm.1".to_owned(),
            environment: "main\"".to_owned(),
            columns: 100,
            rows: 30,
        }
    }

    #[test]
    fn the_first_message_has_the_machine_and_the_identity() {
        let identity = PassedIdentity {
            token: "t".to_owned(),
            user: Some("ada".to_owned()),
            groups: vec!["kubernetes:labs".to_owned()],
        };
        let machine = json!({
            "namespace": "tenant-ada", "vmName": "vm.1", "environment": "main\"",
            "initialWidth": 100, "initialHeight": 30, "token": "t",
        });
        let read = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        let own = PassedIdentity { user: None, groups: Vec::new(), ..identity.clone() };
        assert_eq!(read(&asked().first(own).expect("JSON")), machine);
        let mut impersonated = machine;
        impersonated["user"] = json!("ada");
        impersonated["groups"] = json!(["kubernetes:labs"]);
        assert_eq!(read(&asked().first(identity).expect("JSON")), impersonated);
    }

    #[test]
    fn the_address_is_that_of_the_url() {
        for (url, address) in [
            (
                "ws://crownlabs-web-ssh.crownlabs-bastion:8085/webssh",
                "crownlabs-web-ssh.crownlabs-bastion:8085",
            ),
            ("ws://10.0.0.1/webssh", "10.0.0.1:80"),
            ("ws://[2001:db8::1]:81/webssh", "[2001:db8::1]:81"),
        ] {
            let web_ssh = WebSsh::new(url).expect("valid").expect("a URL");
            assert_eq!(web_ssh.address, address);
            assert!(web_ssh.tls.is_none());
        }
        assert!(WebSsh::new("").expect("valid").is_none());
    }

    #[tokio::test]
    async fn web_ssh_that_does_not_run_is_named_without_the_token() {
        // Nothing listens at port 1.
        let web_ssh = WebSsh::new("ws://127.0.0.1:1/webssh").expect("valid").expect("a URL");
        let identity = PassedIdentity { token: "secret".to_owned(), user: None, groups: Vec::new() };
        let error = format!("{:#}", web_ssh.open(&asked(), identity).await.err().expect("refused"));
        assert!(
            error.starts_with("controllers.dashboard.webSshUrl ws://127.0.0.1:1/webssh cannot be reached: "),
            "{error}"
        );
        assert!(!error.contains("secret"), "{error}");
    }
}
