//! The bytes of rtnetlink: a header, a header of the kind of message, and attributes, each a length, a kind and a value,
//! padded to four bytes; all numbers in the byte order of the machine (netlink(7), rtnetlink(7)).

/// The bytes of the header of a message.
const HEADER: usize = 16;
/// The bytes of the header of an attribute.
const ATTRIBUTE: usize = 4;
/// The bits of the kind of an attribute that are flags: nested, and in network byte order.
const FLAGS: u16 = 0xc000;
const NESTED: u16 = 0x8000;

/// Attributes, as bytes.
#[derive(Debug, Clone, Default)]
pub struct Attributes(Vec<u8>);

impl Attributes {
    /// With these bytes before the first attribute.
    pub fn after(header: &[u8]) -> Self {
        Self(header.to_vec())
    }

    /// Appends an attribute with this value.
    pub fn bytes(mut self, kind: u16, value: &[u8]) -> Self {
        // Every value of ours is shorter than 64 KiB; a longer one would be refused by the kernel.
        let length = u16::try_from(ATTRIBUTE + value.len()).unwrap_or(u16::MAX);
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Appends an attribute with a number.
    pub fn number(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    /// Appends an attribute with a text and the zero byte at its end.
    pub fn text(self, kind: u16, value: &str) -> Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.bytes(kind, &bytes)
    }

    /// Appends an attribute that consists of attributes.
    pub fn nested(self, kind: u16, inner: &Self) -> Self {
        self.bytes(kind | NESTED, &inner.0)
    }
}

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    kind: u16,
    flags: u16,
    body: Attributes,
}

impl Request {
    /// A request of that kind; `body` begins with the header of that kind.
    pub fn new(kind: u16, flags: i32, body: Attributes) -> Self {
        // The flags are bits below 2^12.
        Self { kind, flags: u16::try_from(flags).unwrap_or_default(), body }
    }

    /// The request with its header.
    pub fn encode(&self, sequence: u32) -> Vec<u8> {
        let Self { kind, flags, body } = self;
        let length = u32::try_from(HEADER + body.0.len()).unwrap_or(u32::MAX);
        let mut bytes = Vec::with_capacity(HEADER + body.0.len());
        bytes.extend(length.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend(&body.0);
        bytes
    }
}

/// A message from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'b> {
    /// Its kind.
    pub kind: u16,
    /// Its flags.
    pub flags: u16,
    /// The number of the request that it answers; 0 for none.
    pub sequence: u32,
    /// What follows its header.
    pub payload: &'b [u8],
}

/// The messages in a buffer. What follows a message whose length cannot be right is left out.
pub fn messages(mut rest: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = usize::try_from(number(rest)?).ok().filter(|length| *length >= HEADER)?;
        let (kind, flags) = (short(rest.get(4..)?)?, short(rest.get(6..)?)?);
        let message =
            Message { kind, flags, sequence: number(rest.get(8..)?)?, payload: rest.get(HEADER..length)? };
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    })
}

/// The attributes in these bytes, by their kinds without flags. What follows an attribute whose length cannot be right is
/// left out.
pub fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(short(rest)?);
        let kind = short(rest.get(2..)?)? & !FLAGS;
        let value = rest.get(ATTRIBUTE..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The number at the beginning of these bytes.
pub fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

/// The short number at the beginning of these bytes.
fn short(bytes: &[u8]) -> Option<u16> {
    bytes.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
}

/// A text, up to its zero byte if it has one.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

/// An IP address of four or sixteen bytes.
pub fn address(bytes: &[u8]) -> Option<std::net::IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(Into::into);
    four.ok().or_else(|| <[u8; 16]>::try_from(bytes).map(Into::into).ok())
}

/// The bytes of an IP address.
pub fn octets(address: std::net::IpAddr) -> Vec<u8> {
    match address {
        std::net::IpAddr::V4(address) => address.octets().to_vec(),
        std::net::IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// The constant of the address family of an IP address, which is a byte in all headers.
pub fn family(address: std::net::IpAddr) -> u8 {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    u8::try_from(family).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let inner = Attributes::default().text(1, "veth");
        let body = Attributes::after(&[1, 2, 3, 4])
            .text(3, "data4711")
            .number(10, 7)
            .nested(18, &inner)
            .bytes(1, &[9]);
        let bytes = Request::new(16, 5, body).encode(77);
        assert_eq!(bytes.len() % 4, 0);
        let found: Vec<Message<'_>> = messages(&bytes).collect();
        let [Message { kind: 16, flags: 5, sequence: 77, payload }] = found[..] else { panic!("{found:?}") };
        let found: Vec<_> = attributes(&payload[4..]).collect();
        assert_eq!(found[0], (3, &b"data4711\0"[..]));
        assert_eq!((text(found[0].1), number(found[1].1)), ("data4711".to_owned(), Some(7)));
        assert_eq!(attributes(found[2].1).collect::<Vec<_>>(), [(1, &b"veth\0"[..])]);
        assert_eq!(found[3], (1, &[9][..]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(messages(&bytes).count() <= 13);
            prop_assert!(attributes(&bytes).count() <= 50);
            let _ = (text(&bytes), address(&bytes), number(&bytes));
        }
    }
}
