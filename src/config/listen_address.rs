//! The address of a server of the daemon.

use std::fmt;
use std::net::{AddrParseError, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use super::keys::text;

/// The address that a server listens on, written as `ADDRESS:PORT`; empty if the server is turned off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListenAddress(pub Option<SocketAddr>);

text!(
    ListenAddress,
    LISTEN_ADDRESS = "crownlabs-listen-address",
    "an IP address and a port such as \"0.0.0.0:8080\" or \"[::]:8080\", or \"\" for none",
    concat!("^((", pattern!(ipv4), r"|\[[0-9A-Fa-f:.%]+\]):0*(0|", pattern!(port), "))?$")
);

impl ListenAddress {
    /// A port on all IPv4 addresses of the machine.
    pub(super) fn port(port: u16) -> Self {
        Self(Some((Ipv4Addr::UNSPECIFIED, port).into()))
    }

    /// The address; `None` if the server is turned off.
    pub fn address(&self) -> Option<SocketAddr> {
        self.0
    }
}

impl FromStr for ListenAddress {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        if text.is_empty() { Ok(Self(None)) } else { text.parse().map(Some).map(Self) }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |address| address.fmt(formatter))
    }
}
