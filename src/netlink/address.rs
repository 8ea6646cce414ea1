//! Addresses of links.

use std::io;

use ipnet::IpNet;

use super::message::{Attributes, Message, address, attributes, family, number, octets};
use super::socket::Socket;

/// An address of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// The number of the link.
    pub link: u32,
    /// The address, and the prefix length of the range that the link reaches by it.
    pub net: IpNet,
}

impl Address {
    pub(super) fn read(message: &Message<'_>) -> Option<Self> {
        if ![libc::RTM_NEWADDR, libc::RTM_DELADDR].contains(&message.kind) {
            return None;
        }
        let length = *message.payload.get(1)?;
        let link = number(message.payload.get(4..)?)?;
        let (mut local, mut other) = (None, None);
        for (kind, value) in attributes(message.payload.get(8..)?) {
            match kind {
                libc::IFA_LOCAL => local = address(value),
                libc::IFA_ADDRESS => other = address(value),
                _ => {}
            }
        }
        // They differ on point-to-point links only, where `IFA_ADDRESS` is that of the other side.
        Some(Self { link, net: IpNet::new(local.or(other)?, length).ok()? })
    }

    /// The body of a request about this address (`struct ifaddrmsg`, rtnetlink(7)).
    fn body(&self) -> Attributes {
        let Self { link, net } = *self;
        let mut header = vec![family(net.addr()), net.prefix_len(), 0, 0];
        header.extend(link.to_ne_bytes());
        let octets = octets(net.addr());
        Attributes::after(&header).bytes(libc::IFA_LOCAL, &octets).bytes(libc::IFA_ADDRESS, &octets)
    }
}

impl Socket {
    /// All addresses of the namespace.
    pub fn addresses(&mut self) -> io::Result<Vec<Address>> {
        self.list(libc::RTM_GETADDR, &Attributes::after(&[0; 8]), Address::read)
    }

    /// Adds an address: of IPv4 with the broadcast address of its range, of IPv6 without asking the neighbours whether it
    /// is taken. One that is there already is as good.
    pub fn add_address(&mut self, address: &Address) -> io::Result<()> {
        let mut body = address.body();
        match address.net {
            // A range of one or two addresses has none (RFC 3021).
            IpNet::V4(net) if net.prefix_len() < 31 => {
                body = body.bytes(libc::IFA_BROADCAST, &net.broadcast().octets());
            }
            IpNet::V4(_) => {}
            IpNet::V6(_) => body = body.number(libc::IFA_FLAGS, libc::IFA_F_NODAD),
        }
        match self.change(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_EXCL, body) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            ended => ended,
        }
    }

    /// Removes an address. One that is gone already is as good.
    pub fn remove_address(&mut self, address: &Address) -> io::Result<()> {
        match self.change(libc::RTM_DELADDR, 0, address.body()) {
            Err(error) if error.raw_os_error() == Some(libc::EADDRNOTAVAIL) => Ok(()),
            ended => ended,
        }
    }
}
