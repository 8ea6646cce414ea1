//! A container runtime with the containers that the test sets: gRPC over a Unix socket, as containerd and CRI-O
//! serve it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use crownlabs::testing::cri::messages::{
    ByIdRequest, CONTAINER_RUNNING, Container, ListContainersRequest, ListContainersResponse,
    ListPodSandboxRequest, ListPodSandboxResponse, PodSandbox, SANDBOX_READY, Status, StatusResponse,
    VersionResponse,
};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Collected, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use prost::Message;
use tokio::net::UnixListener;

const POD_UID: &str = "io.kubernetes.pod.uid";

/// The state of the runtime.
#[derive(Debug, Clone, Default)]
struct Script {
    /// The process of the container of each pod, by the uid of the pod.
    containers: BTreeMap<String, u32>,
    /// The process of the sandbox of each pod.
    sandboxes: BTreeMap<String, u32>,
    /// Whether calls get no response.
    hangs: bool,
    /// The calls so far, by their names.
    calls: Vec<String>,
}

/// A runtime.
pub struct Runtime {
    script: Arc<Mutex<Script>>,
    socket: PathBuf,
}

impl Runtime {
    /// A runtime at that socket, for the life of the test process.
    pub fn start(socket: &Path) -> Self {
        let script: Arc<Mutex<Script>> = Arc::default();
        let (served, path) = (Arc::clone(&script), socket.to_path_buf());
        let (ready, is_ready) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = UnixListener::bind(&path).expect("bound");
                ready.send(()).expect("the test waits");
                while let Ok((stream, _)) = listener.accept().await {
                    let script = Arc::clone(&served);
                    let service = service_fn(move |request| answer(Arc::clone(&script), request));
                    let serving = http2::Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(stream), service);
                    tokio::spawn(serving);
                }
            });
        });
        is_ready.recv().expect("it listens");
        Self { script, socket: socket.to_path_buf() }
    }

    /// The socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    fn script<T>(&self, change: impl FnOnce(&mut Script) -> T) -> T {
        change(&mut self.script.lock())
    }

    /// Gives the pod a container with this process, or none.
    pub fn set_container(&self, uid: &str, process: Option<u32>) {
        self.script(|script| match process {
            Some(process) => drop(script.containers.insert(uid.to_owned(), process)),
            None => drop(script.containers.remove(uid)),
        });
    }

    /// Gives the pod a sandbox with this process, or none.
    pub fn set_sandbox(&self, uid: &str, process: Option<u32>) {
        self.script(|script| match process {
            Some(process) => drop(script.sandboxes.insert(uid.to_owned(), process)),
            None => drop(script.sandboxes.remove(uid)),
        });
    }

    /// Sets whether calls get no response from now on.
    pub fn set_hanging(&self, hangs: bool) {
        self.script(|script| script.hangs = hangs);
    }

    /// The number of calls so far.
    pub fn calls(&self) -> usize {
        self.script(|script| script.calls.len())
    }
}

type Body = StreamBody<futures::stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>>;

async fn answer(
    script: Arc<Mutex<Script>>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let method = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
    let body = request.into_body().collect().await.map(Collected::to_bytes).unwrap_or_default();
    let now = {
        let mut script = script.lock();
        script.calls.push(method.clone());
        script.clone()
    };
    if now.hangs {
        std::future::pending::<()>().await;
    }
    let message = body.get(5..).unwrap_or_default();
    let mut trailers = HeaderMap::new();
    let mut frames = Vec::new();
    match reply(&now, &method, message) {
        Some(reply) => {
            let length = u32::try_from(reply.len()).expect("a short answer").to_be_bytes();
            frames.push(Ok(Frame::data(Bytes::from([&[0][..], &length, &reply].concat()))));
            trailers.insert("grpc-status", HeaderValue::from_static("0"));
        }
        None => {
            // NOT_FOUND
            trailers.insert("grpc-status", HeaderValue::from_static("5"));
        }
    }
    frames.push(Ok(Frame::trailers(trailers)));
    let response = Response::builder().header("content-type", "application/grpc");
    Ok(response.body(StreamBody::new(futures::stream::iter(frames))).expect("a response"))
}

fn info(process: u32) -> BTreeMap<String, String> {
    BTreeMap::from([("info".to_owned(), format!("{{\"pid\":{process}}}"))])
}

fn reply(script: &Script, method: &str, message: &[u8]) -> Option<Vec<u8>> {
    let selected = |labels: &BTreeMap<String, String>, uid: &String| {
        labels.get(POD_UID).is_none_or(|wanted| wanted == uid)
    };
    let labels = |uid: &String| BTreeMap::from([(POD_UID.to_owned(), uid.clone())]);
    match method {
        "Version" => {
            let version = VersionResponse { runtime_name: "test".to_owned(), ..VersionResponse::default() };
            Some(version.encode_to_vec())
        }
        "ListContainers" => {
            let filter = ListContainersRequest::decode(message).ok()?.filter.unwrap_or_default();
            let all = script.containers.keys().filter(|uid| selected(&filter.label_selector, uid));
            let containers = all.map(|uid| Container { id: uid.clone(), ..Container::default() });
            Some(ListContainersResponse { containers: containers.collect() }.encode_to_vec())
        }
        "ContainerStatus" => {
            let process = script.containers.get(&ByIdRequest::decode(message).ok()?.id)?;
            let status = Some(Status { state: CONTAINER_RUNNING });
            Some(StatusResponse { status, info: info(*process) }.encode_to_vec())
        }
        "ListPodSandbox" => {
            let filter = ListPodSandboxRequest::decode(message).ok()?.filter.unwrap_or_default();
            let all = script.sandboxes.keys().filter(|uid| selected(&filter.label_selector, uid));
            let items =
                all.map(|uid| PodSandbox { id: uid.clone(), labels: labels(uid), ..PodSandbox::default() });
            Some(ListPodSandboxResponse { items: items.collect() }.encode_to_vec())
        }
        "PodSandboxStatus" => {
            let process = script.sandboxes.get(&ByIdRequest::decode(message).ok()?.id)?;
            let status = Some(Status { state: SANDBOX_READY });
            Some(StatusResponse { status, info: info(*process) }.encode_to_vec())
        }
        _ => None,
    }
}
