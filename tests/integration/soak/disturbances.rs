//! The disturbances of the replicas: they are killed, stopped, continued and ended; programs of the control plane are
//! killed; requests hang, fail, or are carried out twice.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use crownlabs::EXIT_LEASE_LOST;

use super::{CONFIG, COURSE};
use crate::daemon::{Daemon, Options, tail};
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::numbers::Numbers;
use cluster::proxy::{Fault, Matcher, Proxy, matching};

/// How long a replica may take to end after SIGTERM: the kubelet kills it after 30 s.
const STOP: Duration = Duration::from_secs(28);

/// One replica, with its own proxy in front of the API server.
struct Replica {
    daemon: Daemon,
    proxy: Proxy,
    kubeconfig: PathBuf,
}

/// Two replicas, which a supervisor restarts when they end.
pub struct Replicas<'a> {
    lab: &'a Lab,
    numbers: Numbers,
    both: Vec<Replica>,
    /// How often each disturbance happened.
    counts: BTreeMap<&'static str, usize>,
}

impl<'a> Replicas<'a> {
    /// Starts two replicas.
    pub fn start(lab: &'a Lab, numbers: Numbers) -> Self {
        let replica = |_| {
            let proxy = Proxy::start(&lab.cluster).expect("a proxy");
            let kubeconfig =
                lab.cluster.kubeconfig_via(&proxy.url(), "crownlabs-system", "crownlabs").expect("a token");
            Replica { daemon: spawn(&kubeconfig), proxy, kubeconfig }
        };
        Self { lab, numbers, both: (0..2).map(replica).collect(), counts: BTreeMap::new() }
    }

    /// The running daemons.
    pub fn daemons(&self) -> Vec<&Daemon> {
        self.both.iter().map(|replica| &replica.daemon).collect()
    }

    /// Causes one random disturbance of a replica or the control plane, and waits a random time.
    pub fn disturb(&mut self) {
        self.start_again();
        let which = usize::from(self.numbers.once_in(2));
        match self.numbers.below(40) {
            0..=7 => self.kill(which),
            8..=13 => self.pause(which),
            14..=16 => self.terminate(which),
            17..=34 => self.break_requests(which),
            35 => self.restart_apiserver(),
            36 => self.restart_etcd(),
            _ => {
                self.count("watches dropped");
                self.both[which].proxy.drop_watches();
            }
        }
        // The times are random on purpose, so there is no condition to wait for.
        let pause = Duration::from_millis(self.numbers.below(1500));
        thread::sleep(pause);
        self.both[which].proxy.reset();
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Restarts the replicas that have ended, as the kubelet does. A replica exits if it was stopped for longer than
    /// its lease.
    pub fn start_again(&mut self) {
        self.lab.cluster.start_ended_programs().expect("they start");
        for which in 0..self.both.len() {
            if self.both[which].daemon.wait(Duration::ZERO).is_some() {
                self.count("ended by themselves");
                self.restart(which);
            }
        }
    }

    fn restart(&mut self, which: usize) {
        let replica = &mut self.both[which];
        replica.daemon.stop();
        look_at(&replica.daemon.log());
        replica.daemon = spawn(&replica.kubeconfig);
    }

    fn kill(&mut self, which: usize) {
        self.count("killed");
        self.restart(which);
    }

    /// Stops a replica and continues it, often after its lease has passed to the other one.
    fn pause(&mut self, which: usize) {
        self.count("stopped and continued");
        let pause = Duration::from_millis(self.numbers.below(9000));
        self.both[which].daemon.signal("STOP");
        thread::sleep(pause);
        self.both[which].daemon.signal("CONT");
    }

    fn terminate(&mut self, which: usize) {
        self.count("terminated");
        let replica = &mut self.both[which];
        replica.daemon.signal("TERM");
        let ended = replica.daemon.wait(STOP);
        assert!(ended.is_some(), "it runs {STOP:?} after SIGTERM: {}", tail(&replica.daemon.log()));
        self.restart(which);
    }

    /// Breaks a part of the requests of a replica for some seconds.
    fn break_requests(&mut self, which: usize) {
        let share = some_of(self.numbers.below(u64::MAX), 1 + self.numbers.below(4));
        let code = self.numbers.one_of(&[409, 429, 500, 503, 504]);
        let (what, fault) = match self.numbers.below(6) {
            // The requests are carried out in the end, after their clients have given up.
            0 => ("hang", Fault::Delay { pause: Duration::from_secs(20), matching: share }),
            1 => ("late", Fault::Delay { pause: Duration::from_millis(700), matching: share }),
            2 => ("answers lost", Fault::LoseAnswer { matching: share }),
            3 => ("carried out twice", Fault::Repeat { matching: share }),
            4 => ("broken", Fault::Break { matching: share }),
            _ => ("refused", Fault::Status { code, retry_after: None, matching: share }),
        };
        self.count(what);
        self.both[which].proxy.set(fault);
        thread::sleep(Duration::from_millis(500 + self.numbers.below(4000)));
        // Half of them last until the next fault of this replica.
        if self.numbers.once_in(2) {
            self.both[which].proxy.set(Fault::None);
        }
    }

    fn restart_apiserver(&mut self) {
        self.count("API server killed");
        self.lab.cluster.stop_apiserver();
        thread::sleep(Duration::from_millis(self.numbers.below(3000)));
        self.lab.cluster.start_apiserver().expect("the API server starts again");
    }

    fn restart_etcd(&mut self) {
        self.count("etcd killed");
        self.lab.cluster.stop_etcd();
        thread::sleep(Duration::from_millis(self.numbers.below(3000)));
        self.lab.cluster.start_etcd().expect("etcd starts again");
    }

    /// Ends all disturbances.
    pub fn calm_down(&mut self) {
        for replica in &self.both {
            replica.proxy.set(Fault::None);
        }
        self.start_again();
    }

    /// How often each disturbance happened.
    pub fn summary(&self) -> String {
        let counts: Vec<String> =
            self.counts.iter().map(|(what, count)| format!("{what}: {count}")).collect();
        counts.join(", ")
    }

    /// The last lines of their logs.
    pub fn logs(&self) -> String {
        let tails: Vec<String> = self.both.iter().map(|replica| tail(&replica.daemon.log())).collect();
        tails.join("\n---\n")
    }

    /// Fails if a log reports a defect.
    pub fn look_at_logs(&self) {
        for replica in &self.both {
            look_at(&replica.daemon.log());
        }
    }

    /// Ends the replicas in an orderly way. A replica that loses its lease, for example on a busy machine, ends with a code
    /// of its own.
    pub fn end(mut self) {
        wait_until(PATIENCE, || {
            self.start_again();
            let ready: Vec<(u16, String)> = self.daemons().iter().map(|daemon| daemon.ready()).collect();
            let is_ready = ready.iter().all(|(code, _)| *code == 200);
            is_ready.then_some(()).ok_or_else(|| format!("{ready:?}\n{}", self.logs()))
        });
        for replica in &mut self.both {
            replica.daemon.signal("TERM");
        }
        for replica in &mut self.both {
            let ended = replica.daemon.wait(STOP).expect("it ends");
            let is_orderly = ended.success() || ended.code() == Some(EXIT_LEASE_LOST.into());
            assert!(is_orderly, "{ended}: {}", tail(&replica.daemon.log()));
            look_at(&replica.daemon.log());
        }
    }
}

/// Starts a daemon, which ends when it loses its lease.
fn spawn(kubeconfig: &std::path::Path) -> Daemon {
    Daemon::spawn(&Options { kubeconfig, selector: COURSE, config: CONFIG }).that_may_end()
}

/// A random share of all requests, one of `of`.
fn some_of(seed: u64, of: u64) -> Matcher {
    let numbers = std::sync::Mutex::new(Numbers(seed));
    matching(move |_, _| numbers.lock().expect("no panic").once_in(of))
}

/// Fails if a log reports a panic.
fn look_at(log: &str) {
    let panics: Vec<&str> = log.lines().filter(|line| line.contains("panicked")).collect();
    assert!(panics.is_empty(), "{panics:#?}");
}
