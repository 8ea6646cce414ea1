//! Counts of connections by destination, and by Instance, in the text format of Prometheus.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use parking_lot::Mutex;

use super::series::Series;
use crate::runtime::{ObjectKey, clock};

/// Says which Instance has an address now.
pub type Resolver = Arc<dyn Fn(IpAddr) -> Option<ObjectKey> + Send + Sync>;

/// A family of counters, one for each destination of connections. All who count share it.
///
/// Prometheus sees how much a counter rises, and a counter that appears with the value 1 has not risen. So each series
/// starts at 0: that of a known destination at once, that of any other in the first text that has it. At most 4,096
/// destinations that are not known have a series; those seen last are kept. A series that is not known is removed when
/// there was no connection for a day. At most 16,384 are known; a further one is as if it were not.
///
/// An Instance is named, and never by its uid: the URLs of machines contain it, and nothing else protects them from readers of
/// metrics.
pub struct ConnectionCounter {
    family: &'static str,
    help: &'static str,
    destinations: Mutex<Series<SocketAddr>>,
    instances: Mutex<Series<ObjectKey>>,
    resolver: OnceLock<Resolver>,
}

/// The destination of a connection. An IPv4 address that is written as one of IPv6 is the same as by itself.
fn canonical(destination: SocketAddr) -> SocketAddr {
    SocketAddr::new(destination.ip().to_canonical(), destination.port())
}

impl ConnectionCounter {
    /// A counter without a series. `family` is its name in metrics, without the suffix `_total`; `help` says what is
    /// counted.
    pub fn new(family: &'static str, help: &'static str) -> Self {
        Self {
            family,
            help,
            destinations: Mutex::new(Series::new()),
            instances: Mutex::new(Series::new()),
            resolver: OnceLock::new(),
        }
    }

    /// Counts by Instance too, in a second family: `bastion_instance_x` beside `bastion_x`. A connection belongs to the
    /// Instance that `resolver` returns when it is counted. Only the first call has an effect.
    pub fn set_resolver(&self, resolver: Resolver) {
        let _ = self.resolver.set(resolver);
    }

    /// Counts a connection. Allocates nothing if its destination has a series.
    pub fn count(&self, destination: SocketAddr) {
        self.count_at(destination, clock::stated());
    }

    /// Counts a connection that was seen at that time.
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

    /// Makes a destination unknown: its series stays for a day after its last connection.
    pub fn withdraw(&self, destination: SocketAddr) {
        self.destinations.lock().withdraw(&canonical(destination));
    }

    /// Whether a destination is known.
    pub fn is_known(&self, destination: SocketAddr) -> bool {
        self.destinations.lock().is_known(&canonical(destination))
    }

    /// When the last connection to an address, whatever its port, was counted; `None` if that is not known.
    pub fn last_seen(&self, address: IpAddr) -> Option<Timestamp> {
        let at = |port| SocketAddr::new(address.to_canonical(), port);
        self.destinations.lock().last(at(0)..=at(u16::MAX))
    }

    /// Appends both families to a text in the format of Prometheus.
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
        writeln!(out, "# HELP {family} {help}\n# TYPE {family} counter")?;
        series.render(|destination, count| {
            let (ip, port) = (destination.ip(), destination.port());
            let labels = format_args!(r#"destination_ip="{ip}",destination_port="{port}""#);
            let _ = writeln!(out, "{family}{{{labels}}} {count}");
        });
        let help = "Number of destinations whose counter gave way to that of another one";
        writeln!(out, "# HELP {family}_evicted_total {help}\n# TYPE {family}_evicted_total counter")?;
        writeln!(out, "{family}_evicted_total {}", series.evicted())
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
        writeln!(out, "# HELP {family} {}, by Instance\n# TYPE {family} counter", self.help)?;
        series.render(|ObjectKey { namespace, name }, count| {
            let [namespace, name] = [namespace, name].map(|value| escaped(value));
            let labels = format_args!(r#"namespace="{namespace}",instance="{name}""#);
            let _ = writeln!(out, "{family}{{{labels}}} {count}");
        });
        Ok(())
    }
}

/// The value of a label in the text format.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n")
}
