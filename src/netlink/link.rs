//! Links: list, create, change, delete.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::link::{
    InfoData, InfoVeth, LinkAttribute, LinkExtentMask, LinkFlags, LinkInfo, LinkMessage, State,
};
use rtnetlink::{LinkBridge, LinkMessageBuilder, LinkUnspec, LinkVeth};

use super::mac::Mac;
use super::namespace::Namespace;
use super::socket::Socket;

/// A link.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Link {
    /// Its number in its namespace.
    pub index: u32,
    /// Its name, of at most 15 bytes.
    pub name: String,
    /// Its hardware address; `None` for links without.
    pub mac: Option<Mac>,
    /// Its type: `veth`, `bridge`, …; empty for network devices.
    pub kind: String,
    /// Whether it is administratively up.
    pub is_up: bool,
    /// Whether packets can pass: both this link and its other end are up.
    pub is_operational: bool,
    /// The index of the bridge that it is a port of; 0 if it is not a port.
    pub master: u32,
    /// The index of a veth's other end in that end's namespace.
    pub peer: u32,
    /// Its alias, a text that any user of the namespace can set; empty if unset.
    pub alias: String,
}

/// A link that is to be created: a bridge, or one end of a veth pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLink {
    /// Its name.
    pub name: String,
    /// Its hardware address.
    pub mac: Mac,
}

/// A veth pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The end in the namespace of the socket.
    pub here: NewLink,
    /// The index of the bridge that end is attached to.
    pub master: u32,
    /// The end in the other namespace.
    pub there: NewLink,
}

impl From<LinkMessage> for Link {
    fn from(LinkMessage { header, attributes, .. }: LinkMessage) -> Self {
        let is_up = header.flags.contains(LinkFlags::Up);
        let mut link = Self { index: header.index, is_up, ..Self::default() };
        for attribute in attributes {
            match attribute {
                LinkAttribute::IfName(name) => link.name = name,
                LinkAttribute::Address(address) => link.mac = address.try_into().ok().map(Mac),
                LinkAttribute::Link(peer) => link.peer = peer,
                LinkAttribute::Controller(master) => link.master = master,
                LinkAttribute::IfAlias(alias) => link.alias = alias,
                LinkAttribute::OperState(state) => link.is_operational = state == State::Up,
                LinkAttribute::LinkInfo(infos) => {
                    let kind = |info| if let LinkInfo::Kind(kind) = info { Some(kind) } else { None };
                    let kind = infos.into_iter().find_map(kind);
                    link.kind = kind.map(|kind| kind.to_string()).unwrap_or_default();
                }
                _ => {}
            }
        }
        link
    }
}

/// The request for links, without their counters of packets.
fn request(about: LinkMessageBuilder<LinkUnspec>) -> RouteNetlinkMessage {
    let mask = LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats]);
    RouteNetlinkMessage::GetLink(about.append_extra_attribute(mask).build())
}

fn link(message: RouteNetlinkMessage) -> Option<Link> {
    if let RouteNetlinkMessage::NewLink(message) = message { Some(message.into()) } else { None }
}

impl Socket {
    /// Lists all links of the namespace.
    pub fn links(&mut self) -> io::Result<Vec<Link>> {
        self.list(&request(LinkMessageBuilder::default()), link)
    }

    /// Returns the link with this index; `None` if it does not exist.
    pub fn link(&mut self, index: u32) -> io::Result<Option<Link>> {
        self.get(request(LinkUnspec::new_with_index(index)), link)
    }

    /// Returns the link with this name; `None` if it does not exist.
    pub fn link_named(&mut self, name: &str) -> io::Result<Option<Link>> {
        self.get(request(LinkUnspec::new_with_name(name)), link)
    }

    /// Creates a bridge that is up. It keeps its hardware address when ports are added.
    ///
    /// # Errors
    /// `AlreadyExists` when the name is taken.
    pub fn create_bridge(&mut self, NewLink { name, mac }: &NewLink) -> io::Result<()> {
        self.create(LinkBridge::new(name).address(mac.0.to_vec()).build())
    }

    /// Creates a veth pair. The end in this namespace is up and attached to the bridge; the end in the other namespace
    /// is down and has no address.
    ///
    /// # Errors
    /// `AlreadyExists` when one of the names is taken. Neither end is left behind.
    pub fn create_pair(&mut self, pair: &Pair, namespace: &Namespace) -> io::Result<()> {
        let Pair { here, master, there } = pair;
        // One request configures both ends, so the other end never appears in another namespace or with another
        // hardware address.
        let peer = LinkUnspec::new_with_name(&there.name)
            .address(there.mac.0.to_vec())
            .setns_by_fd(namespace.as_fd().as_raw_fd())
            .build();
        let pair = LinkVeth::new(&here.name, &there.name)
            .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)))
            .address(here.mac.0.to_vec())
            .controller(*master)
            .up();
        self.create(pair.build())
    }

    /// Sets the alias of a link.
    pub fn set_alias(&mut self, index: u32, alias: &str) -> io::Result<()> {
        self.set(LinkUnspec::new_with_index(index).alias(alias))
    }

    /// Sets the hardware address of a link.
    pub fn set_mac(&mut self, index: u32, mac: Mac) -> io::Result<()> {
        self.set(LinkUnspec::new_with_index(index).address(mac.0.to_vec()))
    }

    /// Brings a link up.
    pub fn set_up(&mut self, index: u32) -> io::Result<()> {
        self.set(LinkUnspec::new_with_index(index).up())
    }

    /// Attaches a link to a bridge.
    pub fn set_master(&mut self, index: u32, master: u32) -> io::Result<()> {
        self.set(LinkUnspec::new_with_index(index).controller(master))
    }

    /// Deletes a link, and with it the other end of a pair. Succeeds if the link does not exist.
    pub fn delete_link(&mut self, index: u32) -> io::Result<()> {
        match self.change(self.handle.link().del(index).execute()) {
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(()),
            ended => ended,
        }
    }

    fn create(&mut self, link: LinkMessage) -> io::Result<()> {
        self.change(self.handle.link().add(link).execute())
    }

    fn set(&mut self, link: LinkMessageBuilder<LinkUnspec>) -> io::Result<()> {
        self.change(self.handle.link().change(link.build()).execute())
    }
}
