//! Clients that are silent, that send without end, or that send too much.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{ALLOWED, SERVER, STUDENT, Site, read_answer, send};

/// More connections than the server accepts.
const CROWD: usize = 700;

#[test]
fn clients_that_never_finish_delay_no_other_client() {
    let site = Site::start("exam-slow", &format!("{ALLOWED}, clientQps: 10000, clientMaxBurst: 10000"));
    let open = |begin: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", site.port)).expect("a connection");
        stream.write_all(begin.as_bytes()).expect("sent");
        stream
    };
    // Some send nothing; more than the limit begin a request and do not finish it.
    let silent: Vec<TcpStream> = (0..CROWD)
        .map(|number| {
            open(if number % 8 == 0 { "" } else { "GET /api/instances/exam HTTP/1.1\r\nHost: x\r\nX: " })
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(site.ask("GET", "/api/instances/", "").status, 200);
    }
    drop(silent);
    // Bodies that never arrive, and one without end.
    let head = "PUT /api/instances/exam HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 192.0.2.10\r\n";
    let mut waiting: Vec<TcpStream> =
        (0..100).map(|_| open(&format!("{head}Content-Length: 60000\r\n\r\n{{"))).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let endless = scope.spawn(|| {
            let mut stream = open(&format!("{head}Transfer-Encoding: chunked\r\n\r\n"));
            let chunk = format!("1000\r\n{}\r\n", " ".repeat(0x1000));
            let mut sent = 0;
            // Until the server has closed the connection.
            while !is_over.load(Ordering::Relaxed) && stream.write_all(chunk.as_bytes()).is_ok() {
                sent += 1;
            }
            sent
        });
        for _ in 0..20 {
            assert_eq!(site.ask("GET", "/api/instances/", "").status, 200);
        }
        for stream in &mut waiting {
            let answer = read_up_to_head(stream);
            assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        }
        let sent = endless.join().expect("it has ended");
        // Data in the buffers of the sockets is not in the memory of the daemon.
        assert!(sent < 10_000, "{sent} chunks were taken");
    });
    is_over.store(true, Ordering::Relaxed);
    let memory = site.daemon.size("RssAnon");
    assert!(memory < 120, "{memory} MiB");
    assert_eq!(site.ask("GET", "/healthz", "").status, 200);
}

/// The beginning of a response over a connection that stays open.
fn read_up_to_head(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 1024];
    while !bytes.windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn a_long_body_is_rejected() {
    let site = Site::start("exam-long", ALLOWED);
    let body = format!("{{\"id\": \"{}\"}}", "x".repeat(64 << 10));
    let mut stream = TcpStream::connect(("127.0.0.1", site.port)).expect("a connection");
    // The server may close the connection before it has read all.
    let request = super::request("PUT", "/api/instances/exam", &[("X-Forwarded-For", SERVER)], &body);
    drop(stream.write_all(request.as_bytes()));
    assert_eq!(read_answer(&mut stream).status, 413);
    let labels: Vec<String> = (0..2_000).map(|number| format!("\"l{number}\": \"\"")).collect();
    let body = format!("{{\"template\": \"container\", \"labels\": {{{}}}}}", labels.join(","));
    let answer = site.ask("PUT", "/api/instances/exam", &body);
    assert!(matches!(answer.status, 201 | 422), "{answer:?}");
}

#[test]
fn a_student_with_too_many_requests_does_not_slow_the_exam_server() {
    let site = Site::start("exam-often", &format!("{ALLOWED}, clientQps: 1, clientMaxBurst: 20"));
    let student =
        || send(site.port, "GET", "/api/instances/exam", &[("X-Forwarded-For", STUDENT)], "").status;
    let answers: Vec<u16> = (0..100).map(|_| student()).collect();
    assert!(answers.iter().all(|status| *status == 404), "{answers:?}");
    // The whole burst is available, without a wait.
    for number in 0..10 {
        let path = format!("/api/instances/exam-{number}");
        assert_eq!(site.ask("PUT", &path, r#"{"template": "container"}"#).status, 201, "{number}");
    }
    // A client without tokens waits for ten seconds at most.
    let answers: Vec<_> = std::thread::scope(|scope| {
        let ask = || site.ask("GET", "/api/instances/exam-1", "");
        let asking: Vec<_> = (0..30).map(|_| scope.spawn(ask)).collect();
        asking.into_iter().map(|asking| asking.join().expect("an answer")).collect()
    });
    let refused = answers.iter().find(|answer| answer.status == 429).expect("one is refused");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    assert_eq!(send(site.port, "GET", "/healthz", &[], "").status, 200, "nothing is asked for that");
}
