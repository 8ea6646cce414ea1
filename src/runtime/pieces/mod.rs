//! Splits the responses of the API server while they arrive, so that no more than one object is in memory.
//!
//! A page of 100 Secrets of the maximum size is 140 MiB. [`Items`] finds the items of a list in the chunks of its body,
//! and [`Lines`] the events of a watch. Neither builds an intermediate value: an item is decoded once, directly from
//! the received bytes.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::ObjectKey;

/// The maximum size of one object, in bytes. The API server and etcd accept requests of 1.5 MiB by default. The
/// response can be somewhat longer, because binary data is encoded in base64.
pub const LARGEST_OBJECT: usize = 4 << 20;
/// The maximum size of a list without its items, in bytes.
const LARGEST_HEAD: usize = 64 << 10;
/// A buffer that has grown beyond this is not reused for the next object.
const KEPT_BUFFER: usize = 256 << 10;

/// A part of a response.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'b> {
    /// The whole part.
    Whole(&'b [u8]),
    /// The first [`LARGEST_OBJECT`] bytes of a part that is longer.
    Begin(&'b [u8]),
}

impl Piece<'_> {
    /// Extracts the object's key from the beginning of a piece that is too long.
    pub fn key(begin: &[u8]) -> ObjectKey {
        let mut names = Names::default();
        // The deserializer always fails at the truncated end.
        let _ = names.deserialize(&mut serde_json::Deserializer::from_slice(begin));
        ObjectKey::new(&*names.namespace, &*names.name)
    }
}

/// Collects the bytes of one part, up to [`LARGEST_OBJECT`].
#[derive(Debug, Default)]
struct Part {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Part {
    fn push(&mut self, bytes: &[u8]) {
        let space = LARGEST_OBJECT - self.bytes.len();
        self.is_cut |= bytes.len() > space;
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(space)]);
    }

    /// Passes the part, which ends with these bytes, to `each`. A part within one chunk is not copied.
    fn end(&mut self, last: &[u8], each: &mut impl FnMut(Piece<'_>)) {
        if self.bytes.is_empty() && last.len() <= LARGEST_OBJECT {
            each(Piece::Whole(last));
            return;
        }
        self.push(last);
        each(if self.is_cut { Piece::Begin(&self.bytes) } else { Piece::Whole(&self.bytes) });
        self.is_cut = false;
        if self.bytes.capacity() > KEPT_BUFFER {
            self.bytes = Vec::new();
        } else {
            self.bytes.clear();
        }
    }
}

/// Finds the lines of a body.
#[derive(Debug, Default)]
pub struct Lines(Part);

impl Lines {
    /// Passes each line that ends in this chunk to `each`.
    pub fn feed(&mut self, mut chunk: &[u8], mut each: impl FnMut(Piece<'_>)) {
        while let Some(end) = chunk.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = chunk.split_at(end);
            self.0.end(line, &mut each);
            chunk = &rest[1..];
        }
        self.0.push(chunk);
    }

    /// Passes the rest after the last line to `each`, at the end of the body.
    pub fn finish(&mut self, mut each: impl FnMut(Piece<'_>)) {
        self.0.end(b"", &mut each);
    }
}

/// Finds the items of a list in its JSON. The rest of the list, its head, is collected: the API server writes the
/// metadata of some lists before the items, of others after them.
#[derive(Debug, Default)]
pub struct Items {
    head: Vec<u8>,
    item: Part,
    /// The number of open objects and arrays.
    depth: usize,
    is_within: bool,
    is_in_string: bool,
    is_escaped: bool,
    is_head_cut: bool,
    /// Whether there was an array of items.
    is_list: bool,
}

/// The representation of an empty list by some API servers.
const NO_ITEMS: &[u8] = b"\"items\":null";

/// The depth inside the list itself.
const LIST: usize = 1;
/// The depth inside the array of items.
const ITEMS: usize = 2;
/// The depth inside an item.
const ITEM: usize = 3;

impl Items {
    /// Passes each item that ends in this chunk to `each`.
    pub fn feed(&mut self, chunk: &[u8], mut each: impl FnMut(Piece<'_>)) {
        // The beginning of the bytes that are neither in the head nor in an item yet.
        let (mut begin, mut at) = (0, 0);
        while let Some(byte) = chunk.get(at).copied() {
            at += 1;
            if self.is_in_string {
                at = self.skip_string(chunk, at - 1);
                continue;
            }
            match byte {
                b'"' => self.is_in_string = true,
                b'{' | b'[' => {
                    self.depth += 1;
                    if byte == b'[' && self.depth == ITEMS {
                        self.keep_head(&chunk[begin..at]);
                        begin = at;
                        self.is_within = self.is_named_items();
                        self.is_list |= self.is_within;
                    } else if self.is_within && self.depth == ITEM {
                        begin = at - 1;
                    }
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.is_within && self.depth == ITEMS {
                        self.item.end(&chunk[begin..at], &mut each);
                        begin = at;
                    } else if self.is_within && self.depth == LIST {
                        self.is_within = false;
                        begin = at - 1;
                    }
                }
                _ => {}
            }
        }
        match (self.is_within, self.depth >= ITEM) {
            (true, true) => self.item.push(&chunk[begin..]),
            // Commas between items.
            (true, false) => {}
            (false, _) => self.keep_head(&chunk[begin..]),
        }
    }

    /// Returns the end of the string that continues at this position; the end of the chunk if the string does not end
    /// in it.
    fn skip_string(&mut self, chunk: &[u8], at: usize) -> usize {
        if std::mem::take(&mut self.is_escaped) {
            return at + 1;
        }
        let rest = &chunk[at..];
        let Some(length) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) else {
            return chunk.len();
        };
        if rest[length] == b'"' {
            self.is_in_string = false;
        } else {
            self.is_escaped = true;
        }
        at + length + 1
    }

    fn keep_head(&mut self, bytes: &[u8]) {
        self.is_head_cut |= bytes.len() > LARGEST_HEAD - self.head.len();
        if !self.is_head_cut {
            self.head.extend_from_slice(bytes);
        }
    }

    /// Whether the array that has just begun contains the items.
    fn is_named_items(&self) -> bool {
        let before = self.head.strip_suffix(b"[").unwrap_or_default().trim_ascii_end();
        before.strip_suffix(b":").is_some_and(|before| before.trim_ascii_end().ends_with(b"\"items\""))
    }

    /// Whether the text is a list. A list without objects has an empty array, or `null`.
    pub fn is_list(&self) -> bool {
        self.is_list || self.head.windows(NO_ITEMS.len()).any(|part| part == NO_ITEMS)
    }

    /// Returns the list without its items; `None` if it is incomplete or too long.
    pub fn head(&self) -> Option<&[u8]> {
        (self.depth == 0 && !self.is_in_string && !self.is_head_cut).then_some(&self.head)
    }
}

/// Reads the names of an object, or of the object in a watch event, from the beginning of its JSON.
#[derive(Default)]
struct Names {
    namespace: String,
    name: String,
    is_in_metadata: bool,
}

impl<'de> DeserializeSeed<'de> for &mut Names {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Names {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match (key.as_str(), self.is_in_metadata) {
                ("object", false) => map.next_value_seed(&mut *self)?,
                ("metadata", false) => {
                    self.is_in_metadata = true;
                    map.next_value_seed(&mut *self)?;
                    self.is_in_metadata = false;
                }
                ("name", true) => self.name = map.next_value()?,
                ("namespace", true) => self.namespace = map.next_value()?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
