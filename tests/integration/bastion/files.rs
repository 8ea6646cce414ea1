//! The file of public keys: complete at any time, rewritten once for many changes, and reported when it cannot be
//! written.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::ssh::key_pair;
use super::{only_bastion, set_keys, tenant};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};
use cluster::Options as ClusterOptions;

/// These tests need no Secrets.
const NO_SECRETS: &str = "hostKeys: {secretName: ''}, webSshKey: {secretName: ''}";

/// The lines of the file for Tenants whose names begin with `prefix`.
fn lines(file: &Path, prefix: &str) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let is_ours = |line: &&str| line.rsplit(' ').next().is_some_and(|name| name.starts_with(prefix));
    text.lines().filter(is_ours).map(str::to_owned).collect()
}

fn daemon(lab: &Lab, config: &str) -> Daemon {
    Daemon::spawn(&Options { kubeconfig: &lab.service_account(), selector: "bastion-files", config })
}

/// Waits until the loop has written the file of the keys.
fn await_written(daemon: &Daemon) {
    daemon.wait_for("the file", |daemon| daemon.page("/readyz/bastion").0 == 200);
}

/// The system calls that replace a file. The variant depends on the processor.
const CALLS: [&str; 6] =
    ["?unlink,?unlinkat", "?open,openat", "write", "fchmod", "fsync", "?rename,?renameat,?renameat2"];

/// The command that runs a program until its `n`-th system call of that kind on one of these paths, and kills it before
/// the call is carried out.
fn killed_at(call: &str, n: usize, paths: [&Path; 2]) -> Vec<String> {
    let [one, other] = paths.map(|path| path.display().to_string());
    let (trace, inject) = (format!("trace={call}"), format!("inject={call}:signal=KILL:when={n}"));
    let words = [
        "strace",
        "-D",
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-P",
        &one,
        "-P",
        &other,
        "-e",
        &trace,
        "-e",
        &inject,
    ];
    words.map(str::to_owned).into()
}

/// Waits until the daemon has been killed, or is ready; returns whether it has been killed.
fn is_killed(daemon: &mut Daemon) -> bool {
    wait_until(PATIENCE, || match (daemon.wait(Duration::ZERO), daemon.page("/readyz/bastion").0) {
        (Some(_), _) => Ok(true),
        (None, 200) => Ok(false),
        (None, _) => Err(format!("killed, or ready: {}", daemon.log())),
    })
}

/// Asserts that the file has these lines, with or without the last one; returns whether it has that.
fn is_whole(file: &Path, expected: &[String], last: &String) -> bool {
    let mut found = lines(file, "whole-");
    let has_last = found.last() == Some(last);
    found.truncate(found.len() - usize::from(has_last));
    assert!(found == expected, "{} of {} lines", found.len(), expected.len());
    has_last
}

/// Changes Tenants and the file while no daemon runs, and starts one: the file matches the Tenants again.
fn changed_without_a_daemon(lab: &Lab, options: &Options<'_>, file: &Path, lines: Vec<String>, key: &str) {
    lab.delete("tenants", "", &["whole-00"]);
    lab.apply(&tenant("whole-50", &[key.to_owned()]));
    set_keys(lab, "whole-99", &[key]);
    fs::write(file, format!("{key} whole-00\nno key at all\n{key} whole-99")).expect("written");
    let daemon = Daemon::start(options);
    await_written(&daemon);
    let mut now: Vec<String> = lines.into_iter().filter(|line| !line.ends_with(" whole-00")).collect();
    now.insert(now.len() - 1, format!("{key} whole-50"));
    assert!(fs::read_to_string(file).expect("read") == now.join("\n"));
}

#[test]
fn the_file_is_complete_wherever_the_daemon_is_killed() {
    // Its own control plane: a Tenant of another test would cause another write of the file.
    let options = ClusterOptions {
        simulate: false,
        kubevirt: false,
        load_balancer: false,
        ..ClusterOptions::default()
    };
    let (lab, dir) = (Lab::start(options), TempDir::new().expect("a folder"));
    let [one, other] = ["one", "other"].map(|name| key_pair(&dir.path().join(name)));
    let folder = dir.path().join("shared");
    fs::create_dir(&folder).expect("a folder");
    let (file, draft) = (folder.join("keys"), folder.join(".keys.new"));
    let names: Vec<String> = (0..40).map(|n| format!("whole-{n:02}")).collect();
    let many = vec![one.clone(); 100];
    lab.apply(&names.iter().map(|name| tenant(name, &many)).collect::<String>());
    let expected: Vec<String> = names.iter().flat_map(|name| vec![format!("{one} {name}"); 100]).collect();
    let last = format!("{other} whole-99");
    lab.apply(&tenant("whole-99", &[]));

    let config = only_bastion(&file, NO_SECRETS);
    let kubeconfig = lab.service_account();
    let options = Options { kubeconfig: &kubeconfig, selector: "bastion-files", config: &config };
    await_written(&Daemon::start(&options));
    let has_last = || is_whole(&file, &expected, &last);
    // The new content is complete from the rename on, and never before.
    let (mut had_old, mut had_new, mut left_over) = (0, 0, 0);
    for call in CALLS {
        for n in 1.. {
            let before = has_last();
            let keys: &[&str] = if before { &[] } else { &[&other] };
            set_keys(&lab, "whole-99", keys);
            let through = killed_at(call, n, [&draft, &folder]);
            let through: Vec<&str> = through.iter().map(String::as_str).collect();
            let mut daemon = Daemon::spawn_through(&through, &options);
            let is_killed = is_killed(&mut daemon);
            let is_new = has_last() != before;
            if !is_killed {
                assert!(is_new && !draft.exists(), "{call}: written, and nothing is left over");
                assert!(n > 1, "{call}: never called");
                break;
            }
            left_over += usize::from(draft.exists());
            *(if is_new { &mut had_new } else { &mut had_old }) += 1;
        }
    }
    assert!(had_old >= 5 && had_new >= 1 && left_over >= 3, "{had_old}, {had_new}, {left_over}");
    changed_without_a_daemon(&lab, &options, &file, [expected.clone(), vec![last.clone()]].concat(), &other);
    let found: Vec<_> =
        fs::read_dir(&folder).expect("read").map(|entry| entry.expect("one").file_name()).collect();
    assert_eq!(found, ["keys"]);
}

fn names_of(lab: &Lab, prefix: &str) -> Vec<String> {
    let name =
        |object: &serde_json::Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    lab.list("tenants", "").iter().map(name).filter(|name| name.starts_with(prefix)).collect()
}

#[test]
fn a_burst_of_changes_is_written_together_and_bad_keys_are_counted() {
    let (lab, dir) = (Lab::shared(), TempDir::new().expect("a folder"));
    let key = key_pair(&dir.path().join("key"));
    let file = dir.path().join("keys");
    let daemon = daemon(&lab, &only_bastion(&file, NO_SECRETS));
    await_written(&daemon);
    let writes = || daemon.log().matches("wrote the keys of the bastion").count();
    let (before, begin) = (writes(), Instant::now());
    let keys = [format!("{key} ada@home"), format!("command=\"sh\" {key}"), format!("{key}\nssh-rsa AAAA")];
    lab.apply(&(0..50).map(|n| tenant(&format!("burst-{n:02}"), &keys)).collect::<String>());
    let expected: Vec<String> = (0..50).map(|n| format!("{key} burst-{n:02}")).collect();
    wait_until(PATIENCE, || match lines(&file, "burst-") {
        lines if lines == expected => Ok(()),
        lines => Err(format!("50 keys, are {}", lines.len())),
    });
    // On a busy machine 50 creations take seconds: each write must wait for 50 ms without a change.
    let most = begin.elapsed().as_millis() / 50 + 2;
    let written = writes() - before;
    assert!(u128::try_from(written).expect("small") <= most, "{written} writes, at most {most}");
    // The gauges are set after the file is written, so the file can be read earlier.
    wait_until(PATIENCE, || {
        let metrics = daemon.metrics();
        let value = |name: &str| -> f64 {
            let line = metrics.lines().find_map(|line| line.strip_prefix(name)).expect("the gauge");
            line.trim().parse().expect("a number")
        };
        let are = (value("bastion_keys "), value("bastion_keys_skipped "));
        if are.0 >= 50.0 && are.1 >= 100.0 {
            Ok(())
        } else {
            Err(format!("50 keys and 100 skipped, are {are:?}"))
        }
    });
    let names = names_of(&lab, "burst-");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    lab.begin_delete("tenants", "", &names);
    wait_until(PATIENCE, || match lines(&file, "burst-").len() {
        0 => Ok(()),
        count => Err(format!("the keys of deleted Tenants are gone, are {count}")),
    });
}

#[test]
fn a_file_that_cannot_be_written_is_reported_and_retried() {
    let (lab, dir) = (Lab::shared(), TempDir::new().expect("a folder"));
    let file = dir.path().join("absent/keys");
    let daemon = daemon(&lab, &only_bastion(&file, NO_SECRETS));
    let reported = format!("[!] bastion: cannot write {}: No such file", file.display());
    daemon.wait_for("the report", |daemon| {
        // The other loops of the replica keep working.
        let (status, text) = daemon.ready();
        status == 200 && text.contains(&reported) && daemon.page("/readyz/bastion").0 == 503
    });
    fs::create_dir(dir.path().join("absent")).expect("a folder");
    await_written(&daemon);
    assert!(file.exists(), "ready once the file is there");
}
