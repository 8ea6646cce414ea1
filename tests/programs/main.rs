//! The sources of the programs of the test cluster: `tests/cluster/programs.sh` with a server of archives and a fake
//! `go` of the test.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

mod demo;
mod place;
mod server;

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

use place::{ALL, ARCHIVE, MODULE, Place, Said, releases};
use server::{Answer, Server};

/// The archives with another response for the path with this end.
fn with(end: &str, change: impl Fn(Vec<u8>) -> Answer) -> BTreeMap<String, Answer> {
    let mut files = releases();
    let path = files.keys().find(|path| path.ends_with(end)).expect("an archive").clone();
    let Some(Answer::Whole(bytes)) = files.remove(&path) else { panic!("{path}") };
    files.insert(path, change(bytes));
    files
}

/// Takes everything from a server with one wrong response. Asserts that only programs of that module come from Go.
fn falls_back(files: BTreeMap<String, Answer>, from_go: &[&str], builds: &[&str], reason: &str) {
    let (server, place) = (Server::start(files), Place::new());
    let said = place.run(&server.url(), &ALL);
    for name in ALL {
        let wanted = if from_go.contains(&name) { MODULE } else { ARCHIVE };
        assert_eq!(said.content(name), wanted, "{name}: {}", said.progress);
    }
    assert_eq!(place.builds(), builds);
    assert!(said.progress.contains(reason), "{}", said.progress);
    assert_eq!(place.cached(), ["build.lock", "etcd", "kubernetes", "kwok"]);
}

#[test]
fn archives_with_their_checksums_are_taken_once() {
    let (server, place) = (Server::start(releases()), Place::new());
    assert_eq!(place.run(&server.url(), &[&["--from"][..], &ALL].concat()).output, "archives\n");
    let said = place.run(&server.url(), &ALL);
    for name in ALL {
        assert_eq!(said.content(name), ARCHIVE, "{name}");
    }
    assert_eq!(place.builds(), Vec::<String>::new());
    assert_eq!(place.cached(), ["build.lock", "etcd", "kubernetes", "kwok"]);
    let asked = server.requests().len();
    assert_eq!(place.run(&server.url(), &[&["--from"][..], &ALL].concat()).output, "cache\n");
    let again = place.run(&server.url(), &ALL);
    assert_eq!((again.output, again.progress), (said.output, String::new()));
    assert_eq!(server.requests().len(), asked, "{:?}", server.requests());
}

#[test]
fn a_program_with_a_wrong_checksum_is_rejected() {
    let files = with("/kubectl", |mut bytes| {
        bytes[0] ^= 1;
        Answer::Whole(bytes)
    });
    falls_back(files, &ALL[..4], &["kubernetes"], "instead of");
    let files = with(".tar.gz", |_| Answer::Whole(b"another".to_vec()));
    falls_back(files, &["etcd"], &["etcd"], "and is not used");
}

#[test]
fn a_program_without_a_checksum_is_rejected() {
    let files = with("/SHA256SUMS", |_| Answer::Whole(b"0000  another.tar.gz\n".to_vec()));
    falls_back(files, &["etcd"], &["etcd"], "there is no checksum of etcd-v");
    let files = with("/kubectl.sha256", |_| Answer::Whole(b"<html></html>\n".to_vec()));
    falls_back(files, &ALL[..4], &["kubernetes"], "there is no checksum of kubectl");
    let without = |bytes: Vec<u8>| {
        Answer::Whole(String::from_utf8(bytes).expect("text").replace("digest", "sum").into_bytes())
    };
    let mut files = releases();
    let path = files.keys().find(|path| path.contains("api.github.com")).expect("kwok").clone();
    let Some(Answer::Whole(bytes)) = files.remove(&path) else { panic!("{path}") };
    files.insert(path, without(bytes));
    falls_back(files, &["kwok"], &["kwok"], "there is no checksum of kwok-linux-");
}

#[test]
fn a_download_that_breaks_or_stalls_is_aborted() {
    falls_back(with("/kube-scheduler", Answer::Cut), &ALL[..4], &["kubernetes"], "did not arrive whole");
    let begin = Instant::now();
    falls_back(with("/kube-scheduler", Answer::Stalled), &ALL[..4], &["kubernetes"], "did not arrive whole");
    // Without a limit it would take half an hour.
    assert!(begin.elapsed() < Duration::from_mins(5), "{:?}", begin.elapsed());
}

#[test]
fn a_silent_server_is_asked_once() {
    let (server, place) = (Server::start(with("/kube-apiserver.sha256", |_| Answer::Silent)), Place::new());
    let said = place.run(&server.url(), &ALL);
    assert!(ALL.iter().all(|name| said.content(name) == MODULE), "{}", said.progress);
    assert_eq!(place.builds(), ["kubernetes", "etcd", "kwok"]);
    assert_eq!(server.requests().len(), 1, "{:?}", server.requests());
}

#[test]
fn no_archive_is_requested_if_archives_are_disabled() {
    let place = Place::new();
    assert_eq!(place.run("none", &["--from", "etcd"]).output, "modules\n");
    // Its archive is not requested.
    let server = Server::start(releases());
    assert_eq!(place.run(&server.url(), &["oauth2-proxy"]).content("oauth2-proxy"), MODULE);
    assert_eq!(server.requests(), Vec::<String>::new());
}

#[test]
fn the_oldest_kubernetes_is_another_module_and_nothing_else_is_built_twice() {
    let place = Place::new();
    assert_eq!(place.run("none", &["etcd", "kwok"]).content("kwok"), MODULE);
    assert_eq!(place.builds(), ["etcd", "kwok"], "it was not requested");
    let oldest = || Said::of(&place.script("none", &ALL).env("OLDEST", "1").output().expect("it runs"));
    let said = oldest();
    assert!(ALL.iter().all(|name| said.content(name) == MODULE), "{}", said.progress);
    assert_eq!(place.builds(), ["etcd", "kwok", "kubernetes-oldest"]);
    let newest = place.run("none", &ALL);
    assert_eq!(place.builds(), ["etcd", "kwok", "kubernetes-oldest", "kubernetes"]);
    assert_ne!(newest.output, said.output);
    assert_eq!(oldest().output, said.output);
    // The archives have its version.
    let server = Server::start(BTreeMap::new());
    place.script(&server.url(), &["--from", "kubectl"]).env("OLDEST", "1").output().expect("it runs");
    assert!(
        server.requests().iter().all(|asked| asked.contains("/dl.k8s.io/v1.30.")),
        "{:?}",
        server.requests()
    );
}

#[test]
fn a_failed_build_leaves_only_its_reason() {
    let place = Place::new();
    let output = place.script("none", &["etcd"]).env("GO_FAILS", "1").output().expect("it runs");
    let said = Said::of(&output);
    assert!(
        !said.is_success && said.output.contains("building etcd") && said.output.contains("no such module")
    );
    assert_eq!(place.cached(), ["build.lock"]);
    let said = place.run("none", &["etcd", "unknown"]);
    assert!(!said.is_success && said.output.contains("there is no program unknown"), "{}", said.output);
    assert_eq!(place.run("none", &["etcd"]).content("etcd"), MODULE);
}

#[test]
fn an_aborted_build_leaves_nothing_incomplete() {
    let place = Place::new();
    let child =
        place.script("none", &["etcd"]).env("GO_WAITS", "1").process_group(0).spawn().expect("it runs");
    let begin = Instant::now();
    while !place.path("waits").exists() {
        assert!(begin.elapsed() < Duration::from_mins(2), "the build begins");
        std::thread::sleep(Duration::from_millis(20));
    }
    let group = format!("-{}", child.id());
    assert!(Command::new("kill").args(["-TERM", "--", &group]).status().expect("kill").success());
    assert!(!child.wait_with_output().expect("it ends").status.success());
    assert_eq!(place.cached(), ["build.lock"]);
    assert_eq!(place.run("none", &["etcd"]).content("etcd"), MODULE);
}

#[test]
fn concurrent_callers_build_once() {
    let place = Place::new();
    let children: Vec<_> =
        (0..4).map(|_| place.script("none", &["etcd"]).spawn().expect("it runs")).collect();
    for child in children {
        assert_eq!(Said::of(&child.wait_with_output().expect("it ends")).content("etcd"), MODULE);
    }
    assert_eq!(place.builds(), ["etcd"]);
}

#[test]
fn given_programs_are_used_and_the_others_are_built() {
    let place = Place::new();
    let given = place.path("assets");
    fs::create_dir(&given).expect("created");
    let run = |names: &[&str]| {
        let output = place.script("none", names).env("KUBEBUILDER_ASSETS", &given).output();
        Said::of(&output.expect("it runs"))
    };
    let refused = run(&["kwok"]);
    assert!(!refused.is_success && refused.output.contains("has no kube-apiserver"), "{}", refused.output);
    for name in ["kube-apiserver", "etcd", "kubectl"] {
        fs::write(given.join(name), "given").expect("written");
        fs::set_permissions(given.join(name), Permissions::from_mode(0o755)).expect("a program");
    }
    let said = run(&ALL);
    for name in ALL {
        let wanted = if given.join(name).exists() { "given" } else { MODULE };
        assert_eq!(said.content(name), wanted, "{name}");
    }
    assert_eq!(place.builds(), ["kubernetes", "kwok"]);
}
