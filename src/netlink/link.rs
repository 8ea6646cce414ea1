//! Links: list, create, change, delete.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use super::mac::Mac;
use super::message::{Attributes, Message, attributes, number, text};
use super::namespace::Namespace;
use super::socket::Socket;

/// The attribute of a veth pair with the other end, which begins with a header of a link (`linux/veth.h`).
const VETH_INFO_PEER: u16 = 1;
/// `IFF_UP` (netdevice(7)).
const UP: u32 = 1;
/// `IF_OPER_UP` of RFC 2863, as the kernel counts.
const OPERATIONAL: u8 = 6;

/// A link.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Link {
    /// Its number in its namespace.
    pub index: u32,
    /// Its name, of at most 15 bytes.
    pub name: String,
    /// Its hardware address; `None` for links without.
    pub mac: Option<Mac>,
    /// What it is: `veth`, `bridge`, …; empty for network devices.
    pub kind: String,
    /// Whether it is switched on.
    pub is_up: bool,
    /// Whether packets can pass: it is on, and so is its other end.
    pub is_operational: bool,
    /// The number of the bridge of which it is a port; 0 for none.
    pub master: u32,
    /// Of a veth, the number of the other end in its own namespace.
    pub peer: u32,
    /// Its alias, a text that anybody may give it; empty for none.
    pub alias: String,
}

/// One end of a veth pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Its name.
    pub name: String,
    /// Its hardware address.
    pub mac: Mac,
}

/// A veth pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The end in the namespace of the socket.
    pub here: End,
    /// The bridge of which that end becomes a port.
    pub master: u32,
    /// The end in the other namespace.
    pub there: End,
}

/// The header of a message about a link (`struct ifinfomsg`, rtnetlink(7)).
fn header(index: u32, flags: u32, change: u32) -> Attributes {
    let mut bytes = [0; 16];
    for (at, value) in [(4, index), (8, flags), (12, change)] {
        if let Some(place) = bytes.get_mut(at..at + 4) {
            place.copy_from_slice(&value.to_ne_bytes());
        }
    }
    Attributes::after(&bytes)
}

impl Link {
    /// The link that a message is about.
    pub(super) fn read(message: &Message<'_>) -> Option<Self> {
        if ![libc::RTM_NEWLINK, libc::RTM_DELLINK].contains(&message.kind) {
            return None;
        }
        let index = number(message.payload.get(4..)?)?;
        let is_up = number(message.payload.get(8..)?)? & UP != 0;
        let mut link = Self { index, is_up, ..Self::default() };
        for (kind, value) in attributes(message.payload.get(16..)?) {
            match kind {
                libc::IFLA_IFNAME => link.name = text(value),
                libc::IFLA_ADDRESS => link.mac = value.try_into().ok().map(Mac),
                libc::IFLA_LINK => link.peer = number(value).unwrap_or_default(),
                libc::IFLA_MASTER => link.master = number(value).unwrap_or_default(),
                libc::IFLA_IFALIAS => link.alias = text(value),
                libc::IFLA_OPERSTATE => link.is_operational = value.first() == Some(&OPERATIONAL),
                libc::IFLA_LINKINFO => {
                    let found = attributes(value).find(|(kind, _)| *kind == libc::IFLA_INFO_KIND);
                    link.kind = found.map(|(_, value)| text(value)).unwrap_or_default();
                }
                _ => {}
            }
        }
        Some(link)
    }
}

impl Socket {
    /// All links of the namespace.
    pub fn links(&mut self) -> io::Result<Vec<Link>> {
        self.list(libc::RTM_GETLINK, &header(0, 0, 0), Link::read)
    }

    /// A link; `None` if there is none of that number.
    pub fn link(&mut self, index: u32) -> io::Result<Option<Link>> {
        let mut found = None;
        match self.get(libc::RTM_GETLINK, header(index, 0, 0), |message| found = Link::read(message)) {
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            ended => ended.map(|()| found),
        }
    }

    /// The link of that name; `None` if there is none.
    pub fn link_named(&mut self, name: &str) -> io::Result<Option<Link>> {
        let (mut found, body) = (None, header(0, 0, 0).text(libc::IFLA_IFNAME, name));
        match self.get(libc::RTM_GETLINK, body, |message| found = Link::read(message)) {
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            ended => ended.map(|()| found),
        }
    }

    /// Creates a bridge that is switched on. It keeps its hardware address, whatever ports it gets.
    ///
    /// # Errors
    /// `AlreadyExists` when the name is taken.
    pub fn create_bridge(&mut self, End { name, mac }: &End) -> io::Result<()> {
        let body = header(0, UP, UP)
            .text(libc::IFLA_IFNAME, name)
            .bytes(libc::IFLA_ADDRESS, &mac.0)
            .nested(libc::IFLA_LINKINFO, &Attributes::default().text(libc::IFLA_INFO_KIND, "bridge"));
        self.change(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL, body)
    }

    /// Creates a veth pair: one end here, switched on and a port of the bridge, and the other in another namespace,
    /// switched off and without address.
    ///
    /// # Errors
    /// `AlreadyExists` when one of the names is taken. Nothing is left then.
    pub fn create_pair(&mut self, pair: &Pair, namespace: &Namespace) -> io::Result<()> {
        let Pair { here, master, there } = pair;
        // A descriptor is not negative.
        let descriptor = namespace.as_fd().as_raw_fd().cast_unsigned();
        let peer = header(0, 0, 0)
            .text(libc::IFLA_IFNAME, &there.name)
            .bytes(libc::IFLA_ADDRESS, &there.mac.0)
            .number(libc::IFLA_NET_NS_FD, descriptor);
        let info = Attributes::default()
            .text(libc::IFLA_INFO_KIND, "veth")
            .nested(libc::IFLA_INFO_DATA, &Attributes::default().nested(VETH_INFO_PEER, &peer));
        let body = header(0, UP, UP)
            .text(libc::IFLA_IFNAME, &here.name)
            .bytes(libc::IFLA_ADDRESS, &here.mac.0)
            .number(libc::IFLA_MASTER, *master)
            .nested(libc::IFLA_LINKINFO, &info);
        self.change(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL, body)
    }

    /// Gives a link an alias.
    pub fn set_alias(&mut self, index: u32, alias: &str) -> io::Result<()> {
        let body = header(index, 0, 0).bytes(libc::IFLA_IFALIAS, alias.as_bytes());
        self.change(libc::RTM_SETLINK, 0, body)
    }

    /// Gives a link a hardware address.
    pub fn set_mac(&mut self, index: u32, mac: Mac) -> io::Result<()> {
        self.change(libc::RTM_SETLINK, 0, header(index, 0, 0).bytes(libc::IFLA_ADDRESS, &mac.0))
    }

    /// Switches a link on.
    pub fn set_up(&mut self, index: u32) -> io::Result<()> {
        self.change(libc::RTM_SETLINK, 0, header(index, UP, UP))
    }

    /// Makes a link a port of a bridge.
    pub fn set_master(&mut self, index: u32, master: u32) -> io::Result<()> {
        self.change(libc::RTM_SETLINK, 0, header(index, 0, 0).number(libc::IFLA_MASTER, master))
    }

    /// Deletes a link, and the other end of a pair. One that is gone already is as good.
    pub fn delete_link(&mut self, index: u32) -> io::Result<()> {
        match self.change(libc::RTM_DELLINK, 0, header(index, 0, 0)) {
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(()),
            ended => ended,
        }
    }
}
