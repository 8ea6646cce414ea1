//! The shipped artifacts on a real control plane: the image, unpacked, and the chart, installed by helm. `make
//! ship-test` builds both, puts their paths into environment variables, and runs this.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

#[allow(dead_code)]
mod bastion;
#[path = "../integration/daemon.rs"]
#[allow(dead_code)]
mod daemon;
mod dns;
mod image;
mod install;
#[path = "../integration/lab.rs"]
#[allow(dead_code)]
mod lab;
mod pod;
