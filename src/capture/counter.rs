//! Counts of connections by destination, and by Instance, in the text format of Prometheus.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use parking_lot::Mutex;

use super::series::Series;
use crate::runtime::{ObjectKey, clock};

/// Resolves an address to the Instance that has it now.
pub type Resolver = Arc<dyn Fn(IpAddr) -> Option<ObjectKey> + Send + Sync>;

/// A family of counters, one for each destination of connections. All threads that count share it.
///
/// Prometheus computes increases, and a counter that appears with the value 1 has not increased. So each series starts
/// at 0: a known destination's series when it becomes known, any other series in the first text that contains it. At
/// most 4,096 unknown destinations have a series; those counted last are kept. An unknown series is removed after a day
/// without a connection. At most 16,384 destinations are known; further ones are treated as unknown.
///
/// An Instance is identified by its name, never by its uid: the URLs of machines contain the uid, and readers of
/// metrics must not learn them.
pub struct ConnectionCounter {
    family: &'static str,
    help: &'static str,
    destinations: Mutex<Series<SocketAddr>>,
    instances: Mutex<Series<ObjectKey>>,
    resolver: OnceLock<Resolver>,
}

/// Returns the canonical form of a destination: an IPv4-mapped IPv6 address becomes the IPv4 address.
fn canonical(destination: SocketAddr) -> SocketAddr {
    SocketAddr::new(destination.ip().to_canonical(), destination.port())
}

impl ConnectionCounter {
    /// Creates a counter without a series. `family` is its name in metrics, without the suffix `_total`; `help`
    /// describes it.
    pub fn new(family: &'static str, help: &'static str) -> Self {
        let (destinations, instances) = (Mutex::new(Series::new()), Mutex::new(Series::new()));
        Self { family, help, destinations, instances, resolver: OnceLock::new() }
    }

    /// Counts by Instance too, in a second family: `bastion_instance_x` beside `bastion_x`. A connection belongs to the
    /// Instance that `resolver` returns at the time of counting. Only the first call has an effect.
    pub fn set_resolver(&self, resolver: Resolver) {
        let _ = self.resolver.set(resolver);
    }

    /// Counts a connection. Allocates nothing if its destination has a series.
    pub fn count(&self, destination: SocketAddr) {
        self.count_at(destination, clock::stated());
    }

    /// Counts a connection at the given time.
    pub fn count_at(&self, destination: SocketAddr, now: Timestamp) {
        let destination = canonical(destination);
        let instance = self.resolver.get().and_then(|resolve| resolve(destination.ip()));
        self.destinations.lock().count(&destination, now);
        if let Some(instance) = instance {
            self.instances.lock().count(&instance, now);
        }
    }

    /// Makes a destination known.
    pub fn expose(&self, destination: SocketAddr) {
        self.destinations.lock().expose(&canonical(destination));
    }

    /// Makes a destination unknown. Its series stays for a day after its last connection.
    pub fn withdraw(&self, destination: SocketAddr) {
        self.destinations.lock().withdraw(&canonical(destination));
    }

    /// Whether a destination is known.
    pub fn is_known(&self, destination: SocketAddr) -> bool {
        self.destinations.lock().is_known(&canonical(destination))
    }

    /// Returns the time of the last connection to an address, on any port; `None` if unknown.
    pub fn last_seen(&self, address: IpAddr) -> Option<Timestamp> {
        let at = |port| SocketAddr::new(address.to_canonical(), port);
        self.destinations.lock().last(at(0)..=at(u16::MAX))
    }

    /// Appends both families in the Prometheus text format.
    pub fn render(&self, out: &mut String) {
        let now = clock::stated();
        // Writing to a string does not fail.
        let _ = self.render_destinations(out, now);
        if let Some(resolver) = self.resolver.get() {
            let _ = self.render_instances(out, now, resolver);
        }
    }

    fn render_destinations(&self, out: &mut String, now: Timestamp) -> std::fmt::Result {
        let Self { family, help, .. } = self;
        let mut series = self.destinations.lock();
        series.expire(now);
        writeln!(out, "# HELP {family}_total {help}\n# TYPE {family}_total counter")?;
        series.render(|destination, count| {
            let (ip, port) = (destination.ip(), destination.port());
            let labels = format_args!(r#"destination_ip="{ip}",destination_port="{port}""#);
            let _ = writeln!(out, "{family}_total{{{labels}}} {count}");
        });
        let help = "Number of destinations whose counter was evicted in favour of another";
        writeln!(out, "# HELP {family}_evicted_total {help}\n# TYPE {family}_evicted_total counter")?;
        writeln!(out, "{family}_evicted_total {}", series.evicted)
    }

    fn render_instances(&self, out: &mut String, now: Timestamp, resolver: &Resolver) -> std::fmt::Result {
        let family = format!("bastion_instance_{}", self.family.trim_start_matches("bastion_"));
        // The Instances at the known destinations are known.
        let addresses: Vec<IpAddr> = self.destinations.lock().known().map(SocketAddr::ip).collect();
        let mut present: Vec<ObjectKey> =
            addresses.into_iter().filter_map(|address| resolver(address)).collect();
        present.sort();
        let mut series = self.instances.lock();
        let gone: Vec<ObjectKey> =
            series.known().filter(|known| present.binary_search(known).is_err()).cloned().collect();
        for instance in &gone {
            series.withdraw(instance);
        }
        for instance in &present {
            series.expose(instance);
        }
        series.expire(now);
        writeln!(out, "# HELP {family}_total {}, by Instance\n# TYPE {family}_total counter", self.help)?;
        series.render(|ObjectKey { namespace, name }, count| {
            let [namespace, name] = [namespace, name].map(|value| escaped(value));
            let labels = format_args!(r#"namespace="{namespace}",instance="{name}""#);
            let _ = writeln!(out, "{family}_total{{{labels}}} {count}");
        });
        Ok(())
    }
}

/// Escapes the value of a label for the text format.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n")
}
