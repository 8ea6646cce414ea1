use std::future::pending;
use std::net::SocketAddr;
use std::time::Duration;

use futures::stream::poll_fn;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use super::*;
use crate::runtime::http_server::{Handler, Limits, Server, bind, immediate, text};

const HOUR: Duration = Duration::from_hours(1);
/// More than the kernel keeps for both sides of a connection, in bytes.
const LARGE: usize = 64 << 20;

/// The length of an answer that is soon taken, in bytes.
const LENGTH: usize = 1 << 20;

/// Limits by which nothing ends within a test.
const LIMITS: Limits = Limits {
    connections: 256,
    long_bodies: 1 << 20,
    answers: usize::MAX,
    body: 64 << 10,
    receive_timeout: HOUR,
    idle_timeout: HOUR,
    send_timeout: HOUR,
};

/// What a stream sends, and which ends when this is dropped.
type Sender = mpsc::Sender<Bytes>;

/// A stream, and its sender.
fn stream() -> (Sender, Body) {
    let (sender, mut pieces) = mpsc::channel(1);
    (sender, Body::stream(poll_fn(move |context| pieces.poll_recv(context))))
}

/// A server whose `/stream` is a stream. Returns its address, the senders of the streams, what stops it, and the server.
async fn serve(limits: Limits) -> (SocketAddr, mpsc::Receiver<Sender>, Arc<Notify>, JoinHandle<()>) {
    let listener = bind("server.test", ([127, 0, 0, 1], 0).into()).await.expect("a socket");
    let address = listener.local_addr().expect("an address");
    let (streams, begun) = mpsc::channel(8);
    let handler: Handler = Arc::new(move |request: Request<Bytes>| {
        let streams = streams.clone();
        async move {
            if request.uri().path() != "/stream" {
                return text(StatusCode::OK, "a page").map(Body::from);
            }
            let (sender, body) = stream();
            streams.send(sender).await.expect("the test takes it");
            Response::new(body)
        }
        .boxed()
    });
    let stop = Arc::new(Notify::new());
    let asked = Arc::clone(&stop);
    let server = Server { limits, ..Server::new(handler) };
    let server = tokio::spawn(server.serve(listener, async move { asked.notified().await }));
    (address, begun, stop, server)
}

async fn ask(address: SocketAddr, line: &str) -> TcpStream {
    let mut client = TcpStream::connect(address).await.expect("a connection");
    client.write_all(format!("{line} HTTP/1.1\r\nhost: test\r\n\r\n").as_bytes()).await.expect("sent");
    client
}

/// Reads until this has arrived.
async fn read_to(client: &mut TcpStream, end: &str) -> String {
    let mut read = String::new();
    while !read.ends_with(end) {
        let byte = client.read_u8().await.unwrap_or_else(|error| panic!("{error} after {read:?}"));
        read.push(char::from(byte));
    }
    read
}

/// Sends until nobody takes it.
async fn fill(sender: Sender) {
    while sender.send(vec![b'x'; 64 << 10].into()).await.is_ok() {}
}

#[tokio::test]
async fn a_stream_keeps_its_place_from_those_that_wait() {
    let (address, mut begun, _stop, _server) = serve(Limits { connections: 2, ..LIMITS }).await;
    let mut client = ask(address, "GET /stream").await;
    let sender = begun.recv().await.expect("a stream");
    let head = read_to(&mut client, "\r\n\r\n").await;
    assert!(head.contains("transfer-encoding: chunked"), "{head}");
    let mut last: Option<TcpStream> = None;
    for _ in 0..5 {
        let mut waiting = ask(address, "GET /page").await;
        read_to(&mut waiting, "a page").await;
        if let Some(mut last) = last.replace(waiting) {
            assert_eq!(last.read(&mut [0]).await.expect("its end"), 0, "it was in the way");
        }
        sender.send(Bytes::from_static(b"piece")).await.expect("it is taken");
        assert_eq!(read_to(&mut client, "piece\r\n").await, "5\r\npiece\r\n");
    }
    // Once its stream has ended, it waits like the others, for its next request.
    drop(sender);
    read_to(&mut client, "0\r\n\r\n").await;
    client.write_all(b"GET /page HTTP/1.1\r\nhost: test\r\n\r\n").await.expect("sent");
    read_to(&mut client, "a page").await;
    for _ in 0..2 {
        let mut waiting = ask(address, "GET /page").await;
        read_to(&mut waiting, "a page").await;
        last = Some(waiting);
    }
    assert_eq!(client.read(&mut [0]).await.expect("its end"), 0, "it has waited longest");
    drop(last);
}

#[tokio::test]
async fn a_stream_that_is_not_read_by_the_request_waits_at_once() {
    let (address, mut begun, _stop, _server) = serve(Limits { connections: 1, ..LIMITS }).await;
    let mut client = ask(address, "HEAD /stream").await;
    begun.recv().await.expect("a stream").closed().await;
    read_to(&mut client, "\r\n\r\n").await;
    read_to(&mut ask(address, "GET /page").await, "a page").await;
}

#[tokio::test]
async fn the_stream_of_a_client_that_has_left_is_dropped() {
    let (address, mut begun, _stop, _server) = serve(LIMITS).await;
    let mut client = ask(address, "GET /stream").await;
    let sender = begun.recv().await.expect("a stream");
    read_to(&mut client, "\r\n\r\n").await;
    drop(client);
    sender.closed().await;
}

#[tokio::test]
async fn streams_end_at_a_stop_whether_they_are_read_or_not() {
    let (address, mut begun, stop, server) = serve(LIMITS).await;
    let mut reading = ask(address, "GET /stream").await;
    let silent = begun.recv().await.expect("a stream");
    read_to(&mut reading, "\r\n\r\n").await;
    let _stuck = ask(address, "GET /stream").await;
    let filled = tokio::spawn(fill(begun.recv().await.expect("a stream")));
    stop.notify_one();
    silent.closed().await;
    assert_eq!(read_to(&mut reading, "0\r\n\r\n").await, "0\r\n\r\n", "the stream is complete");
    filled.await.expect("no panic");
    server.await.expect("no panic");
}

#[tokio::test]
async fn who_takes_nothing_ends() {
    let limits = Limits { send_timeout: Duration::from_millis(20), ..LIMITS };
    let (address, mut begun, _stop, _server) = serve(limits).await;
    let _stuck = ask(address, "GET /stream").await;
    fill(begun.recv().await.expect("a stream")).await;
}

/// A body that says when it is not kept any more.
struct Kept(Vec<u8>, mpsc::UnboundedSender<()>);

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.1.send(());
    }
}

#[tokio::test]
async fn a_whole_body_that_is_not_taken_is_not_kept() {
    let listener = bind("server.test", ([127, 0, 0, 1], 0).into()).await.expect("a socket");
    let address = listener.local_addr().expect("an address");
    let (kept, mut dropped) = mpsc::unbounded_channel();
    let handler = immediate(move |_| Response::new(Bytes::from_owner(Kept(vec![0; LARGE], kept.clone()))));
    let limits = Limits { send_timeout: Duration::from_millis(20), ..LIMITS };
    tokio::spawn(Server { limits, ..Server::new(handler) }.serve(listener, pending()));
    let _stuck = ask(address, "GET /page").await;
    dropped.recv().await.expect("it is dropped");
}

#[tokio::test]
async fn the_oldest_answer_that_is_not_taken_makes_room_for_the_next() {
    let listener = bind("server.test", ([127, 0, 0, 1], 0).into()).await.expect("a socket");
    let address = listener.local_addr().expect("an address");
    let handler = immediate(move |request| {
        let length = if request.uri().path() == "/long" { LARGE } else { LENGTH };
        Response::new(vec![0; length].into())
    });
    let limits = Limits { answers: LARGE, ..LIMITS };
    tokio::spawn(Server { limits, ..Server::new(handler) }.serve(listener, pending()));
    // It is taken, and takes minutes: its kernel keeps as little as can be.
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(1).expect("it has a least size");
    let mut oldest = socket.connect(address).await.expect("a connection");
    oldest.write_all(b"GET /long HTTP/1.1\r\nhost: test\r\n\r\n").await.expect("sent");
    read_to(&mut oldest, "\r\n\r\n").await;
    let mut next = ask(address, "GET /page").await;
    read_to(&mut next, "\r\n\r\n").await;
    next.read_exact(&mut vec![0; LENGTH]).await.expect("it is whole");
    oldest.read_exact(&mut vec![0; LARGE]).await.expect_err("its connection has ended");
}

#[tokio::test]
async fn a_whole_body_has_its_length_and_is_sent_once() {
    for body in [Body::from("text"), String::from("text").into(), Bytes::from_static(b"text").into()] {
        assert_eq!((body.whole(), body.size_hint().exact()), (&b"text"[..], Some(4)));
        assert_eq!(body.collect().await.expect("it cannot fail").to_bytes(), "text");
    }
    assert!(Body::from("").is_end_stream());
    let (sender, body) = stream();
    assert_eq!((body.whole(), body.size_hint().exact()), (&b""[..], None));
    sender.send(Bytes::from_static(b"piece")).await.expect("there is room for one");
    drop(sender);
    assert_eq!(body.collect().await.expect("it cannot fail").to_bytes(), "piece");
}
