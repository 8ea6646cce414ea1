use super::*;
use crate::runtime::outages::System;
use crate::runtime::store::AnyStore;

#[test]
fn a_loop_waits_for_required_crds_and_works_without_optional_ones() {
    use StoreState::{Missing, Synced, Syncing};
    let state = |a, b, leading: bool| {
        assess(&[("a.x", true, a), ("b.y", false, b)], (!leading).then_some(LoopState::Standby))
    };
    let starting = |kind: &str| LoopState::Starting(vec![kind.to_owned()]);
    assert_eq!(state(Syncing, Synced, false), starting("a.x"));
    assert_eq!(state(Missing, Syncing, false), LoopState::WaitingForCrd(vec!["a.x".into()]));
    assert_eq!(state(Synced, Syncing, true), starting("b.y"));
    assert_eq!(state(Synced, Missing, false), LoopState::Standby);
    assert_eq!(state(Synced, Missing, true), LoopState::Degraded(vec!["b.y".into()]));
    assert_eq!(state(Synced, Synced, true), LoopState::Ready);
}

#[test]
fn the_webhooks_are_ready_with_stores_and_a_certificate() {
    use StoreState::{Missing, Synced, Syncing};
    let none = || LoopState::WaitingForCertificate("a.dir: /a does not exist".to_owned());
    let state =
        |a, b, certificate: bool| assess(&[("a", true, a), ("b", true, b)], (!certificate).then(none));
    assert_eq!(state(Synced, Synced, true), LoopState::Ready);
    assert_eq!(state(Synced, Synced, false), none());
    assert_eq!(state(Synced, Syncing, true), LoopState::Starting(vec!["b".to_owned()]));
    assert_eq!(state(Missing, Syncing, true), LoopState::WaitingForCrd(vec!["a".to_owned()]));
    assert!(!none().is_ready());
    assert_eq!(none().sentence(), "waiting for a serving certificate: a.dir: /a does not exist");
    assert_eq!(
        LoopState::WaitingForCertificate(String::new()).sentence(),
        "waiting for a serving certificate"
    );
}

#[test]
fn a_standby_names_the_leader_or_what_it_waits_for() {
    let readiness = Readiness::default();
    readiness.complete();
    readiness.set("instance", LoopState::Standby);
    assert_eq!(readiness.report(), (true, "[+] instance: standby: waiting to lead\nready\n".to_owned()));
    readiness.set_standby("the replica a leads".to_owned());
    let line = "[+] instance: standby: the replica a leads\n";
    assert_eq!(readiness.report(), (true, format!("{line}ready\n")));
    assert_eq!(readiness.report_of("instance"), Some((true, line.to_owned())));
}

#[test]
fn a_loop_that_fails_is_shown_and_the_replica_stays_ready() {
    let readiness = Readiness::default();
    readiness.complete();
    readiness.set("instance", LoopState::Ready);
    readiness.set("sshTracker", LoopState::Failing("the interface eth7 is missing".to_owned()));
    let (ready, text) = readiness.report();
    assert!(ready && text.contains("[!] sshTracker: the interface eth7 is missing\n"), "{text}");
    let (ready, line) = readiness.report_of("sshTracker").expect("known");
    assert_eq!((ready, &*line), (false, "[!] sshTracker: the interface eth7 is missing\n"));
    assert_eq!(readiness.report_of("instance"), Some((true, "[+] instance: ready\n".to_owned())));
    assert_eq!(readiness.report_of("other"), None);
}

#[test]
fn a_missing_crd_is_named_and_counts_only_if_it_is_required() {
    let readiness = Readiness::default();
    assert!(!readiness.report().0, "not complete yet");
    readiness.complete();
    assert!(readiness.set("instance", LoopState::Starting(Vec::new())));
    assert!(!readiness.report().0);
    readiness.set("instance", LoopState::Degraded(vec!["virtualmachines.kubevirt.io".into()]));
    let (ready, text) = readiness.report();
    assert!(ready);
    assert!(text.contains("instance") && text.contains("virtualmachines.kubevirt.io"), "{text}");
    readiness.set("tenant", LoopState::WaitingForCrd(vec!["tenants.crownlabs.polito.it".into()]));
    let (ready, text) = readiness.report();
    assert!(!ready);
    assert!(text.contains("[-] tenant: waiting"), "{text}");
    assert!(!readiness.set("tenant", LoopState::WaitingForCrd(vec!["tenants.crownlabs.polito.it".into()])));
}

use std::time::Duration;

use crate::kinds::{NamespaceKind, ServiceKind};

#[test]
fn kinds_that_are_being_listed_are_named() {
    assert_eq!(LoopState::Starting(Vec::new()).sentence(), "starting");
    let kinds = vec!["pods".to_owned(), "nodes".to_owned()];
    let expected = "starting: the first lists have not ended: pods, nodes";
    assert_eq!(LoopState::Starting(kinds).sentence(), expected);
}

#[test]
fn a_replica_waits_for_the_api_server_until_all_loops_have_a_state() {
    let readiness = Readiness::default();
    let line = "[-] start-up: waiting for the API server";
    assert!(readiness.report().1.contains(&format!("{line}\n")));
    readiness.set_start("https://a:6443: connection refused".to_owned());
    assert!(readiness.report().1.contains(&format!("{line} https://a:6443: connection refused\n")));
    readiness.complete();
    assert_eq!(readiness.report(), (true, "ready\n".to_owned()));
}

#[test]
fn a_broken_watch_is_reported_and_the_replica_stays_ready() {
    let readiness = Readiness::default();
    readiness.complete();
    readiness.set_watch("pods", Some("broken for 61 s".to_owned()));
    assert_eq!(readiness.report(), (true, "[!] watch of pods: broken for 61 s\nready\n".to_owned()));
    readiness.set_watch("pods", None);
    assert_eq!(readiness.report(), (true, "ready\n".to_owned()));
}

/// Whether a future is still pending when everything else is idle.
async fn waits(future: impl Future<Output = ()>) -> bool {
    tokio::time::timeout(Duration::from_hours(1), future).await.is_err()
}

#[tokio::test(start_paused = true)]
async fn required_and_optional_stores_are_awaited_differently() {
    let (required, optional) = (Store::<NamespaceKind>::new(true), Store::<ServiceKind>::new(true));
    let needs = [Need::of(&required, true), Need::of(&optional, false)];
    assert!(waits(settled(&needs)).await && waits(served(&needs)).await);
    required.mark_missing();
    assert!(waits(settled(&needs)).await);
    optional.mark_missing();
    assert!(!waits(settled(&needs)).await, "neither kind is served");
    assert!(waits(served(&needs)).await);
    assert_eq!(missing(&needs), ["namespaces"], "the other one is optional");
    required.begin_list();
    required.end_list();
    assert!(!waits(served(&needs)).await);
    assert!(missing(&needs).is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_state_follows_the_stores_and_the_lease() {
    let stores = [Store::<NamespaceKind>::new(true), Store::<NamespaceKind>::new(false)];
    let needs = vec![Need::of(&stores[0], true), Need::of(&stores[1], false)];
    let (leads, is_active) = watch::channel(false);
    let (readiness, appeared) = (Readiness::default(), Arc::new(Mutex::new(0)));
    let states = Arc::new(Mutex::new(Vec::new()));
    let (counted, noted) = (Arc::clone(&appeared), Arc::clone(&states));
    let track = readiness.clone().track(
        "test",
        needs,
        (is_active, |leads: &bool| (!leads).then_some(LoopState::Standby)),
        move || *counted.lock() += 1,
        async move |state: &LoopState| noted.lock().push(state.clone()),
    );
    let task = tokio::spawn(track);
    let step = async |change: &dyn Fn()| {
        change();
        tokio::time::sleep(Duration::from_secs(1)).await;
        (std::mem::take(&mut *states.lock()), *appeared.lock())
    };
    let crd = || vec!["namespaces".to_owned()];
    assert_eq!(step(&|| ()).await, (vec![LoopState::Starting(crd())], 0));
    assert_eq!(step(&|| stores[0].mark_missing()).await, (vec![LoopState::WaitingForCrd(crd())], 0));
    assert_eq!(step(&|| stores[1].mark_missing()).await, (vec![], 0), "no change");
    assert_eq!(step(&|| stores[0].end_list()).await, (vec![LoopState::Standby], 1));
    let lead = || {
        leads.send_replace(true);
    };
    assert_eq!(step(&lead).await, (vec![LoopState::Degraded(crd())], 1));
    assert_eq!(step(&|| stores[1].end_list()).await, (vec![LoopState::Ready], 2));
    assert!(readiness.report_of("test").is_some_and(|(ready, _)| ready));
    task.abort();
}

#[test]
fn a_replica_stays_ready_during_an_outage_of_another_system() {
    let readiness = Readiness::default();
    readiness.complete();
    readiness.outages.failed(System::Mail, "mail.example.com:25", &"connection refused");
    let (ready, text) = readiness.report();
    assert!(ready, "{text}");
    let line = "[!] mail server mail.example.com:25: failing for 0 s, mails wait, and deadlines move: connection refused\n";
    assert_eq!(text, format!("{line}ready\n"));
}
