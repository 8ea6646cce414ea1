//! This process: its identity in the leader election, and the `process_*` metrics that Prometheus clients
//! export.

use std::fs;

use metrics::gauge;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tracing::warn;

use crate::runtime::clock;
use crate::runtime::metrics::precise;

/// Clock ticks per second, the unit of times in `/proc`: `USER_HZ`, which is 100 on Linux (`man 5 proc`).
const TICKS: u64 = 100;
const TICKS_IN_SECOND: f64 = 100.0;
/// Bytes in a page of memory, the unit of sizes in `/proc/self/stat`.
const PAGE: f64 = 4096.0;

/// Returns an identity that is unique to this process: the name of the pod or of the host, and a random part.
pub fn identity() -> String {
    let host = std::env::var("POD_NAME")
        .or_else(|_| fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned()))
        .unwrap_or_else(|_| "crownlabs".to_owned());
    let random = fs::read_to_string("/proc/sys/kernel/random/uuid")
        .unwrap_or_else(|_| format!("{}-{}", std::process::id(), clock::now().as_nanosecond()));
    format!("{host}_{}", random.trim())
}

/// Raises the limit of open files to the maximum that the system allows, as Go programs do. Container runtimes often
/// allow 1,024, and each open page of the dashboard is a connection.
pub fn raise_open_files() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, maximum)| setrlimit(Resource::RLIMIT_NOFILE, maximum, maximum));
    if let Err(error) = raised {
        warn!(%error, "the limit of open files cannot be raised");
    }
}

/// Sets the gauges that do not change while the process runs.
pub fn record_start() {
    let (version, revision) = (env!("CARGO_PKG_VERSION"), env!("CROWNLABS_REVISION"));
    gauge!("crownlabs_build_info", "version" => version, "revision" => revision).set(1.0);
    let machine = fs::read_to_string("/proc/stat").unwrap_or_default();
    if let Some(start) = start_time(&stat(), &machine) {
        gauge!("process_start_time_seconds").set(start);
    }
}

/// The start time of the process in seconds since 1970: the boot time of the machine plus the ticks since then.
fn start_time(stat: &str, machine: &str) -> Option<f64> {
    let booted = machine.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse::<u32>().ok()?;
    let ticks = usize::try_from(field(stat, 22)?).ok()?;
    Some(f64::from(booted) + precise(ticks) / TICKS_IN_SECOND)
}

/// Sets the gauges of the process to the current values. A value that cannot be read leaves its gauge unchanged.
pub fn record() {
    if let Some(pages) = field(&stat(), 24).and_then(|pages| usize::try_from(pages).ok()) {
        gauge!("process_resident_memory_bytes").set(precise(pages) * PAGE);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        gauge!("process_open_fds").set(precise(open.count()));
    }
}

/// The CPU time of the process in the text format of Prometheus, to be appended to the exporter's text: the exporter's
/// counters are integers, and whole seconds are too coarse. Empty if the time cannot be read.
pub fn exposition() -> String {
    cpu_time(&stat()).unwrap_or_default()
}

fn cpu_time(stat: &str) -> Option<String> {
    let ticks = field(stat, 14)?.checked_add(field(stat, 15)?)?;
    Some(format!(
        "# HELP process_cpu_seconds_total Total user and system CPU time spent in seconds\n\
         # TYPE process_cpu_seconds_total counter\n\
         process_cpu_seconds_total {}.{:02}\n",
        ticks / TICKS,
        ticks % TICKS
    ))
}

/// The content of `/proc/self/stat`; empty if it cannot be read.
fn stat() -> String {
    fs::read_to_string("/proc/self/stat").unwrap_or_default()
}

/// A field of `/proc/self/stat` by its number in `man 5 proc`, from 3 on: 14 and 15 are the user and system time, 22 is
/// the start time in ticks since boot, 24 is the resident memory. Field 2, the name of the program in parentheses, may
/// contain any characters.
fn field(stat: &str, number: usize) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_open_files_is_raised_to_its_maximum() {
        let (_, maximum) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
        setrlimit(Resource::RLIMIT_NOFILE, maximum - 1, maximum).expect("lowered");
        raise_open_files();
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE), Ok((maximum, maximum)));
    }

    #[test]
    fn the_cpu_time_has_a_fraction() {
        let stat = "7 (a) b (c) S 1 1 1 0 -1 4194560 100 0 0 0 1234 71 0 0 20 0 4 0 9 1000 512 1";
        let text = cpu_time(stat).expect("the fields are there");
        let expected = [
            "# HELP process_cpu_seconds_total Total user and system CPU time spent in seconds",
            "# TYPE process_cpu_seconds_total counter",
            "process_cpu_seconds_total 13.05",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
        assert_eq!(field(stat, 24), Some(512));
        assert_eq!(cpu_time("7 (a) S 1"), None);
        assert_eq!(cpu_time(""), None);
    }

    #[test]
    fn the_start_time_is_the_boot_time_plus_the_ticks() {
        let stat = "7 (a) b (c) S 1 1 1 0 -1 4194560 100 0 0 0 1234 71 0 0 20 0 4 0 950 1000 512 1";
        let machine = "cpu  1 2 3\nbtime 1700000000\nprocesses 9\n";
        assert_eq!(start_time(stat, machine), Some(1_700_000_009.5));
        assert_eq!((start_time(stat, "cpu 1\n"), start_time("", machine)), (None, None));
    }

    #[test]
    fn the_cpu_time_of_this_process_is_valid_exposition() {
        let text = exposition();
        assert!(text.ends_with('\n') && text.lines().count() == 3, "{text}");
        let sample = text.lines().find(|line| !line.starts_with('#')).expect("a sample");
        let (name, value) = sample.split_once(' ').expect("a name and a value");
        assert_eq!(name, "process_cpu_seconds_total");
        assert!(value.contains('.') && value.parse::<f64>().is_ok_and(|seconds| seconds >= 0.0), "{value}");
    }
}
