//! The SSH connections to machines that are open now, in the Prometheus text format.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::packet::Tracked;
use super::series::UNKNOWN_LIMIT;
use super::table::for_each_open;
use crate::runtime::clock;

/// The name of the gauge.
const FAMILY: &str = "bastion_ssh_open_connections";

/// A gauge with a series for each destination of an open connection. Its value is the number of connections in the
/// kernel's table at the last read, but at least the number of open terminals of this process. Terminals are in that
/// table only if the table is read in their network namespace. Destinations that are not machines have at most 4,096
/// series.
#[derive(Default)]
pub struct OpenConnections(Mutex<Open>);

#[derive(Default)]
struct Open {
    table: BTreeMap<SocketAddr, u64>,
    /// When the table was read.
    read: Timestamp,
    terminals: BTreeMap<SocketAddr, u64>,
}

/// A terminal that counts as open until this value is dropped.
pub struct OpenTerminal {
    connections: Arc<OpenConnections>,
    destination: SocketAddr,
}

impl OpenConnections {
    /// Reads the kernel's table. `is_known` returns whether a destination is a machine.
    ///
    /// # Errors
    /// When the table cannot be read. The previous values stay.
    pub fn read(&self, tracked: Tracked, is_known: impl Fn(SocketAddr) -> bool) -> io::Result<()> {
        let mut table = Table { limit: UNKNOWN_LIMIT, unknown: 0, counts: BTreeMap::new() };
        for_each_open(tracked, |destination| table.add(destination, &is_known))?;
        let read = clock::stated();
        let mut open = self.0.lock();
        (open.table, open.read) = (table.counts, read);
        Ok(())
    }

    /// Counts a terminal as open until the returned value is dropped.
    pub fn begin(self: &Arc<Self>, destination: SocketAddr) -> OpenTerminal {
        *self.0.lock().terminals.entry(destination).or_default() += 1;
        OpenTerminal { connections: Arc::clone(self), destination }
    }

    /// Returns when a connection to an address, on any port, was last seen open; `None` if no open connection is known.
    pub fn seen(&self, address: IpAddr) -> Option<Timestamp> {
        let at = |port| SocketAddr::new(address.to_canonical(), port);
        let all = at(0)..=at(u16::MAX);
        let open = self.0.lock();
        if open.terminals.range(all.clone()).next().is_some() {
            return Some(clock::stated());
        }
        open.table.range(all).next().map(|_| open.read)
    }

    /// Appends the gauge in the Prometheus text format.
    pub fn render(&self, out: &mut String) {
        let open = self.0.lock();
        let help = "SSH connections from bastion to a target that are open";
        // Writing to a string does not fail.
        let _ = writeln!(out, "# HELP {FAMILY} {help}\n# TYPE {FAMILY} gauge");
        let mut counts = open.table.clone();
        for (destination, terminals) in &open.terminals {
            let count = counts.entry(*destination).or_default();
            *count = (*count).max(*terminals);
        }
        for (destination, count) in counts {
            let (ip, port) = (destination.ip(), destination.port());
            let _ = writeln!(out, r#"{FAMILY}{{destination_ip="{ip}",destination_port="{port}"}} {count}"#);
        }
    }
}

impl Drop for OpenTerminal {
    fn drop(&mut self) {
        let mut open = self.connections.0.lock();
        match open.terminals.get_mut(&self.destination) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(open.terminals.remove(&self.destination)),
        }
    }
}

/// The connections of a table while it is read.
struct Table {
    /// The maximum number of unknown destinations.
    limit: usize,
    unknown: usize,
    counts: BTreeMap<SocketAddr, u64>,
}

impl Table {
    fn add(&mut self, destination: SocketAddr, is_known: &impl Fn(SocketAddr) -> bool) {
        if let Some(count) = self.counts.get_mut(&destination) {
            *count += 1;
            return;
        }
        let is_unknown = !is_known(destination);
        if !is_unknown || self.unknown < self.limit {
            self.unknown += usize::from(is_unknown);
            self.counts.insert(destination, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destination(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    fn rendered(connections: &OpenConnections) -> Vec<String> {
        let mut text = String::new();
        connections.render(&mut text);
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    #[test]
    fn unknown_destinations_are_bounded_and_do_not_displace_machines() {
        let mut table = Table { limit: 2, unknown: 0, counts: BTreeMap::new() };
        let is_known = |destination: SocketAddr| destination.ip().to_string().starts_with("10.96.");
        for text in
            ["192.0.2.1:22", "192.0.2.2:22", "192.0.2.3:22", "192.0.2.1:22", "10.96.0.1:22", "10.96.0.2:22"]
        {
            table.add(destination(text), &is_known);
        }
        let found: Vec<_> = table.counts.iter().map(|(at, count)| (at.to_string(), *count)).collect();
        let expected = [("10.96.0.1:22", 1), ("10.96.0.2:22", 1), ("192.0.2.1:22", 2), ("192.0.2.2:22", 1)];
        assert_eq!(found, expected.map(|(at, count)| (at.to_owned(), count)));
    }

    #[test]
    fn a_terminal_counts_while_open_and_only_once_if_also_in_the_table() {
        let connections = Arc::new(OpenConnections::default());
        let machine = destination("10.96.0.1:22");
        assert_eq!((rendered(&connections), connections.seen(machine.ip())), (vec![], None));
        let (first, second) = (connections.begin(machine), connections.begin(machine));
        let line = |count| {
            [format!(
                r#"bastion_ssh_open_connections{{destination_ip="10.96.0.1",destination_port="22"}} {count}"#
            )]
        };
        assert_eq!(rendered(&connections), line(2));
        assert!(connections.seen(machine.ip()).is_some());
        assert_eq!(connections.seen(destination("10.96.0.2:22").ip()), None);
        connections.0.lock().table = BTreeMap::from([(machine, 3)]);
        assert_eq!(rendered(&connections), line(3), "two of the three are the terminals");
        connections.0.lock().table.clear();
        drop(first);
        assert_eq!(rendered(&connections), line(1));
        drop(second);
        assert_eq!((rendered(&connections), connections.seen(machine.ip())), (vec![], None));
    }

    #[test]
    fn a_connection_in_the_table_was_seen_at_the_time_of_the_read() {
        let connections = OpenConnections::default();
        let at = Timestamp::from_second(1_790_000_000).expect("a time");
        *connections.0.lock() = Open {
            table: BTreeMap::from([(destination("10.96.0.1:22"), 1)]),
            read: at,
            terminals: BTreeMap::new(),
        };
        assert_eq!(connections.seen("::ffff:10.96.0.1".parse().expect("an address")), Some(at));
        assert_eq!(connections.seen("10.96.0.9".parse().expect("an address")), None);
    }
}
