//! Addresses of links.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use rtnetlink::AddressMessageBuilder;
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};

use super::socket::Socket;

/// An address of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// The number of the link.
    pub link: u32,
    /// The address, with the prefix length of its on-link range.
    pub net: IpNet,
}

impl Address {
    /// Parses the address in a message.
    pub(super) fn read(AddressMessage { header, attributes, .. }: &AddressMessage) -> Option<Self> {
        let (mut local, mut other) = (None, None);
        for attribute in attributes {
            match attribute {
                AddressAttribute::Local(address) => local = Some(*address),
                AddressAttribute::Address(address) => other = Some(*address),
                _ => {}
            }
        }
        // They differ on point-to-point links only, where `IFA_ADDRESS` is the peer's address.
        let net = IpNet::new(local.or(other)?, header.prefix_len).ok()?;
        Some(Self { link: header.index, net })
    }
}

impl Socket {
    /// Lists all addresses of the namespace.
    pub fn addresses(&mut self) -> io::Result<Vec<Address>> {
        let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        self.list(&request, |message| match message {
            RouteNetlinkMessage::NewAddress(message) => Address::read(&message),
            _ => None,
        })
    }

    /// Adds an address. An IPv4 address gets the broadcast address of its range; an IPv6 address skips duplicate
    /// address detection. Succeeds if the address already exists.
    pub fn add_address(&mut self, Address { link, net }: &Address) -> io::Result<()> {
        let mut request = self.handle.address().add(*link, net.addr(), net.prefix_len());
        if let IpNet::V6(_) = net {
            request.message_mut().attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
        match self.change(request.execute()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            ended => ended,
        }
    }

    /// Removes an address. Succeeds if the address does not exist.
    pub fn remove_address(&mut self, Address { link, net }: &Address) -> io::Result<()> {
        let message = match net {
            IpNet::V4(net) => AddressMessageBuilder::<Ipv4Addr>::new()
                .index(*link)
                .address(net.addr(), net.prefix_len())
                .build(),
            IpNet::V6(net) => AddressMessageBuilder::<Ipv6Addr>::new()
                .index(*link)
                .address(net.addr(), net.prefix_len())
                .build(),
        };
        match self.change(self.handle.address().del(message).execute()) {
            Err(error) if error.raw_os_error() == Some(libc::EADDRNOTAVAIL) => Ok(()),
            ended => ended,
        }
    }
}
