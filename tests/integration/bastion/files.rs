//! The file of public keys: whole at any moment, rewritten once for many changes, and reported when it cannot be.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::ssh::key_pair;
use super::{only_bastion, set_keys, tenant};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};

/// Secrets are not what these tests are about.
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

#[test]
fn the_file_is_whole_wherever_the_daemon_is_killed() {
    const ROUNDS: usize = 20;
    let (lab, dir) = (Lab::shared(), TempDir::new().expect("a folder"));
    let [one, other] = ["one", "other"].map(|name| key_pair(&dir.path().join(name)));
    let folder = dir.path().join("shared");
    fs::create_dir(&folder).expect("a folder");
    let (file, draft) = (folder.join("keys"), folder.join(".keys.new"));
    // Long enough that it takes a moment to be written. They come last in the file.
    let names: Vec<String> = (0..40).map(|n| format!("zz-whole-{n:02}")).collect();
    let many = vec![one.clone(); 100];
    lab.apply(&names.iter().map(|name| tenant(name, &many)).collect::<String>());
    let expected: Vec<String> = names.iter().flat_map(|name| vec![format!("{one} {name}"); 100]).collect();
    let last = format!("{other} zz-whole-99");
    lab.apply(&tenant("zz-whole-99", &[]));

    let config = only_bastion(&file, NO_SECRETS);
    let (mut killed_while_writing, mut has_last) = (0, false);
    for round in 0..ROUNDS {
        let mut daemon = daemon(&lab, &config);
        daemon.await_ready();
        assert!(!draft.exists(), "what was left over is removed");
        let keys: &[&str] = if has_last { &[] } else { &[&other] };
        set_keys(&lab, "zz-whole-99", keys);
        // Half of the time at the first sight of the new file, else some time later.
        let begin = Instant::now();
        while !draft.exists() && begin.elapsed() < Duration::from_millis(400) {
            std::hint::spin_loop();
        }
        let later = Duration::from_micros(200) * u32::try_from(round % 10).expect("small");
        let end = Instant::now() + later;
        while Instant::now() < end {
            std::hint::spin_loop();
        }
        daemon.stop();
        killed_while_writing += usize::from(draft.exists());
        let mut found = lines(&file, "zz-whole-");
        let is_new = found.last() == Some(&last);
        if is_new {
            found.pop();
        }
        assert!(found == expected, "round {round}: {} of {} lines", found.len(), expected.len());
        has_last = !has_last;
    }
    assert!(killed_while_writing > 0, "no kill has hit a write");
    let last_daemon = daemon(&lab, &config);
    last_daemon.await_ready();
    let names: Vec<_> =
        fs::read_dir(&folder).expect("read").map(|entry| entry.expect("one").file_name()).collect();
    assert_eq!(names, ["keys"]);
    assert_eq!(lines(&file, "zz-whole-").len(), expected.len() + usize::from(has_last));
    for name in names_of(&lab, "zz-whole-") {
        lab.kubectl(&["delete", "tenant", &name, "--wait=false"]);
    }
    wait_until(PATIENCE, || match lines(&file, "zz-whole-").len() {
        0 => Ok(()),
        count => Err(format!("the keys of deleted Tenants are gone, are {count}")),
    });
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
    daemon.await_ready();
    let writes = || daemon.log().matches("the keys of the bastion are written").count();
    let (before, begin) = (writes(), Instant::now());
    let keys = [format!("{key} ada@home"), format!("command=\"sh\" {key}"), format!("{key}\nssh-rsa AAAA")];
    lab.apply(&(0..50).map(|n| tenant(&format!("burst-{n:02}"), &keys)).collect::<String>());
    let expected: Vec<String> = (0..50).map(|n| format!("{key} burst-{n:02}")).collect();
    wait_until(PATIENCE, || match lines(&file, "burst-") {
        lines if lines == expected => Ok(()),
        lines => Err(format!("50 keys, are {}", lines.len())),
    });
    // On a busy machine 50 creations take seconds: what matters is that each write waits until it is quiet, 50 ms.
    let most = begin.elapsed().as_millis() / 50 + 2;
    let written = writes() - before;
    assert!(u128::try_from(written).expect("small") <= most, "{written} writes, at most {most}");
    let metrics = daemon.metrics();
    let value = |name: &str| -> f64 {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)).expect("the gauge");
        line.trim().parse().expect("a number")
    };
    assert!(value("bastion_keys ") >= 50.0 && value("bastion_keys_skipped ") >= 100.0, "{metrics}");
    for name in names_of(&lab, "burst-") {
        lab.kubectl(&["delete", "tenant", &name, "--wait=false"]);
    }
}

#[test]
fn a_file_that_cannot_be_written_is_reported_and_retried() {
    let (lab, dir) = (Lab::shared(), TempDir::new().expect("a folder"));
    let file = dir.path().join("absent/keys");
    let daemon = daemon(&lab, &only_bastion(&file, NO_SECRETS));
    let reported = format!("[!] bastion: cannot write {}: No such file", file.display());
    daemon.wait_for("the report", |daemon| {
        // The other loops of the replica go on.
        let (status, text) = daemon.ready();
        status == 200 && text.contains(&reported) && daemon.page("/readyz/bastion").0 == 503
    });
    fs::create_dir(dir.path().join("absent")).expect("a folder");
    daemon.wait_for("the file", |daemon| daemon.page("/readyz/bastion").0 == 200);
    assert!(file.exists(), "ready once the file is there");
}
