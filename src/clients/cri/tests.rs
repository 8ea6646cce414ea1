//! Tests of the client against sockets on which nothing useful listens. `tests/integration/instance_metrics` has those
//! against containerd.

use std::path::PathBuf;

use tempfile::TempDir;
use tokio::net::UnixListener;

use super::*;

/// A folder and a socket in it.
fn socket() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("cri.sock");
    (folder, socket)
}

#[tokio::test]
async fn a_socket_that_is_not_there_is_named() {
    let (_folder, socket) = socket();
    let error = Cri::connect(&socket.display().to_string(), DEADLINE).await.expect_err("nothing listens");
    let expected = format!("{} does not answer: ", socket.display());
    assert!(error.to_string().starts_with(&expected), "{error}");
    assert!(error.to_string().contains("No such file or directory"), "{error}");
}

#[tokio::test]
async fn no_socket_of_several_is_a_failure_that_names_them_all() {
    let (folder, socket) = socket();
    let other = folder.path().join("other.sock");
    let found = Cri::first_of([socket.as_path(), other.as_path()].into_iter(), DEADLINE).await;
    let error = found.expect_err("nothing listens").to_string();
    assert!(error.contains("cri.sock") && error.contains("other.sock"), "{error}");
}

#[tokio::test]
async fn what_is_not_the_path_of_a_socket_is_refused() {
    let error = Cri::connect("tcp://127.0.0.1:1", DEADLINE).await.expect_err("refused").to_string();
    assert_eq!(error, "tcp://127.0.0.1:1 does not answer: it is not the path of a socket");
}

#[tokio::test]
async fn a_call_that_is_not_answered_ends_at_its_deadline_and_the_next_one_has_another_connection() {
    let (_folder, socket) = socket();
    let listener = UnixListener::bind(&socket).expect("bound");
    let client = Cri::new(&socket, Duration::from_millis(200));
    // Connections stay open, and nothing is read.
    let mut connections = Vec::new();
    for count in 1..=3 {
        let error = client.version().await.expect_err("nobody answers").to_string();
        let expected = format!("{} did not answer Version within 200ms", socket.display());
        assert_eq!(error, expected);
        while connections.len() < count {
            connections.push(listener.accept().await.expect("a connection"));
        }
    }
}

#[tokio::test]
async fn a_server_that_does_not_speak_http2_is_a_failure() {
    let (_folder, socket) = socket();
    let listener = UnixListener::bind(&socket).expect("bound");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // The client sends, so this can be written.
            let _ = stream.writable().await;
            let _ = stream.try_write(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let client = Cri::new(&socket, DEADLINE);
    let error = client.version().await.expect_err("that is not gRPC").to_string();
    assert!(!error.contains("did not answer Version within"), "{error}");
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_not_read() {
    let (_folder, socket) = socket();
    let listener = UnixListener::bind(&socket).expect("bound");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = hyper::service::service_fn(|_| async {
                // The prefix of a message of 32 MiB, without compression.
                let prefix = hyper::body::Bytes::from_static(&[0, 2, 0, 0, 0]);
                let response = http::Response::builder().header("content-type", "application/grpc");
                response.body(http_body_util::Full::new(prefix))
            });
            let server = hyper::server::conn::http2::Builder::new(hyper_util::rt::TokioExecutor::new());
            tokio::spawn(server.serve_connection(hyper_util::rt::TokioIo::new(stream), service));
        }
    });
    let error = Cri::new(&socket, DEADLINE).version().await.expect_err("too long");
    assert!(matches!(error, CriError::Refused { code: Code::OutOfRange, .. }), "{error}");
    assert!(error.to_string().contains("message length too large"), "{error}");
}
