use std::sync::Mutex;

use futures::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

use super::*;

#[tokio::test]
async fn plain_requests_are_answered_until_the_end() {
    let listener = bind("server.test", ([127, 0, 0, 1], 0).into()).await.expect("a socket");
    let address = listener.local_addr().expect("an address");
    let taken = bind("server.test", address).await.expect_err("in use").to_string();
    assert!(taken.starts_with(&format!("server.test: cannot listen on {address}: ")), "{taken}");
    let handler = read_only(|path| match path {
        "/page" => Some(text(StatusCode::OK, "a page")),
        "/panic" => panic!("a defect"),
        _ => None,
    });
    let stop = Arc::new(Notify::new());
    let asked = Arc::clone(&stop);
    let limits = Limits { body: 4, ..Limits::default() };
    let server = Server { limits, ..Server::new(handler) };
    let task = tokio::spawn(server.serve(listener, async move { asked.notified().await }));
    for (request, status, body) in [
        ("GET /page", "200 OK", "a page"),
        ("HEAD /page", "200 OK", ""),
        ("GET /other", "404 Not Found", "no such page\n"),
        ("POST /page", "405 Method Not Allowed", "only GET\n"),
        ("GET /panic", "500 Internal Server Error", "defect of the daemon\n"),
    ] {
        let answer = exchange(address, request, "body").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{request}: {answer}");
        assert!(answer.ends_with(body), "{request}: {answer}");
    }
    assert!(exchange(address, "POST /page", "longer").await.starts_with("HTTP/1.1 413 "));
    stop.notify_one();
    task.await.expect("no panic");
    TcpStream::connect(address).await.expect_err("the listener is closed");
}

async fn exchange(address: SocketAddr, request: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let length = body.len();
    let head = format!("{request} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-length: {length}");
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

#[tokio::test]
async fn an_incomplete_request_does_not_block_other_clients() {
    let listener = bind("server.test", ([127, 0, 0, 1], 0).into()).await.expect("a socket");
    let address = listener.local_addr().expect("an address");
    let handler = immediate(|request| {
        let peer = request.extensions().get::<Peer>().map(|peer| peer.0.to_string());
        text(StatusCode::OK, peer.unwrap_or_default())
    });
    let limits = Limits { connections: 2, idle_timeout: Duration::from_hours(1), ..Limits::default() };
    tokio::spawn(Server { limits, ..Server::new(handler) }.serve(listener, std::future::pending()));
    let mut slow = Vec::new();
    for number in 0..6 {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        if number % 2 == 1 {
            // A complete request, then half of another one.
            stream.write_all(b"GET /page HTTP/1.1\r\nhost: test\r\n\r\n").await.expect("sent");
            let mut begin = [0; 12];
            stream.read_exact(&mut begin).await.expect("an answer");
            assert_eq!(&begin, b"HTTP/1.1 200");
        }
        stream.write_all(b"GET /page HTTP/1.1\r\nx: ").await.expect("sent");
        slow.push(stream);
        let answer = exchange(address, "GET /page", "").await;
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("127.0.0.1"), "{answer}");
    }
}

#[tokio::test]
async fn only_a_long_body_waits_for_the_other_long_ones() {
    let listener = bind("server.test", ([127, 0, 0, 1], 0).into()).await.expect("a socket");
    let address = listener.local_addr().expect("an address");
    let (begun, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let paths = Arc::<Mutex<Vec<String>>>::default();
    let (notify, held, noted) = (Arc::clone(&begun), Arc::clone(&release), Arc::clone(&paths));
    let handler: Handler = Arc::new(move |request: Request<Bytes>| {
        let (notify, held, noted) = (Arc::clone(&notify), Arc::clone(&held), Arc::clone(&noted));
        async move {
            noted.lock().expect("no panic").push(request.uri().path().to_owned());
            if request.uri().path() == "/first" {
                notify.notify_one();
                held.notified().await;
            }
            text(StatusCode::OK, "read").map(Body::from)
        }
        .boxed()
    });
    // Both long bodies together exceed the budget.
    let limits = Limits { body: 2 * SHORT_BODY, long_bodies: 2 * SHORT_BODY, ..Limits::default() };
    let server = Server { limits, ..Server::new(handler) };
    tokio::spawn(server.serve(listener, std::future::pending()));
    let send = |path: &'static str, length: usize| async move {
        let answer = exchange(address, &format!("POST {path}"), &"x".repeat(length)).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
    };
    let first = tokio::spawn(send("/first", SHORT_BODY + 1));
    begun.notified().await;
    let second = tokio::spawn(send("/second", SHORT_BODY + 1));
    for _ in 0..10 {
        send("/short", SHORT_BODY).await;
        send("/short", 1).await;
    }
    release.notify_one();
    for long in [first, second] {
        long.await.expect("there is a response");
    }
    let paths = paths.lock().expect("no panic").clone();
    let mut expected = vec!["/short"; 22];
    (expected[0], expected[21]) = ("/first", "/second");
    assert_eq!(paths, expected);
}

#[tokio::test]
async fn an_incomplete_request_does_not_delay_a_stop_and_a_complete_one_is_answered() {
    let listener = bind("server.test", ([127, 0, 0, 1], 0).into()).await.expect("a socket");
    let address = listener.local_addr().expect("an address");
    let (begun, release, stop) = (Arc::new(Notify::new()), Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (notify, held, asked) = (Arc::clone(&begun), Arc::clone(&release), Arc::clone(&stop));
    let handler: Handler = Arc::new(move |_| {
        let (notify, held) = (Arc::clone(&notify), Arc::clone(&held));
        async move {
            notify.notify_one();
            held.notified().await;
            text(StatusCode::OK, "after the stop").map(Body::from)
        }
        .boxed()
    });
    let hour = Duration::from_hours(1);
    let limits = Limits { receive_timeout: hour, idle_timeout: hour, ..Limits::default() };
    let task = tokio::spawn(
        Server { limits, ..Server::new(handler) }.serve(listener, async move { asked.notified().await }),
    );
    let mut halves = Vec::new();
    for half in [
        "",
        "GET",
        "GET / HTTP/1.1\r\nhost: x",
        "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf",
    ] {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream.write_all(half.as_bytes()).await.expect("sent");
        halves.push(stream);
    }
    let whole = tokio::spawn(async move { exchange(address, "GET /page", "").await });
    begun.notified().await;
    stop.notify_one();
    // All of them are closed while the complete request is still being handled.
    for mut half in halves {
        let mut rest = Vec::new();
        let _ = half.read_to_end(&mut rest).await;
        assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408 "), "{}", String::from_utf8_lossy(&rest));
    }
    assert!(!task.is_finished());
    release.notify_one();
    assert!(whole.await.expect("no panic").ends_with("after the stop"));
    task.await.expect("no panic");
}

#[tokio::test]
async fn a_request_that_has_arrived_before_a_stop_is_answered() {
    let listener = bind("server.test", ([127, 0, 0, 1], 0).into()).await.expect("a socket");
    let address = listener.local_addr().expect("an address");
    let stop = Arc::new(Notify::new());
    let asked = Arc::clone(&stop);
    let server = Server::new(immediate(|_| text(StatusCode::OK, "answered")));
    let task = tokio::spawn(server.serve(listener, async move { asked.notified().await }));
    let request = b"GET /page HTTP/1.1\r\nhost: test\r\n\r\n";
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(request).await.expect("sent");
    let mut first = Vec::new();
    while !first.ends_with(b"answered") {
        assert!(stream.read_buf(&mut first).await.expect("an answer") > 0, "the connection is kept");
    }
    // The server notices the request only after the stop, because no other task runs in between.
    stream.write_all(request).await.expect("sent");
    stop.notify_one();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("answered"), "{answer}");
    assert!(answer.contains("connection: close\r\n"), "{answer}");
    task.await.expect("no panic");
}

#[tokio::test]
async fn every_request_of_a_burst_gets_a_response() {
    let listener = bind("server.test", ([127, 0, 0, 1], 0).into()).await.expect("a socket");
    let address = listener.local_addr().expect("an address");
    let mut clients = Vec::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream
            .write_all(b"POST /machines HTTP/1.1\r\nhost: test\r\ncontent-length: 0\r\n\r\n")
            .await
            .expect("sent");
        clients.push(stream);
    }
    let handler = immediate(|_| text(StatusCode::OK, "created"));
    let limits = Limits { connections: 2, ..Limits::default() };
    tokio::spawn(Server { limits, ..Server::new(handler) }.serve(listener, std::future::pending()));
    for (mut stream, number) in clients.into_iter().zip(0..) {
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).await.unwrap_or_else(|error| panic!("client {number}: {error}"));
        assert_eq!(&begin, b"HTTP/1.1 200", "client {number}");
    }
}

#[tokio::test]
async fn a_connection_without_a_request_needs_no_slot() {
    let listener = bind("server.test", ([127, 0, 0, 1], 0).into()).await.expect("a socket");
    let address = listener.local_addr().expect("an address");
    let handler = immediate(|_| text(StatusCode::OK, "created"));
    let limits = Limits { connections: 2, ..Limits::default() };
    tokio::spawn(Server { limits, ..Server::new(handler) }.serve(listener, std::future::pending()));
    let mut clients = Vec::new();
    for _ in 0..10 {
        clients.push(TcpStream::connect(address).await.expect("a connection"));
        // Others take both slots after it has connected.
        for answer in join_all((0..4).map(|_| exchange(address, "GET /page", ""))).await {
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        }
    }
    for (mut stream, number) in clients.into_iter().zip(0..) {
        stream.write_all(b"GET /page HTTP/1.1\r\nhost: test\r\n\r\n").await.expect("sent");
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).await.unwrap_or_else(|error| panic!("client {number}: {error}"));
        assert_eq!(&begin, b"HTTP/1.1 200", "client {number}");
    }
}

#[tokio::test]
async fn a_connection_that_stays_silent_is_closed() {
    let listener = bind("server.test", ([127, 0, 0, 1], 0).into()).await.expect("a socket");
    let address = listener.local_addr().expect("an address");
    let handler = immediate(|_| text(StatusCode::OK, "created"));
    let limits = Limits { idle_timeout: Duration::from_millis(50), ..Limits::default() };
    tokio::spawn(Server { limits, ..Server::new(handler) }.serve(listener, std::future::pending()));
    let mut silent = TcpStream::connect(address).await.expect("a connection");
    assert_eq!(silent.read(&mut [0]).await.expect("no error"), 0);
}
