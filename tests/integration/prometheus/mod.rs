//! The Prometheus client on a real Prometheus, whose samples are written before it starts. All but the largest test
//! share one server; each has its own series.

mod coverage;
mod scale;
mod uses;

use std::iter;
use std::sync::{Arc, Weak};

use crownlabs::Config;
use crownlabs::testing::prometheus::{Activity, Prometheus, Target};
use jiff::Timestamp;
use parking_lot::Mutex;

use cluster::prometheus::{PrometheusServer, Samples};

/// The end of all windows, and of the samples. It is not a multiple of a step.
pub const NOW: i64 = 1_790_000_123;
/// The configured step.
pub const STEP: i64 = 300;
pub const MINUTE: i64 = 60;
pub const HOUR: i64 = 3_600;
pub const DAY: i64 = 24 * HOUR;

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

/// The time of a use that Prometheus has seen at `second`: the end of the step.
pub fn end_of_step(second: i64) -> i64 {
    (second + STEP - 1) / STEP * STEP
}

/// The samples of a scrape every minute from `begin` to `end`, with the values of `value`.
pub fn scraped(begin: i64, end: i64, value: impl Fn(i64) -> i64) -> Vec<(i64, i64)> {
    let times = iter::successors(Some(begin), |time| Some(time + MINUTE)).take_while(|time| *time <= end);
    times.map(|time| (time, value(time))).collect()
}

/// The server of all tests but the largest.
pub fn shared() -> Arc<PrometheusServer> {
    static SERVER: Mutex<Weak<PrometheusServer>> = Mutex::new(Weak::new());
    let mut server = SERVER.lock();
    server.upgrade().unwrap_or_else(|| {
        let mut samples = Samples::default();
        uses::write(&mut samples);
        coverage::write(&mut samples);
        let started = Arc::new(PrometheusServer::start(&samples).expect("Prometheus starts"));
        *server = Arc::downgrade(&started);
        started
    })
}

/// A client with these keys in `integrations.prometheus`, in addition to the URL.
pub fn client(url: &str, keys: &str) -> Prometheus {
    let text = format!(
        "apiVersion: config.crownlabs.polito.it/v1alpha1\nkind: ControllerManagerConfiguration\n\
         integrations:\n  prometheus:\n    url: {url}\n{keys}"
    );
    let config = Config::parse("test.yaml", &text).unwrap_or_else(|error| panic!("{error}"));
    Prometheus::new(&config.integrations.prometheus).unwrap_or_else(|error| panic!("{error}"))
}

/// The activity from `since` until now.
pub async fn seen(client: &Prometheus, since: i64) -> Activity {
    client.activity(at(since), at(NOW)).await
}

/// The last use of the machine with this address, in seconds, and its source.
pub fn by_address(activity: &Activity, address: &str) -> Option<(i64, &'static str)> {
    let target = Target { namespace: "tenant-none", instance: "none", environments: &[], address };
    activity.last_use(&target).map(|(time, source)| (time.as_second(), source))
}

/// The last use of an Instance without address, in seconds.
pub fn by_name(activity: &Activity, namespace: &str, instance: &str, environments: &[&str]) -> Option<i64> {
    let environments: Vec<String> = environments.iter().map(|name| (*name).to_owned()).collect();
    let target = Target { namespace, instance, environments: &environments, address: "" };
    activity.last_use(&target).map(|(time, _)| time.as_second())
}
