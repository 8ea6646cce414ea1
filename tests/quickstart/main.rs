//! A new user follows docs/quickstart.md, word by word: the real control plane, a kubelet with containerd as the node,
//! the chart and all images from a registry on loopback, and a browser. The programs that cannot run here are replaced
//! in [`programs`].
//!
//! `make ship-test` builds the static binary, puts its path into `CROWNLABS_BINARY`, and runs this as root.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

mod browser;
#[path = "../commands/documents.rs"]
#[allow(dead_code, reason = "it is that of the commands")]
mod documents;
mod images;
#[path = "../integration/lab.rs"]
#[allow(dead_code, reason = "it is that of the integration tests")]
mod lab;
mod programs;
#[path = "../commands/scenes.rs"]
#[allow(dead_code, reason = "it is that of the commands")]
mod scenes;
#[path = "../commands/shell.rs"]
mod shell;
mod site;

use std::time::{Duration, Instant};

use documents::all;
use programs::Programs;
use scenes::{Lane, Play, plays};
use shell::Shell;
use site::Site;

/// How long a block may take.
const DEADLINE: Duration = Duration::from_mins(6);

/// The only play of the laptop: the page.
fn the_page() -> Play {
    let plays = plays(&all()).unwrap_or_else(|faults| panic!("{}", faults.join("\n")));
    let mut plays: Vec<_> = plays.into_iter().filter(|play| play.scene.lane == Lane::Laptop).collect();
    assert_eq!(plays.len(), 1, "docs/quickstart.md is one play");
    plays.remove(0)
}

/// The URL that a block has printed on a separate line.
fn url(log: &str) -> Option<&str> {
    log.lines().map(str::trim).find(|line| line.starts_with("https://"))
}

#[test]
fn a_new_user_opens_a_lab_machine_in_the_browser() {
    let play = the_page();
    let mut site = Site::start();
    let programs = Programs::new(&site);
    let mut shell = Shell::start(&programs.folder(), &programs.own(), &programs.environment());
    let mut opened = 0;
    for block in &play.blocks {
        let begin = Instant::now();
        let log = shell.run(&block.commands(), DEADLINE).unwrap_or_else(|fault| {
            panic!("{}: {fault}\n\n{}", block.place(), site.state());
        });
        println!("{}, {:.1?}", block.place(), begin.elapsed());
        if let Some(url) = url(&log) {
            site.open(&programs, url);
            opened += 1;
        }
    }
    assert_eq!(opened, 1, "the page prints one URL");
    site.check();
    assert!(!programs.has_cluster(), "the page ends with the end of the cluster");
}
