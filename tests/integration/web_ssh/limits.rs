//! Limits of number, size and time.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::json;

use super::Site;
use crate::daemon::{Daemon, Options, reserved_port};
use crate::lab::{Lab, PATIENCE, wait_until};
use cluster::browser::{Browser, Received, request};
use cluster::sshd::{LocalAddress, OPEN, Sshd, key_pair};

#[test]
fn no_more_terminals_are_open_than_allowed() {
    let site = Site::without_machine("web-slots", "maxConnections: 3");
    // All at once: the first browsers are evicted, and the last three get the full time.
    let browsers: Vec<Browser> = std::thread::scope(|scope| {
        let opening: Vec<_> = (0..20).map(|_| scope.spawn(|| Browser::connect(site.port))).collect();
        opening.into_iter().map(|opening| opening.join().expect("opened")).collect()
    });
    let ends: Vec<(String, u16)> = std::thread::scope(|scope| {
        let ending: Vec<_> =
            browsers.into_iter().map(|mut browser| scope.spawn(move || browser.end())).collect();
        ending.into_iter().map(|ending| ending.join().expect("ended")).collect()
    });
    let full = ends.iter().filter(|end| **end == ("Max connection limit reached".to_owned(), 1011)).count();
    let late = ends.iter().filter(|end| **end == ("Failed to read initialization message".to_owned(), 1011));
    assert_eq!((full, late.count()), (17, 3), "{ends:?}");
    // The slots are free again.
    let mut browser = Browser::connect(site.port);
    browser.send_text("{}");
    assert_eq!(browser.end().0, "Missing required fields in the initialization message");
}

#[test]
fn silent_sockets_take_no_terminal() {
    let site = Site::start("web-silent", "maxConnections: 2");
    let silent = || (0..20).map(|_| Browser::connect(site.port)).collect::<Vec<_>>();
    let mut sockets = silent();
    let mut one = site.open();
    sockets.extend(silent());
    let mut other = site.open();
    for browser in [&mut one, &mut other] {
        browser.enter("echo still the''re\n");
        browser.until("still there\r\n");
    }
    // Two terminals may be open; one more of the same user evicts none.
    assert_eq!(site.answer(&site.request()), ("Max connection limit reached".to_owned(), 1011));
    // One user has both, so another user gets the slot of the older one.
    let mut manager = Browser::open(site.port, &site.request_of("manager"));
    manager.until(OPEN);
    assert_eq!(one.end(), ("Max connection limit reached".to_owned(), 1011));
    other.enter("echo not disturb''ed\n");
    other.until("not disturbed\r\n");
}

#[test]
fn unauthenticated_clients_may_send_little() {
    let site = Site::without_machine("web-little", "");
    // A complete request with an invalid token: the daemon would check the token if it read the message.
    let message = request(&"x".repeat(40_000), &site.namespace(), "vm");
    assert_eq!(site.answer(&message), ("Invalid fist message format".to_owned(), 1011));
}

/// Waits for the end of a daemon that has been asked to stop, and asserts that no task had to be aborted.
fn ends_in_time(daemon: &mut Daemon) {
    let status = daemon.wait(PATIENCE).expect("it ends");
    assert!(status.success() && !daemon.log().contains("did not end in time"), "{status} {}", daemon.log());
}

#[test]
fn half_a_request_does_not_delay_a_stop() {
    let mut site = Site::without_machine("web-half", "");
    let mut halves: Vec<TcpStream> =
        ["GET /webssh HTTP/1.1\r\nhost", "POST /ready HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nx"]
            .map(|half| {
                let mut stream = TcpStream::connect(("127.0.0.1", site.port)).expect("the daemon listens");
                stream.write_all(half.as_bytes()).expect("sent");
                stream
            })
            .into();
    let mut silent = Browser::connect(site.port);
    site.daemon.signal("TERM");
    assert_eq!(silent.end(), ("The server is shutting down".to_owned(), 1001));
    ends_in_time(&mut site.daemon);
    for half in &mut halves {
        let mut rest = Vec::new();
        let _ = half.read_to_end(&mut rest);
    }
}

#[test]
fn an_rsa_key_opens_machines_too() {
    let mut site = Site::without_machine("web-rsa", "");
    fs::remove_file(site.key()).expect("the key");
    let made = std::process::Command::new("ssh-keygen")
        .args(["-q", "-N", "", "-t", "rsa", "-b", "2048", "-f"])
        .arg(site.key())
        .status();
    assert!(made.expect("ssh-keygen").success());
    let address = site.await_machine("vm");
    site.addresses.push(LocalAddress::add(address.ip()).expect("the address"));
    site.sshd = Some(Sshd::start(site.folder.path(), address, super::SHELL).expect("sshd"));
    wait_until(PATIENCE, || {
        let mut browser = Browser::open(site.port, &site.request());
        match browser.receive() {
            Received::Error(error) => Err(error),
            _ => Ok(()),
        }
    });
    drop(site.open());
}

#[test]
fn the_first_message_has_five_seconds_and_the_machine_ten() {
    let mut site = Site::without_machine("web-late", "");
    let address = site.await_machine("vm");
    site.addresses.push(LocalAddress::add(address.ip()).expect("the address"));
    let begin = Instant::now();
    let mut late = Browser::connect(site.port);
    // It accepts connections, because the kernel does so, and is silent.
    let _silent = TcpListener::bind(address).expect("a port");
    let request = site.request();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let expected = ("Failed to read initialization message".to_owned(), 1011);
            assert_eq!(late.end(), expected);
            assert!((5..10).contains(&begin.elapsed().as_secs()), "{:?}", begin.elapsed());
        });
        let begin = Instant::now();
        let expected = ("Failed to establish SSH connection".to_owned(), 1011);
        assert_eq!(site.answer(&request), expected);
        assert!((10..20).contains(&begin.elapsed().as_secs()), "{:?}", begin.elapsed());
    });
}

#[test]
fn an_idle_terminal_is_closed() {
    let site = Site::start("web-idle", "idleTimeout: 6s");
    let mut browser = site.open();
    // Output is activity …
    browser.enter("for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 0.8; done; echo do''ne\n");
    browser.until("done\r\n");
    let begin = Instant::now();
    // … and a ping is not.
    browser.send(&json!({"type": "ping"}));
    assert_eq!(browser.end(), ("Connection timed out due to inactivity".to_owned(), 1000));
    assert!(begin.elapsed() < Duration::from_mins(1), "{:?}", begin.elapsed());
}

#[test]
fn a_browser_that_reads_no_output_is_disconnected() {
    let site = Site::start("web-stalled", "sendTimeout: 1s");
    let mut stalled = site.open();
    let mut other = site.open();
    site.await_sessions(2.0);
    let before = site.memory();
    stalled.enter("yes\n");
    site.await_sessions(1.0);
    let growth = site.memory() - before;
    // `yes` writes some hundred MiB per second; the windows of the connections, and new memory pages, take a few.
    assert!(growth < 48.0, "the output was kept: {growth:.1} MiB");
    other.enter("echo not ''disturbed\n");
    other.until("not disturbed\r\n");
    // Data in transit arrives, then the connection ends.
    let mut rest = Vec::new();
    let _ = stalled.stream().read_to_end(&mut rest);
    assert!(!rest.is_empty(), "it had taken nothing");
}

#[test]
fn messages_have_a_maximum_size() {
    let site = Site::start("web-size", "");
    let mut browser = site.open();
    browser.enter("stty raw; echo begin; head -c 1000000 | wc -c; stty cooked; echo e''nd\n");
    browser.until("begin");
    browser.enter(&"x".repeat(1_000_000));
    assert!(browser.until("end").contains("1000000"), "an input of 1 MB");
    browser.enter(&"x".repeat(1 << 20));
    assert_eq!(browser.end(), ("Invalid message format".to_owned(), 1011));
}

#[test]
fn a_stop_ends_all_terminals() {
    let mut site = Site::start("web-stop", "");
    let mut browsers = [site.open(), site.open(), Browser::connect(site.port)];
    site.await_sessions(2.0);
    site.daemon.signal("TERM");
    for browser in &mut browsers {
        assert_eq!(browser.end(), ("The server is shutting down".to_owned(), 1001));
    }
    ends_in_time(&mut site.daemon);
    TcpStream::connect(("127.0.0.1", site.port)).expect_err("nobody listens");
}

#[test]
fn an_unusable_key_is_a_configuration_error() {
    let lab = Lab::shared();
    let folder = tempfile::TempDir::new().expect("a folder");
    let file = folder.path().join("key");
    let path = file.display().to_string();
    let begin = "controllers.webSsh.privateKeyFile";
    fs::write(&file, "ssh-ed25519 AAAA secret").expect("written");
    let config = format!("controllers: {{webSsh: {{enabled: true, privateKeyFile: {path}}}}}");
    let options = Options { kubeconfig: &lab.admin(), selector: "web-fault", config: &config };
    let mut daemon = Daemon::spawn(&options);
    assert_eq!(daemon.wait(PATIENCE).and_then(|status| status.code()), Some(1));
    let (log, fault) = (daemon.log(), format!("{begin}: {path} cannot be used: this is not a private key"));
    assert!(log.contains(&fault) && !log.contains("AAAA"), "{log}");
    let options = Options {
        kubeconfig: &lab.admin(),
        selector: "web-fault",
        config: "controllers: {webSsh: {enabled: true}}",
    };
    let mut daemon = Daemon::spawn(&options);
    assert_eq!(daemon.wait(PATIENCE).and_then(|status| status.code()), Some(1));
    let log = daemon.log();
    assert!(log.contains("webSsh is enabled and privateKeyFile is empty"), "{log}");
}

#[test]
fn a_missing_key_is_awaited() {
    let (lab, folder, port) = (Lab::shared(), tempfile::TempDir::new().expect("a folder"), reserved_port());
    let made = key_pair(&folder.path().join("made")).expect("a key");
    let file = folder.path().join("key");
    let config = format!(
        "controllers: {{webSsh: {{enabled: true, listen: \"127.0.0.1:{port}\", privateKeyFile: {}}}}}",
        file.display()
    );
    let options = Options { kubeconfig: &lab.admin(), selector: "web-later", config: &config };
    let daemon = Daemon::spawn(&options);
    let expected = format!(
        "[!] webSsh: controllers.webSsh.privateKeyFile: {} cannot be read; waiting for it",
        file.display()
    );
    daemon.wait_for("the fault", |daemon| daemon.ready().1.contains(&expected));
    TcpStream::connect(("127.0.0.1", port)).expect_err("nothing listens yet");
    fs::rename(made, file).expect("renamed");
    daemon.wait_for("the key", |daemon| daemon.page("/readyz/webSsh").0 == 200);
    TcpStream::connect(("127.0.0.1", port)).expect("it listens");
}

#[test]
fn a_replaced_key_is_used_from_then_on() {
    let site = Site::start("web-rotation", "");
    drop(site.open());
    fs::write(site.key(), "no key").expect("written");
    site.daemon.wait_for("the fault", |daemon| daemon.log().contains("the last valid version stays in use"));
    drop(site.open());
    let next = key_pair(&site.folder.path().join("next")).expect("a key");
    let text = fs::read_to_string(&next).expect("the key");
    for (from, to) in [("next.pub", "key.pub"), ("next", "key")] {
        fs::copy(site.folder.path().join(from), site.folder.path().join(to)).expect("replaced");
    }
    wait_until(PATIENCE, || {
        let mut browser = Browser::open(site.port, &site.request());
        match browser.receive() {
            Received::Error(error) => Err(error),
            _ => Ok(()),
        }
    });
    let log = site.daemon.log();
    let secret = text.lines().nth(2).expect("the third line of the key");
    assert!(!log.contains(secret) && !log.contains("no key in"), "{log}");
}

#[test]
fn five_hundred_open_terminals() {
    let site = Site::start_with("web-many", "", "exec cat");
    let request = site.request();
    let open = || {
        let mut browser = Browser::open(site.port, &request);
        // On a busy machine, a handshake may take longer than its limit.
        let opened = loop {
            match browser.receive() {
                Received::Error(_) => browser = Browser::open(site.port, &request),
                Received::Data(data) => break data,
                _ => {}
            }
        };
        // The line may come in two pieces.
        let rest = OPEN.strip_prefix(opened.as_str()).expect("the line of the shell");
        if !rest.is_empty() {
            browser.until(rest);
        }
        browser.enter("there\n");
        browser.until("there\r\nthere\r\n");
        browser
    };
    let mut browsers: Vec<Browser> = std::thread::scope(|scope| {
        let opening: Vec<_> =
            (0..4).map(|_| scope.spawn(|| (0..125).map(|_| open()).collect::<Vec<_>>())).collect();
        opening.into_iter().flat_map(|opening| opening.join().expect("opened")).collect()
    });
    site.await_sessions(500.0);
    let memory = site.memory();
    eprintln!("500 terminals: {memory:.1} MiB");
    assert!(memory < 64.0, "{memory:.1} MiB");
    for browser in &mut browsers {
        browser.enter("again\n");
    }
    for browser in &mut browsers {
        browser.until("again\r\nagain\r\n");
    }
    drop(browsers);
    site.await_sessions(0.0);
}
