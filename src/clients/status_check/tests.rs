use std::sync::{Arc, Mutex};

use crate::fixtures::time;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::*;

#[test]
fn answers_of_the_expected_form_are_read() {
    let cases = [
        ("{}", None),
        ("null", None),
        (r#"{"deadline": null, "error": null, "idnumber": null}"#, None),
        (
            r#"{"error": "", "deadline": "2026-03-04T05:06:07Z", "idnumber": "s1"}"#,
            Some("2026-03-04T05:06:07Z"),
        ),
        (r#" {"DeadLine": "2026-03-04T05:06:07+01:00"} "#, Some("2026-03-04T04:06:07Z")),
        (r#"{"deadline": "2026-03-04T05:06:07.987654321Z"}"#, Some("2026-03-04T05:06:07Z")),
        // The zero time of Go.
        (r#"{"deadline": "0001-01-01T00:00:00Z"}"#, None),
        (r#"{"other": {"deep": [1, 2]}, "deadline": null}"#, None),
        // As in Go, the last of several members with the same key wins, and `null` changes nothing.
        (
            r#"{"deadline": "2026-03-04T05:06:07Z", "DEADLINE": "2027-01-01T00:00:00Z"}"#,
            Some("2027-01-01T00:00:00Z"),
        ),
        (r#"{"Deadline": "2026-03-04T05:06:07Z", "deadline": null}"#, Some("2026-03-04T05:06:07Z")),
    ];
    for (body, deadline) in cases {
        assert_eq!(decode(body.as_bytes()), Ok(deadline.map(time)), "{body}");
    }
}

#[test]
fn errors_do_not_repeat_hostile_responses() {
    let deep = "[".repeat(100_000);
    let far = r#"{"deadline": "9999-12-31T23:59:59-12:00"}"#;
    let cases = [
        "",
        "{",
        "{} {}",
        "<html>secret</html>",
        "[]",
        "1",
        "\"secret\"",
        "true",
        "\u{0}",
        &deep,
        far,
        r#"{"error": 1}"#,
        r#"{"idnumber": ["secret"]}"#,
        r#"{"deadline": ""}"#,
        r#"{"deadline": 1767225600}"#,
        r#"{"deadline": {"secret": 1}}"#,
        r#"{"deadline": "secret"}"#,
        r#"{"deadline": "2026-03-04T05:06:07"}"#,
        r#"{"deadline": "2026-03-04"}"#,
        r#"{"deadline": "2026-02-30T00:00:00Z"}"#,
        r#"{"deadline": "-009998-01-01T00:00:00Z"}"#,
        r#"{"deadline": "+002026-01-01T00:00:00Z"}"#,
        r#"{"deadline": "0000-01-01T00:00:00Z"}"#,
        r#"{"deadline": "20260304T050607Z"}"#,
        r#"{"deadline": "２０２６-03-04T05:06:07Z"}"#,
    ];
    for body in cases {
        let refused = decode(body.as_bytes());
        let shown: String = body.chars().take(60).collect();
        assert!(refused.as_ref().is_err_and(|text| !text.contains("secret")), "{shown}: {refused:?}");
    }
    assert!(decode(b"\xff\xfe").is_err());
}

#[test]
fn only_host_and_port_of_a_url_are_shown() {
    let cases = [
        ("https://exams.example.org/a?key=secret#b", Some("exams.example.org")),
        ("http://user:secret@10.0.0.1:8080/", Some("10.0.0.1:8080")),
        ("https://[::1]:443/", Some("[::1]")),
        ("ftp://example.org/", None),
        ("file:///etc/passwd", None),
        ("exams.example.org", None),
        ("http://", None),
        ("", None),
    ];
    for (url, shown) in cases {
        assert_eq!(host(url).as_deref(), shown, "{url}");
    }
}

/// A server that answers each request with the result of `answer` for its path. It then closes the connection or, if
/// the response ends with `…`, sends an endless body. The requests are recorded.
async fn serve(answer: fn(&str) -> String) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let requests: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(exchange(stream, answer, Arc::clone(&kept)));
        }
    });
    (address, requests)
}

async fn exchange(mut stream: TcpStream, answer: fn(&str) -> String, requests: Arc<Mutex<Vec<String>>>) {
    let mut buffer = [0; 4_096];
    let length = stream.read(&mut buffer).await.unwrap_or(0);
    let request = String::from_utf8_lossy(&buffer[..length]).into_owned();
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    requests.lock().expect("no panic").push(request);
    let answer = answer(&path);
    let (answer, is_endless) = answer.strip_suffix('…').map_or((&*answer, false), |answer| (answer, true));
    // The client may close the connection at any time.
    let _ = stream.write_all(answer.as_bytes()).await;
    while is_endless && stream.write_all(&[b' '; 4_096]).await.is_ok() {}
    if answer.is_empty() || path.starts_with("/later") {
        std::future::pending::<()>().await;
    }
}

/// A response with this status and body, or a redirect.
fn answers(path: &str) -> String {
    let of = |status: &str, body: &str| {
        format!("HTTP/1.1 {status} \r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
    };
    let to = |place: &str| {
        format!("HTTP/1.1 302 \r\nlocation: {place}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    };
    let endless = |status: &str| format!("HTTP/1.1 {status} \r\nconnection: close\r\n\r\n…");
    match path.split('?').next().unwrap_or_default() {
        "/kept" => of("200", r#"{"deadline": "2026-03-04T05:06:07Z"}"#),
        "/empty" => of("200", " \n"),
        "/204" => "HTTP/1.1 204 \r\nconnection: close\r\n\r\n".to_owned(),
        "/page" => of("200", "<html>"),
        "/later" => "HTTP/1.1 200 \r\ncontent-length: 9\r\n\r\n{".to_owned(),
        "/404" => of("404", "<html>"),
        "/410" => endless("410"),
        "/500" => of("500", "<html>"),
        "/503" => of("503", r#"{"error": "later"}"#),
        "/304" => "HTTP/1.1 304 \r\nconnection: close\r\n\r\n".to_owned(),
        "/endless" => endless("200"),
        "/file" => to("file:///etc/passwd"),
        "/ftp" => to("ftp://example.org/"),
        "/once" => to("/404"),
        "/loop" => to("/loop"),
        "/elsewhere" => to("http://127.0.0.2:1/"),
        "/hang" => String::new(),
        path => {
            // `/n` redirects n times.
            let left: u32 = path.trim_start_matches('/').parse().expect("a number");
            if left == 0 { of("200", "{}") } else { to(&format!("/{}", left - 1)) }
        }
    }
}

fn client() -> StatusClient {
    let rules = AddressRules::new(&[], &["127.0.0.0/8".parse().expect("a network")]);
    StatusClient::new("", Duration::from_secs(2), rules).expect("a client")
}

#[tokio::test(start_paused = true)]
async fn each_response_has_one_verdict() {
    let (address, _) = serve(answers).await;
    let keep = |code, deadline: Option<&str>| Verdict::Keep { code, deadline: Ok(deadline.map(time)) };
    let unread = |problem: &str| Verdict::Keep { code: 200, deadline: Err(problem.to_owned()) };
    let fail = |reason: &str, has_answered| Verdict::Failed { reason: reason.to_owned(), has_answered };
    let cases = [
        ("/kept", keep(200, Some("2026-03-04T05:06:07Z"))),
        ("/empty", keep(200, None)),
        ("/204", keep(204, None)),
        // The body can be anything: a page, half a page, or endless.
        ("/page", unread("the answer is not JSON")),
        ("/later", unread("no answer within 2s")),
        ("/404", Verdict::Gone { code: 404 }),
        ("/410", Verdict::Gone { code: 410 }),
        ("/500", fail("it answered 500", false)),
        ("/503", fail("it answered 503", true)),
        ("/304", fail("it answered 304", false)),
        ("/endless", unread("the answer is longer than 64 KiB")),
        ("/once", Verdict::Gone { code: 404 }),
        ("/10", keep(200, None)),
        ("/11", fail("it redirects more than 10 times", false)),
        ("/loop", fail("it redirects more than 10 times", false)),
        ("/file", fail("it answered 302", false)),
        ("/elsewhere", fail("it redirects to another host", false)),
        ("/ftp", fail("it redirects to a URL that is neither http nor https", false)),
        ("/hang", fail("no answer within 2s", false)),
    ];
    let client = client();
    for (path, verdict) in cases {
        assert_eq!(client.check(&format!("http://{address}{path}?key=secret")).await, verdict, "{path}");
    }
    assert_eq!(client.check("ftp://example.org").await, fail("it is not an http or https URL", false));
}

#[tokio::test(start_paused = true)]
async fn the_error_of_an_unreachable_server_omits_the_url() {
    // A socket that does not listen yet keeps its port, and rejects connections.
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(([127, 0, 0, 1], 0).into()).expect("a port");
    let address = socket.local_addr().expect("an address");
    let outages = Outages::default();
    let client = client().reporting_to(&outages);
    let verdict = client.check(&format!("http://{address}/a?key=secret")).await;
    assert_eq!(verdict, failed("it is not reachable"));
    let line =
        format!("[!] exam server {address}: failing for 0 s, its Instances are kept: it is not reachable\n");
    assert_eq!(outages.lines(), line);
    let listener = socket.listen(1).expect("it listens");
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a connection");
        exchange(stream, answers, Arc::default()).await;
    });
    assert_eq!(client.check(&format!("http://{address}/404")).await, Verdict::Gone { code: 404 });
    assert_eq!(outages.lines(), "");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_below_500_works() {
    let (address, _) = serve(answers).await;
    let outages = Outages::default();
    let client = client().reporting_to(&outages);
    for (path, works) in [
        ("/500", false),
        ("/304", true),
        ("/503", false),
        ("/file", true),
        ("/hang", false),
        ("/elsewhere", true),
        ("/500", false),
        ("/page", true),
    ] {
        client.check(&format!("http://{address}{path}")).await;
        assert_eq!(outages.lines().is_empty(), works, "{path}: {}", outages.lines());
    }
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_address_gets_no_connection_and_looks_unreachable() {
    let (address, requests) = serve(answers).await;
    let port = address.rsplit(':').next().expect("a port");
    let strict = StatusClient::new("", Duration::from_secs(2), AddressRules::default()).expect("a client");
    for host in ["127.0.0.1", "127.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "no-such-host.invalid"] {
        let verdict = strict.check(&format!("http://{host}:{port}/404")).await;
        assert_eq!(verdict, failed("it is not reachable"), "{host}");
    }
    assert!(requests.lock().expect("no panic").is_empty());
    let allowed = client().check(&format!("http://localhost:{port}/404")).await;
    assert_eq!(allowed, Verdict::Gone { code: 404 }, "a name with an allowed address");
}

#[tokio::test(start_paused = true)]
async fn a_redirect_target_does_not_receive_the_url() {
    let (address, requests) = serve(answers).await;
    client().check(&format!("http://{address}/once?key=secret")).await;
    let requests = requests.lock().expect("no panic").clone();
    assert_eq!(requests.len(), 2);
    assert!(requests[0].starts_with("GET /once?key=secret HTTP/1.1\r\n"), "{}", requests[0]);
    assert!(requests[1].starts_with("GET /404 HTTP/1.1\r\n"), "{}", requests[1]);
    assert!(!requests[1].contains("secret"), "{}", requests[1]);
}
