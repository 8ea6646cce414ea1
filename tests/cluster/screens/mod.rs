//! A stand-in for `KubeVirt`'s API of subresources: an API server behind the aggregation of the real one, which has
//! authorized each request. It has only the screens of `VirtualMachineInstance`s (`vnc`), which QEMU or [`Show`]
//! provides, and passes their bytes on unchanged.

mod machine;
mod rfb;

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use futures::{SinkExt as _, StreamExt as _};
use parking_lot::Mutex;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::server::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Message, Role};

use super::Cluster;
use super::background::Background;

pub use machine::Machine;
pub use rfb::{FRAME, Show};

/// The path of the API.
const API: &str = "/apis/subresources.kubevirt.io/v1";
/// The subprotocol with unchanged bytes.
const PROTOCOL: &str = "plain.kubevirt.io";
/// How long the API server may take to find the API.
const PATIENCE: Duration = Duration::from_mins(1);
/// The longest head of a request, in bytes.
const LONGEST_HEAD: usize = 64 << 10;

/// The place of a VNC server, or the status code of the response without a screen.
#[derive(Debug, Clone)]
pub enum Screen {
    /// The Unix socket of a QEMU.
    Socket(PathBuf),
    /// The address of a server.
    Address(SocketAddr),
    /// The status code.
    Status(u16),
}

/// The screens of a cluster.
pub struct Screens {
    shared: Arc<Shared>,
    background: Background,
}

/// A screen, and its viewer.
type Watched = (Screen, Option<Arc<Notify>>);

#[derive(Default)]
struct Shared {
    /// By namespace and name.
    screens: Mutex<HashMap<String, Watched>>,
    /// The heads of the requests for screens.
    asked: Mutex<Vec<String>>,
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

impl Screens {
    /// Starts the server, and registers it at the API server.
    pub fn start(cluster: &Cluster) -> Result<Self> {
        let (background, shared) = (Background::start("screens")?, Arc::<Shared>::default());
        let listener = background.run(async { TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await })??;
        let port = listener.local_addr()?.port();
        let (acceptor, served) = (acceptor()?, Arc::clone(&shared));
        background.handle().spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, shared) = (acceptor.clone(), Arc::clone(&served));
                // A client that disconnects needs no more.
                tokio::spawn(async move { drop(serve(stream, acceptor, &shared).await) });
            }
        });
        cluster.apply(&registration(port))?;
        let begin = Instant::now();
        loop {
            let found = cluster.get("apiservices", "", "v1.subresources.kubevirt.io")?.unwrap_or_default();
            if found["status"]["conditions"][0]["status"] == "True" {
                return Ok(Self { shared, background });
            }
            ensure!(begin.elapsed() < PATIENCE, "the API of screens is not available: {found}");
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Sets the screen of a `VirtualMachineInstance`.
    pub fn set(&self, namespace: &str, name: &str, screen: Screen) {
        self.shared.screens.lock().insert(format!("{namespace}/{name}"), (screen, None));
    }

    /// Starts a VNC server without a machine, and returns its place.
    pub fn server(&self, show: Show) -> Result<Screen> {
        let listener = self.background.run(async { TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await })??;
        let address = listener.local_addr()?;
        self.background.handle().spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move { drop(rfb::serve(stream, show).await) });
            }
        });
        Ok(Screen::Address(address))
    }

    /// Returns the heads of all requests for screens since the last call.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.asked.lock())
    }
}

/// The objects that make the API server pass on requests to this port. A Service with an external name needs no network.
fn registration(port: u16) -> String {
    format!(
        "apiVersion: v1
kind: Namespace
metadata: {{name: kubevirt}}
---
apiVersion: v1
kind: Service
metadata: {{name: virt-api, namespace: kubevirt}}
spec: {{type: ExternalName, externalName: localhost}}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {{name: v1.subresources.kubevirt.io}}
spec:
  group: subresources.kubevirt.io
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 15
  insecureSkipTLSVerify: true
  service: {{name: virt-api, namespace: kubevirt, port: {port}}}
"
    )
}

fn acceptor() -> Result<TlsAcceptor> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let key = made.signing_key.serialize_der();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(
            vec![made.cert.der().clone()],
            key.try_into().map_err(|error| anyhow::anyhow!("the key: {error}"))?,
        )?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Serves one request of the API server.
async fn serve(stream: TcpStream, acceptor: TlsAcceptor, shared: &Shared) -> Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    let head = head(&mut stream).await?;
    let target = head.split(' ').nth(1).unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if path == API {
        let all = json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "subresources.kubevirt.io/v1",
            "resources": [{"name": "virtualmachineinstances/vnc", "singularName": "", "namespaced": true,
                "kind": "VirtualMachineInstance", "verbs": ["get"]}],
        });
        return answer(stream, 200, "application/json", &all.to_string()).await;
    }
    let Some(machine) = machine_of(path) else { return answer(stream, 404, "text/plain", "").await };
    shared.asked.lock().push(head.clone());
    let (screen, end) = match shared.enter(&machine, query.contains("preserveSession=true")) {
        Ok(entered) => entered,
        Err((code, why)) => return answer(stream, code, "text/plain", why).await,
    };
    let passed = show(stream, &head, &screen, &end).await;
    shared.leave(&machine, &end);
    passed
}

/// Returns the namespace and the name of a machine in the path of its screen.
fn machine_of(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.strip_prefix(API)?.split('/').collect();
    match *parts {
        ["", "namespaces", namespace, "virtualmachineinstances", name, "vnc"] => {
            Some(format!("{namespace}/{name}"))
        }
        _ => None,
    }
}

impl Shared {
    /// Returns the screen of a machine, which has one viewer, and the end of this viewer. The error is the status code and
    /// the text of the response.
    fn enter(&self, machine: &str, preserve: bool) -> Result<(Screen, Arc<Notify>), (u16, &'static str)> {
        let mut screens = self.screens.lock();
        let (screen, viewer) = screens.get_mut(machine).ok_or((404, "VMI does not exist"))?;
        if let Screen::Status(code) = screen {
            return Err((*code, "no screen"));
        }
        if let Some(other) = viewer.take() {
            if preserve {
                *viewer = Some(other);
                return Err((503, "Active VNC connection. Request denied."));
            }
            other.notify_one();
        }
        let end = Arc::clone(viewer.insert(Arc::default()));
        Ok((screen.clone(), end))
    }

    fn leave(&self, machine: &str, end: &Arc<Notify>) {
        if let Some((_, viewer)) = self.screens.lock().get_mut(machine)
            && viewer.as_ref().is_some_and(|current| Arc::ptr_eq(current, end))
        {
            *viewer = None;
        }
    }
}

/// Reads the head of a request.
async fn head(stream: &mut TlsStream<TcpStream>) -> Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        ensure!(head.len() < LONGEST_HEAD, "the head is too long");
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8(head)?)
}

async fn answer(mut stream: TlsStream<TcpStream>, code: u16, kind: &str, body: &str) -> Result<()> {
    let head = format!(
        "HTTP/1.1 {code} Answer\r\nconnection: close\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes()).await?;
    stream.shutdown().await?;
    Ok(())
}

/// Passes the bytes of a screen on, in frames of a WebSocket.
async fn show(mut stream: TlsStream<TcpStream>, head: &str, screen: &Screen, end: &Notify) -> Result<()> {
    let header = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
    };
    let key = header("sec-websocket-key").context("no key of a WebSocket")?;
    if !header("sec-websocket-protocol").is_some_and(|protocol| protocol.contains(PROTOCOL)) {
        return answer(stream, 400, "text/plain", "this subprotocol is not supported").await;
    }
    let server: Box<dyn Stream> = match screen {
        Screen::Socket(path) => Box::new(UnixStream::connect(path).await?),
        Screen::Address(address) => Box::new(TcpStream::connect(address).await?),
        Screen::Status(_) => bail!("no screen"),
    };
    let accept = derive_accept_key(key.as_bytes());
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: {accept}\r\n\
         sec-websocket-protocol: {PROTOCOL}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.flush().await?;
    let socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
    let (mut to_viewer, mut from_viewer) = socket.split();
    let (mut from_server, mut to_server) = split(server);
    let input = async {
        while let Some(Ok(message)) = from_viewer.next().await {
            match message {
                Message::Binary(bytes) => to_server.write_all(&bytes).await?,
                Message::Close(_) => break,
                Message::Text(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
        anyhow::Ok(())
    };
    let output = async {
        let mut buffer = vec![0; 32 << 10];
        loop {
            let length = from_server.read(&mut buffer).await?;
            if length == 0 {
                to_viewer.close().await?;
                return anyhow::Ok(());
            }
            to_viewer.send(Message::binary(buffer[..length].to_vec())).await?;
        }
    };
    tokio::select! {
        ended = input => ended,
        ended = output => ended,
        // Another viewer has taken over.
        () = end.notified() => Ok(()),
    }
}
