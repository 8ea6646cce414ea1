//! The responses that clients have not read yet, and their memory limit.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyper::body::Bytes;
use parking_lot::Mutex;

use crate::runtime::connections::Connection;

/// The unsent whole responses of a server. Streams have their own limit, and content that the program holds anyway,
/// such as a stylesheet, does not count.
pub struct Unsent {
    /// Their maximum total size, in bytes.
    limit: usize,
    answers: Mutex<Answers>,
}

/// The connections of the responses and the lengths in bytes, in the order of creation.
#[derive(Default)]
struct Answers {
    by_age: BTreeMap<u64, (usize, Arc<Connection>)>,
    next: u64,
    bytes: usize,
}

impl Unsent {
    /// Creates the record with a limit in bytes.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, answers: Mutex::default() })
    }

    /// Counts a response until its last byte is sent, or its connection is closed. If the total exceeds the limit, the
    /// connections of the oldest responses are closed: a client that reads at all would have finished an older
    /// response.
    pub fn count(self: &Arc<Self>, answer: Bytes, place: &Arc<Connection>) -> Bytes {
        if !answer.is_unique() {
            return answer;
        }
        let mut answers = self.answers.lock();
        let number = answers.next;
        answers.next += 1;
        answers.bytes += answer.len();
        answers.by_age.insert(number, (answer.len(), Arc::clone(place)));
        while answers.bytes > self.limit
            && answers.by_age.len() > 1
            && let Some((_, (length, oldest))) = answers.by_age.pop_first()
        {
            answers.bytes -= length;
            oldest.end();
        }
        drop(answers);
        Bytes::from_owner(Counted { answer, number, all: Arc::clone(self) })
    }
}

/// The bytes of a response, until they are sent.
#[derive(derive_more::AsRef)]
struct Counted {
    #[as_ref([u8])]
    answer: Bytes,
    number: u64,
    all: Arc<Unsent>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut answers = self.all.answers.lock();
        let counted = answers.by_age.remove(&self.number);
        answers.bytes -= counted.map_or(0, |(length, _)| length);
    }
}
