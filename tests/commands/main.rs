//! Runs every command of the documents as written, on a real control plane, a real Keycloak, and this machine: see
//! [`documents`] for how a document names the scene, [`scenes`] for the state at its beginning, and [`inline`] for the
//! commands in sentences and messages.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

#[path = "../integration/daemon.rs"]
#[allow(dead_code, reason = "it is that of the integration tests")]
mod daemon;
mod documents;
mod documents_tests;
mod hook;
mod inline;
mod inline_tests;
#[path = "../integration/lab.rs"]
#[allow(dead_code, reason = "it is that of the integration tests")]
mod lab;
mod outcomes;
mod parts;
mod people;
mod rights;
mod scenes;
mod shell;
mod site;
mod stage;

use std::fs::File;
use std::thread;

use cluster::keycloak::KeycloakServer;
use documents::{Task, all};
use http::Method;
use scenes::{Lane, Play, plays, unused};
use serde_json::Value;
use site::{NAMESPACE, RELEASE, Site, helm};
use stage::{Stage, plays_of};

#[test]
fn every_block_is_run_or_has_a_reason_why_not() {
    let blocks = all();
    let plays = plays(&blocks).unwrap_or_else(|faults| panic!("{}", faults.join("\n")));
    let run: usize = plays.iter().map(|play| play.blocks.len()).sum();
    let unused = unused(&plays.into_iter().chain([inline::play()]).collect::<Vec<_>>());
    assert!(unused.is_empty(), "{}", unused.join("\n"));
    let mut left = Vec::new();
    for block in &blocks {
        if let Some(Task::NotRun(reason)) = &block.task {
            left.push(format!("{} is not run: {reason}", block.place()));
        }
    }
    println!("{run} blocks are run\n{}", left.join("\n"));
    assert!(
        run > 20 && left.len() * 4 <= run,
        "{run} are run, which is too few, and not\n{}",
        left.join("\n")
    );
}

#[test]
fn on_this_machine() {
    // Before `cargo` replaces the binary.
    site::crownlabs();
    // The demo has the ports of the documents: the tests of another checkout wait until they are free.
    let lock = cluster::assets::cache_dir().unwrap().join("demo.lock");
    let lock = File::create(lock).unwrap();
    lock.lock().unwrap();
    for play in plays_of(Lane::Machine) {
        Stage::new(&play, None).perform(&play, "");
    }
}

#[test]
fn in_an_empty_cluster() {
    let play_alone = |play: &Play| {
        let site = Site::start(Vec::new(), true);
        Stage::new(play, Some(&site)).perform(play, "");
    };
    thread::scope(|scope| {
        let plays = plays_of(Lane::Cluster);
        let threads: Vec<_> = plays.into_iter().map(|play| scope.spawn(move || play_alone(&play))).collect();
        let ended: Vec<_> = threads.into_iter().map(thread::ScopedJoinHandle::join).collect();
        assert!(ended.iter().all(Result::is_ok), "the panic is above");
    });
}

#[test]
fn with_the_chart_installed() {
    let site = Site::start(Vec::new(), true);
    for play in plays_of(Lane::Installed).into_iter().chain([inline::play()]) {
        parts::install(&site);
        let prelude = if play.scene.name == inline::SCENE { parts::SENTENCES } else { "" };
        Stage::new(&play, Some(&site)).perform(&play, prelude);
    }
}

#[test]
fn with_objects() {
    let site = Site::start(lab::crd_files(), false);
    parts::namespace(&site, NAMESPACE);
    let (others, operators): (Vec<_>, Vec<_>) = plays_of(Lane::Objects)
        .into_iter()
        .partition(|play| !["operators", "moved"].contains(&play.scene.name));
    // The operators come last: after them a daemon has run.
    for play in others.into_iter().chain(operators) {
        let stage = Stage::new(&play, Some(&site));
        parts::apply_shown(&site, &play);
        match play.scene.name {
            "leaving" => parts::leave(&site),
            "operators" => {
                // Another play may have installed it.
                let _ = site.run(helm(), &["uninstall", RELEASE, "-n", NAMESPACE]);
                parts::operators(&site, &stage);
            }
            "moved" => parts::moved(&site),
            _ => {}
        }
        stage.perform(&play, "");
    }
}

#[test]
fn with_keycloak() {
    let server = KeycloakServer::start().unwrap_or_else(|error| panic!("Keycloak: {error:#}"));
    let password = parts::administrator(&server);
    let site = Site::start(Vec::new(), false);
    parts::namespace(&site, NAMESPACE);
    for play in plays_of(Lane::Keycloak) {
        // Another play may have made them.
        for realm in ["/crownlabs", "/another"] {
            let _ = server.admin(&Method::DELETE, realm, &Value::Null);
        }
        let prelude = if play.scene.name == "realm" { parts::REALM } else { "" };
        Stage::new(&play, Some(&site)).with_keycloak(&server, password).perform(&play, prelude);
    }
}
