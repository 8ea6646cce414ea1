//! Tests of the relay, with a page and a web SSH in memory.

use proptest::prelude::*;
use tokio::io::{DuplexStream, duplex};
use tokio_tungstenite::tungstenite::protocol::Role;

use super::*;
use crate::controllers::dashboard::http::socket::{close, settings};

type Side = WebSocketStream<DuplexStream>;

/// The two ends of a connection: a client, and the server that it is connected to.
async fn connection() -> (Side, Side) {
    let (one, other) = duplex(64 << 10);
    let side = |stream, role| WebSocketStream::from_raw_socket(stream, role, Some(settings(LONGEST)));
    tokio::join!(side(one, Role::Client), side(other, Role::Server))
}

/// A page and a web SSH with a relay between them.
async fn site() -> (Side, Side, tokio::task::JoinHandle<End>) {
    let (page, mut browser) = connection().await;
    let (mut machine, web_ssh) = connection().await;
    let relayed = tokio::spawn(async move {
        let end = relay(&mut browser, &mut machine).await;
        close(&mut browser, end).await;
        end
    });
    (page, web_ssh, relayed)
}

async fn say(side: &mut Side, text: &str) {
    side.send(Message::text(text)).await.expect("sent");
}

async fn hear(side: &mut Side) -> String {
    let message = side.next().await.expect("no end").expect("no error");
    message.into_text().expect("text").as_str().to_owned()
}

/// Whether nothing arrives.
async fn is_silent(side: &mut Side) -> bool {
    timeout(Duration::from_secs(1), side.next()).await.is_err()
}

#[tokio::test(start_paused = true)]
async fn messages_pass_unchanged_and_input_is_confirmed() {
    let (mut page, mut web_ssh, _relay) = site().await;
    let data = r#"{"type":"data","data":"$ \u001b[0m€"}"#;
    say(&mut web_ssh, data).await;
    assert_eq!(hear(&mut page).await, data);
    for text in [r#"{"type":"input","data":"ls\r"}"#, r#"{"type":"resize","cols":100,"rows":30}"#, "{}"] {
        say(&mut page, text).await;
        assert_eq!(hear(&mut web_ssh).await, text);
        assert_eq!(hear(&mut page).await, r#"{"type":"taken","count":1}"#);
    }
    say(&mut page, r#"{"ack":1}"#).await;
    assert!(is_silent(&mut web_ssh).await, "a confirmation is for the relay");
}

#[tokio::test(start_paused = true)]
async fn output_waits_until_the_page_has_shown_it_and_input_does_not() {
    let (mut page, mut web_ssh, _relay) = site().await;
    let sender = tokio::spawn(async move {
        for number in 0..1_000 {
            say(&mut web_ssh, &format!("out {number}")).await;
        }
        web_ssh
    });
    let mut heard = 0;
    while !is_silent(&mut page).await {
        heard += 1;
    }
    // A message is in the relay before it counts.
    assert!((WINDOW..WINDOW + TOGETHER).contains(&heard), "{heard}");
    say(&mut page, r#"{"ack":200}"#).await;
    assert!(hear(&mut page).await.starts_with("out "));
    let mut more = 1;
    while !is_silent(&mut page).await {
        more += 1;
    }
    assert!((200 - TOGETHER..=200 + TOGETHER).contains(&more), "{more}");
    say(&mut page, &format!(r#"{{"ack":{}}}"#, usize::MAX)).await;
    let mut last = String::new();
    while last != "out 999" {
        last = hear(&mut page).await;
        say(&mut page, r#"{"ack":1}"#).await;
    }
    let mut web_ssh = sender.await.expect("all were sent");
    say(&mut page, "in").await;
    assert_eq!(hear(&mut web_ssh).await, "in");
}

#[tokio::test(start_paused = true)]
async fn confirmations_pass_input_that_web_ssh_does_not_take() {
    let (mut page, mut web_ssh, _relay) = site().await;
    // More than fits into the connection, which web SSH does not read, and no more than a page has on the way.
    let long = format!("in {}", "x".repeat(LONGEST - 10));
    for _ in 0..QUEUED {
        say(&mut page, &long).await;
    }
    for number in 0..WINDOW {
        say(&mut web_ssh, &format!("out {number}")).await;
    }
    let mut heard = 0;
    while heard < WINDOW {
        heard += usize::from(hear(&mut page).await.starts_with("out "));
    }
    say(&mut page, &format!(r#"{{"ack":{WINDOW}}}"#)).await;
    say(&mut web_ssh, "next").await;
    while hear(&mut page).await != "next" {}
}

#[tokio::test(start_paused = true)]
async fn the_end_is_the_one_that_web_ssh_says() {
    for (text, code, expected) in [
        (said::SHELL_ENDED, CloseCode::Normal, End::Done),
        (said::IDLE, CloseCode::Normal, End::Idle),
        (said::STOPPING, CloseCode::Away, End::Stopping),
        (said::FULL, CloseCode::Error, End::Full),
        (said::DENIED, CloseCode::Error, End::Denied),
        (said::LOST, CloseCode::Policy, End::Denied),
        (said::UNDECIDED, CloseCode::Error, End::Away),
        (said::NO_CONNECTION, CloseCode::Error, End::Lost),
        ("something new", CloseCode::Error, End::Lost),
        ("", CloseCode::Away, End::Stopping),
        ("", CloseCode::Normal, End::Done),
        ("", CloseCode::Error, End::Lost),
    ] {
        let (mut page, mut web_ssh, relay) = site().await;
        say(&mut web_ssh, "out").await;
        if !text.is_empty() {
            say(&mut web_ssh, &format!(r#"{{"type":"error","error":"{text}"}}"#)).await;
        }
        web_ssh.close(Some(CloseFrame { code, reason: "".into() })).await.expect("sent");
        assert_eq!(relay.await.expect("it ended"), expected, "{text} {code}");
        assert_eq!(hear(&mut page).await, "out", "the output before the end is sent");
    }
}

#[tokio::test(start_paused = true)]
async fn the_output_of_a_machine_cannot_pretend_to_be_an_end() {
    let (mut page, mut web_ssh, relay) = site().await;
    let output = r#"{"type":"data","data":"{\"type\":\"error\",\"error\":\"SSH session closed\"}"}"#;
    say(&mut web_ssh, output).await;
    assert_eq!(hear(&mut page).await, output);
    drop(web_ssh);
    assert_eq!(relay.await.expect("it ended"), End::Lost);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_closes_or_sends_too_much_at_once_has_left_and_a_silent_web_ssh_is_lost() {
    let (mut page, _web_ssh, relay) = site().await;
    page.close(None).await.expect("sent");
    assert_eq!(relay.await.expect("it ended"), End::Left);
    let (mut page, _web_ssh, relay) = site().await;
    // The page of a test has the same limit, and checks only what it receives.
    let sent = page.send(Message::text("x".repeat(LONGEST + 1))).await;
    assert!(sent.is_ok(), "{sent:?}");
    assert_eq!(relay.await.expect("it ended"), End::Left);
    let (_page, _web_ssh, relay) = site().await;
    let begin = Instant::now();
    assert_eq!(relay.await.expect("it ended"), End::Lost);
    let took = begin.elapsed();
    assert!(took >= SILENCE && took < SILENCE + Duration::from_secs(5), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_page_that_takes_nothing_has_left() {
    let (_page, mut web_ssh, relay) = site().await;
    // More than fits into the connection of the page.
    let output = "x".repeat(1 << 10);
    let sender =
        tokio::spawn(async move { while web_ssh.send(Message::text(output.as_str())).await.is_ok() {} });
    let begin = Instant::now();
    assert_eq!(relay.await.expect("it ended"), End::Left);
    assert!(begin.elapsed() >= STALLED && begin.elapsed() < 2 * STALLED, "{:?}", begin.elapsed());
    sender.await.expect("its connection has ended");
}

proptest! {
    #[test]
    fn arbitrary_messages_do_not_panic(text in any::<String>(), number in any::<u64>()) {
        prop_assert_eq!(confirmed(&text), None);
        let _ = end_in(&text);
        let _ = end_in(&format!(r#"{{"type":"error"{text}"#));
        prop_assert_eq!(confirmed(&format!(r#"{{"ack":{number}}}"#)), usize::try_from(number).ok());
    }
}
