//! Tests of the client against sockets that no useful server listens on. `tests/integration/instance_metrics` has the
//! tests against containerd.

use std::path::PathBuf;

use tempfile::TempDir;
use tokio::net::UnixListener;

use super::*;

/// A socket in a new folder.
fn socket() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("cri.sock");
    (folder, socket)
}

#[tokio::test(start_paused = true)]
async fn the_error_names_a_missing_socket() {
    let (_folder, socket) = socket();
    let error = Cri::connect(&socket.display().to_string(), DEADLINE).await.expect_err("nothing listens");
    let expected = format!("{} does not answer: ", socket.display());
    assert!(error.to_string().starts_with(&expected), "{error}");
    assert!(error.to_string().contains("No such file or directory"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_error_names_all_sockets_that_were_tried() {
    let (folder, socket) = socket();
    let other = folder.path().join("other.sock");
    let found = Cri::first_of(&[socket.as_path(), other.as_path()], DEADLINE).await;
    let error = found.expect_err("nothing listens").to_string();
    assert!(error.contains("cri.sock") && error.contains("other.sock"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_is_not_a_socket_path_is_rejected() {
    let error = Cri::connect("tcp://127.0.0.1:1", DEADLINE).await.expect_err("refused").to_string();
    assert_eq!(error, "tcp://127.0.0.1:1 does not answer: it is not the path of a socket");
}

#[tokio::test(start_paused = true)]
async fn a_call_times_out_and_the_next_call_opens_another_connection() {
    let (_folder, socket) = socket();
    let listener = UnixListener::bind(&socket).expect("bound");
    let client = Cri::new(&socket, Duration::from_millis(200));
    // Connections stay open, but nothing is read.
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

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_speak_http2_is_a_failure() {
    let (_folder, socket) = socket();
    let listener = UnixListener::bind(&socket).expect("bound");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // The client sends data, so the stream becomes writable.
            let _ = stream.writable().await;
            let _ = stream.try_write(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let client = Cri::new(&socket, DEADLINE);
    let error = client.version().await.expect_err("that is not gRPC").to_string();
    assert!(!error.contains("did not answer Version within"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_response_above_the_size_limit_is_not_read() {
    let (_folder, socket) = socket();
    let listener = UnixListener::bind(&socket).expect("bound");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = hyper::service::service_fn(|_| async {
                // The prefix of a message of 32 MiB without compression.
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
