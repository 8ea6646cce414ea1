//! Open consoles, compared with NGINX as a proxy to the same API server with the same TLS. The screens are those of the
//! stand-in for `KubeVirt`, which sends frames without a machine.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use cluster::front::{Front, certificate};
use cluster::reserve_port;
use cluster::screens::{FRAME, Screens, Show};
use futures::StreamExt;
use futures::future::try_join_all;
use http::Request;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::protocol::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

use super::world::{MACHINES, World, name, namespace};
use crate::harness::{Figures, Usage, count};

/// The environments of each machine, which has a console for each.
const ENVIRONMENTS: [&str; 2] = ["main", "other"];
/// How many consoles are open.
const CONSOLES: usize = MACHINES * ENVIRONMENTS.len();
/// The number of frames of a console in a second.
const FRAMES: usize = 10;
/// How long the frames are counted.
const TIME: Duration = Duration::from_secs(20);

type Console = WebSocketStream<TcpStream>;

/// 20 consoles: the processor time of their frames, and memory.
pub async fn consoles(world: &World, figures: &mut Figures) -> Result<()> {
    eprintln!("dashboard: {CONSOLES} consoles …");
    let cluster = &world.bench.cluster;
    let screens = Screens::start(cluster)?;
    let user = namespace(0);
    let status: Vec<_> = ENVIRONMENTS.iter().map(|name| json!({"name": name, "phase": "Ready"})).collect();
    for (machine, environment) in all() {
        screens.set(&user, &format!("{machine}-{environment}"), screens.server(Show::Frames)?);
        let path = format!("/apis/crownlabs.polito.it/v1alpha2/namespaces/{user}/instances/{machine}/status");
        world.bench.send("PATCH", &path, &json!({"status": {"environments": status}})).await?;
    }
    let daemon = world.daemon().await?;
    let mut sessions = Vec::new();
    for number in 0..ENVIRONMENTS.len() {
        let browser = world.session(0, number)?;
        browser.get("/").await?;
        sessions.push(browser);
    }
    let opened = all().enumerate().map(|(number, (machine, environment))| {
        let path = format!("/machines/{user}/{machine}/{environment}/console/socket");
        let cookie = sessions[number % sessions.len()].cookie.clone();
        let headers = [("origin", "https://labs.example.org".to_owned()), ("cookie", cookie)];
        open(world.port(), path, headers)
    });
    let own = spent(try_join_all(opened).await?, || daemon.processor_seconds()).await?;
    let peak = daemon.peak_mebibytes()?;
    drop(daemon);
    let (proxy, port) = proxy(world)?;
    let token = cluster.user_token(&name(0), &[], 3_600)?;
    let opened = all().map(|(machine, environment)| {
        let path = format!(
            "/apis/subresources.kubevirt.io/v1/namespaces/{user}/virtualmachineinstances/{machine}-{environment}/vnc"
        );
        open(port, path, [("authorization", format!("Bearer {token}"))])
    });
    let usage = Usage { pid: proxy.id() };
    let other = spent(try_join_all(opened).await?, || usage.processor_seconds()).await?;
    figures.add("20 consoles: processor time of a second of NGINX", other * 1_000.0, "ms", None);
    figures.add("20 consoles: processor time of a second", own * 1_000.0, "ms", Some(other * 1_500.0));
    figures.add("20 consoles: peak memory", peak, "MiB", Some(64.0));
    Ok(())
}

/// The machines with their environments.
fn all() -> impl Iterator<Item = (String, &'static str)> {
    (0..MACHINES)
        .flat_map(|number| ENVIRONMENTS.map(|environment| (format!("machine-{number}"), environment)))
}

/// Starts NGINX in front of the API server. Returns it with its port.
fn proxy(world: &World) -> Result<(Front, u16)> {
    let (folder, port) = (world.bench.dir.join("front"), reserve_port()?);
    std::fs::create_dir(&folder)?;
    certificate(&folder);
    let server = format!(
        "server {{\nlisten 127.0.0.1:{port};\nlocation / {{\nproxy_pass {};\nproxy_http_version 1.1;\n\
         proxy_set_header Upgrade $http_upgrade;\nproxy_set_header Connection upgrade;\n}}\n}}\n",
        world.bench.cluster.server()
    );
    Ok((Front::start_with(&folder, "consoles", &[], &server), port))
}

/// Opens a console with these headers, and waits for its first bytes.
async fn open<const N: usize>(port: u16, path: String, headers: [(&str, String); N]) -> Result<Console> {
    let mut request = Request::get(format!("ws://labs.example.org{path}"))
        .header("host", "labs.example.org")
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-protocol", "plain.kubevirt.io")
        .header("sec-websocket-key", generate_key());
    for (name, value) in headers {
        request = request.header(name, value);
    }
    // A proxy that has just started may not listen yet.
    let stream = loop {
        match TcpStream::connect(("127.0.0.1", port)).await {
            Ok(stream) => break stream,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    let (mut console, _) = client_async(request.body(())?, stream).await?;
    read(&mut console).await?;
    Ok(console)
}

/// Reads a message, and returns its length.
async fn read(console: &mut Console) -> Result<usize> {
    match console.next().await.context("a console ended")?? {
        Message::Binary(bytes) => Ok(bytes.len()),
        other => bail!("a console ended: {other}"),
    }
}

/// Returns the processor time of the frames of these consoles in a second.
async fn spent(consoles: Vec<Console>, processor: impl Fn() -> Result<f64>) -> Result<f64> {
    let (before, end) = (processor()?, Instant::now() + TIME);
    let reads = consoles.into_iter().map(|mut console| async move {
        let mut length = 0;
        while let Ok(read) = timeout_at(end, read(&mut console)).await {
            length += read?;
        }
        anyhow::Ok(length)
    });
    let bytes: usize = try_join_all(reads).await?.into_iter().sum();
    let (second, seconds) = (CONSOLES * FRAMES * FRAME, TIME.as_secs_f64());
    ensure!(count(bytes) > 0.8 * count(second) * seconds, "only {bytes} bytes arrived");
    Ok((processor()? - before) / seconds)
}
