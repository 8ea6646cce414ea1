use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::stream::poll_fn;
use http::{Request, Response, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use super::*;
use crate::runtime::http_server::{Handler, Limits, Server, bind, immediate, text};

const HOUR: Duration = Duration::from_hours(1);
/// More than the kernel buffers on both sides of a connection, in bytes.
const LARGE: usize = 64 << 20;

/// The length of a response that is read quickly, in bytes.
const LENGTH: usize = 1 << 20;

/// Limits that no test reaches.
const LIMITS: Limits = Limits {
    connections: 256,
    long_bodies: 1 << 20,
    answers: usize::MAX,
    body: 64 << 10,
    receive_timeout: HOUR,
    idle_timeout: HOUR,
    send_timeout: HOUR,
};

/// The sender of a stream's pieces. Dropping it ends the stream.
type Sender = mpsc::Sender<Bytes>;

/// Returns a stream and its sender.
fn stream() -> (Sender, Body) {
    let (sender, mut pieces) = mpsc::channel(1);
    (sender, Body::stream(poll_fn(move |context| pieces.poll_recv(context))))
}

/// Starts a server with a stream at `/stream`. Returns its address, the senders of the streams, the stop signal, and
/// the server's task.
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
            streams.send(sender).await.expect("the test receives it");
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

/// Reads until `end` has arrived.
async fn read_to(client: &mut TcpStream, end: &str) -> String {
    let mut read = String::new();
    while !read.ends_with(end) {
        let byte = client.read_u8().await.unwrap_or_else(|error| panic!("{error} after {read:?}"));
        read.push(char::from(byte));
    }
    read
}

/// Sends until the stream is dropped.
async fn fill(sender: Sender) {
    while sender.send(vec![b'x'; 64 << 10].into()).await.is_ok() {}
}

#[tokio::test]
async fn a_stream_needs_no_slot_and_continues_when_new_connections_arrive() {
    let (address, mut begun, _stop, _server) = serve(Limits { connections: 1, ..LIMITS }).await;
    let mut client = ask(address, "GET /stream").await;
    let sender = begun.recv().await.expect("a stream");
    let head = read_to(&mut client, "\r\n\r\n").await;
    assert_eq!(head, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
    let mut last: Option<TcpStream> = None;
    for _ in 0..5 {
        let mut waiting = ask(address, "GET /page").await;
        read_to(&mut waiting, "a page").await;
        if let Some(mut last) = last.replace(waiting) {
            assert_eq!(last.read(&mut [0]).await.expect("its end"), 0, "the waiting connection is closed");
        }
        sender.send(Bytes::from_static(b"piece")).await.expect("the stream exists");
        assert_eq!(read_to(&mut client, "piece").await, "piece");
    }
    drop(sender);
    assert_eq!(
        client.read(&mut [0]).await.expect("its end"),
        0,
        "the end of the stream closes the connection"
    );
}

#[tokio::test]
async fn a_response_announces_that_its_connection_closes_unless_it_is_kept() {
    let (address, _begun, _stop, _server) = serve(Limits { connections: 2, ..LIMITS }).await;
    let mut first = ask(address, "GET /page").await;
    assert!(!read_to(&mut first, "a page").await.contains("connection: close"));
    let mut second = ask(address, "GET /page").await;
    assert!(read_to(&mut second, "a page").await.contains("connection: close"));
    assert_eq!(second.read(&mut [0]).await.expect("its end"), 0);
    let mut third = ask(address, "GET /page").await;
    read_to(&mut third, "a page").await;
    first.write_all(b"GET /page HTTP/1.1\r\nhost: test\r\n\r\n").await.expect("the first is still open");
    read_to(&mut first, "a page").await;
}

#[tokio::test]
async fn incomplete_bodies_do_not_lock_others_out() {
    let (address, _begun, _stop, _server) = serve(Limits { connections: 2, ..LIMITS }).await;
    let mut slow = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        let half = b"POST /page HTTP/1.1\r\nhost: test\r\ncontent-length: 9\r\n\r\nhalf";
        stream.write_all(half).await.expect("sent");
        slow.push(stream);
    }
    read_to(&mut ask(address, "GET /page").await, "a page").await;
}

#[tokio::test]
async fn a_stream_in_response_to_head_is_dropped_at_once() {
    let (address, mut begun, _stop, _server) = serve(Limits { connections: 1, ..LIMITS }).await;
    let mut client = ask(address, "HEAD /stream").await;
    begun.recv().await.expect("a stream").closed().await;
    read_to(&mut client, "\r\n\r\n").await;
    read_to(&mut ask(address, "GET /page").await, "a page").await;
}

#[tokio::test]
async fn a_client_that_waits_for_a_late_response_holds_no_slot_and_gets_head_and_body_together() {
    let listener = bind("server.test", ([127, 0, 0, 1], 0).into()).await.expect("a socket");
    let address = listener.local_addr().expect("an address");
    let release = Arc::new(Notify::new());
    let released = Arc::clone(&release);
    let handler: Handler = Arc::new(move |request: Request<Bytes>| {
        let released = Arc::clone(&released);
        async move {
            if request.uri().path() != "/late" {
                return text(StatusCode::OK, "a page").map(Body::from);
            }
            Response::new(Body::late(async move {
                released.notified().await;
                Bytes::from_static(b"late")
            }))
        }
        .boxed()
    });
    let server = Server { limits: Limits { connections: 1, ..LIMITS }, ..Server::new(handler) };
    tokio::spawn(server.serve(listener, pending()));
    for (method, expected) in [("GET", "late"), ("HEAD", "")] {
        let mut late = ask(address, &format!("{method} /late")).await;
        for _ in 0..3 {
            read_to(&mut ask(address, "GET /page").await, "a page").await;
        }
        late.try_read(&mut [0]).expect_err("neither head nor body has arrived");
        release.notify_one();
        let mut response = String::new();
        late.read_to_string(&mut response).await.expect("a response, and the end");
        assert_eq!(response, format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{expected}"), "{method}");
    }
}

#[tokio::test]
async fn the_stream_of_a_disconnected_client_is_dropped() {
    let (address, mut begun, _stop, _server) = serve(LIMITS).await;
    let mut client = ask(address, "GET /stream").await;
    let sender = begun.recv().await.expect("a stream");
    read_to(&mut client, "\r\n\r\n").await;
    drop(client);
    sender.closed().await;
}

#[tokio::test]
async fn streams_end_at_a_stop_even_if_the_client_does_not_read() {
    let (address, mut begun, stop, server) = serve(LIMITS).await;
    let mut reading = ask(address, "GET /stream").await;
    let silent = begun.recv().await.expect("a stream");
    read_to(&mut reading, "\r\n\r\n").await;
    let _stuck = ask(address, "GET /stream").await;
    let filled = tokio::spawn(fill(begun.recv().await.expect("a stream")));
    stop.notify_one();
    silent.closed().await;
    assert_eq!(reading.read(&mut [0]).await.expect("its end"), 0);
    filled.await.expect("no panic");
    server.await.expect("no panic");
}

#[tokio::test]
async fn a_stream_that_begins_during_a_stop_does_not_delay_it() {
    let listener = bind("server.test", ([127, 0, 0, 1], 0).into()).await.expect("a socket");
    let address = listener.local_addr().expect("an address");
    let [begun, release, stop] = [(); 3].map(|()| Arc::new(Notify::new()));
    let (notify, held, asked) = (Arc::clone(&begun), Arc::clone(&release), Arc::clone(&stop));
    let handler: Handler = Arc::new(move |_| {
        let (notify, held) = (Arc::clone(&notify), Arc::clone(&held));
        async move {
            notify.notify_one();
            held.notified().await;
            Response::new(Body::stream(futures::stream::pending()))
        }
        .boxed()
    });
    let server = Server { limits: LIMITS, ..Server::new(handler) };
    let server = tokio::spawn(server.serve(listener, async move { asked.notified().await }));
    let _client = ask(address, "GET /stream").await;
    begun.notified().await;
    stop.notify_one();
    while TcpStream::connect(address).await.is_ok() {}
    release.notify_one();
    server.await.expect("the server ends");
}

#[tokio::test]
async fn a_stream_ends_if_its_client_reads_nothing() {
    let limits = Limits { send_timeout: Duration::from_millis(20), ..LIMITS };
    let (address, mut begun, _stop, _server) = serve(limits).await;
    let _stuck = ask(address, "GET /stream").await;
    fill(begun.recv().await.expect("a stream")).await;
}

/// A body that reports when it is dropped.
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
async fn a_whole_body_that_is_not_read_is_dropped() {
    let listener = bind("server.test", ([127, 0, 0, 1], 0).into()).await.expect("a socket");
    let address = listener.local_addr().expect("an address");
    let (kept, mut dropped) = mpsc::unbounded_channel();
    let handler = immediate(move |_| Response::new(Bytes::from_owner(Kept(vec![0; LARGE], kept.clone()))));
    let limits = Limits { send_timeout: Duration::from_millis(20), ..LIMITS };
    tokio::spawn(Server { limits, ..Server::new(handler) }.serve(listener, pending()));
    let _stuck = ask(address, "GET /page").await;
    dropped.recv().await.expect("the body is dropped");
}

#[tokio::test]
async fn the_oldest_unread_response_is_dropped_for_a_new_one() {
    let listener = bind("server.test", ([127, 0, 0, 1], 0).into()).await.expect("a socket");
    let address = listener.local_addr().expect("an address");
    let handler = immediate(move |request| {
        let length = if request.uri().path() == "/long" { LARGE } else { LENGTH };
        Response::new(vec![0; length].into())
    });
    let limits = Limits { answers: LARGE, ..LIMITS };
    tokio::spawn(Server { limits, ..Server::new(handler) }.serve(listener, pending()));
    // This client reads, but takes minutes: its kernel has the smallest receive buffer.
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(1).expect("the minimum size applies");
    let mut oldest = socket.connect(address).await.expect("a connection");
    oldest.write_all(b"GET /long HTTP/1.1\r\nhost: test\r\n\r\n").await.expect("sent");
    read_to(&mut oldest, "\r\n\r\n").await;
    let mut next = ask(address, "GET /page").await;
    read_to(&mut next, "\r\n\r\n").await;
    next.read_exact(&mut vec![0; LENGTH]).await.expect("the response is complete");
    oldest.read_exact(&mut vec![0; LARGE]).await.expect_err("its connection is closed");
}

#[test]
fn the_bytes_of_a_whole_body_are_known() {
    assert_eq!(Body::from(Bytes::from_static(b"text")).whole(), b"text");
    assert_eq!(stream().1.whole(), b"");
    assert_eq!(Body::late(pending()).whole(), b"");
}
