//! Lists the open TCP connections of this pod, from the kernel's tables (`/proc/net/tcp`, `man 5 proc_pid_net`).

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::{IpAddr, SocketAddr};

use super::packet::Tracked;

/// The tables of the calling thread's network namespace: IPv4 sockets, and IPv6 sockets, which may also have IPv4
/// connections.
const LISTS: [&str; 2] = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"];
/// The relevant states of sockets (`include/net/tcp_states.h`).
const ESTABLISHED: u8 = 1;
const LISTEN: u8 = 10;

/// Calls `each` once for each open connection that this pod opened to the tracked port, with its destination.
///
/// # Errors
/// When a table cannot be read. A kernel without IPv6 has no IPv6 table.
pub fn for_each_open(tracked: Tracked, mut each: impl FnMut(SocketAddr)) -> io::Result<()> {
    for list in LISTS {
        match File::open(list) {
            Ok(file) => read(BufReader::with_capacity(64 << 10, file), tracked, &mut each)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound && list == LISTS[1] => {}
            Err(error) => return Err(io::Error::new(error.kind(), format!("{list}: {error}"))),
        }
    }
    Ok(())
}

/// Reads one table. A line without a socket, such as the heading, is skipped.
fn read(mut list: impl BufRead, tracked: Tracked, each: &mut impl FnMut(SocketAddr)) -> io::Result<()> {
    // The kernel lists these first. A connection whose local port is one of them is incoming.
    let mut listening = Vec::new();
    let mut line = String::new();
    while list.read_line(&mut line)? > 0 {
        match socket(&line) {
            Some((local, _, LISTEN)) => listening.push(local.port()),
            Some((local, remote, ESTABLISHED))
                if remote.port() == tracked.port
                    && (tracked.ipv6 || remote.is_ipv4())
                    && !listening.contains(&local.port()) =>
            {
                each(remote);
            }
            _ => {}
        }
        line.clear();
    }
    Ok(())
}

/// Parses a line into the local address, the remote address and the state of the socket.
fn socket(line: &str) -> Option<(SocketAddr, SocketAddr, u8)> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (local, remote) = (address(words.next()?)?, address(words.next()?)?);
    Some((local, remote, u8::from_str_radix(words.next()?, 16).ok()?))
}

/// Parses an address such as `0100007F:0016`: 32-bit numbers, which this host stores in memory in network byte order,
/// and the port. An IPv4-mapped IPv6 address becomes the IPv4 address.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let number = |at: usize| Some(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let ip = match ip.len() {
        8 => IpAddr::from(number(0)?),
        32 => {
            let words = [number(0)?, number(8)?, number(16)?, number(24)?];
            IpAddr::from(*words.as_flattened().first_chunk::<16>()?)
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip.to_canonical(), u16::from_str_radix(port, 16).ok()?))
}

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::*;

    /// A table as a kernel printed it: a server at port 2222 with a client from port 22; connections to 10.96.0.7:22
    /// (two, and one that is being closed), to 10.96.0.8:22 (one that is not open yet) and to 10.96.0.9:443.
    const IPV4: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:08AE 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 100 1 0000000000000000 100 0 0 10 0
   1: 0100630A:08AE 0200630A:0016 01 00000000:00000000 00:00000000 00000000     0        0 101 1 0000000000000000 20 4 30 10 -1
   2: 0100630A:C350 0700600A:0016 01 00000000:00000000 02:00000A3D 00000000     0        0 102 2 0000000000000000 20 4 30 10 -1
   3: 0100630A:C351 0700600A:0016 01 00000000:00000000 00:00000000 00000000     0        0 103 1 0000000000000000 20 4 30 10 -1
   4: 0100630A:C352 0700600A:0016 08 00000000:00000000 00:00000000 00000000     0        0 104 1 0000000000000000 20 4 30 10 -1
   5: 0100630A:C353 0800600A:0016 02 00000001:00000000 01:00000064 00000000     0        0 105 2 0000000000000000 100 0 0 1 7
   6: 0100630A:C354 0900600A:01BB 01 00000000:00000000 00:00000000 00000000     0        0 106 1 0000000000000000 20 4 30 10 -1
";
    /// A connection to `fd00::1:2`, and one from an IPv6 socket to 10.96.0.7.
    const IPV6: &str = "\
  sl  local_address                         remote_address                        st tx_queue rx_queue
   0: 000000FD000000000000000001000000:C350 000000FD000000000000000002000100:0016 01 00000000:00000000
   1: 0000000000000000FFFF00000100630A:C351 0000000000000000FFFF00000700600A:0016 01 00000000:00000000
";

    fn open(list: &str, tracked: Tracked) -> Vec<String> {
        let mut found = Vec::new();
        let result = read(list.as_bytes(), tracked, &mut |destination: SocketAddr| {
            found.push(destination.to_string());
        });
        assert!(result.is_ok(), "reading from memory cannot fail");
        found
    }

    #[test]
    fn open_outgoing_connections_are_found() {
        let tracked = Tracked { port: 22, ipv6: true };
        assert_eq!(open(IPV4, tracked), ["10.96.0.7:22", "10.96.0.7:22"]);
        assert_eq!(open(IPV6, tracked), ["[fd00::1:2]:22", "10.96.0.7:22"]);
        assert_eq!(open(IPV6, Tracked { port: 22, ipv6: false }), ["10.96.0.7:22"]);
        assert_eq!(open(IPV4, Tracked { port: 443, ipv6: true }), ["10.96.0.9:443"]);
    }

    #[test]
    fn malformed_lines_are_skipped() {
        let tracked = Tracked { port: 22, ipv6: true };
        let found = "0: 0100630A:C350 0700600A:0016 01\n";
        for wrong in
            ["", "\n", "0:\n", "0: 0100630A:C350\n", "0: 0100630A:C350 0700600A:0016\n", "0: é:1 é:2 01\n"]
        {
            assert_eq!(open(&format!("{wrong}{found}"), tracked), ["10.96.0.7:22"], "{wrong:?}");
        }
        for wrong in
            ["0: 0100630A:C350 0700600A:16:1 01", "0: 0100630A:C350 07006:0016 01", "0: 0100630A 0700600A 01"]
        {
            assert_eq!(open(wrong, tracked), [""; 0], "{wrong:?}");
        }
    }
}
