//! The answers that clients have not taken yet, and what they may take of the memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyper::body::Bytes;
use parking_lot::Mutex;

use crate::runtime::connections::Connection;

/// The whole answers of a server that are not sent yet. Streams are bounded by themselves, and what the program holds anyway, as a
/// style does, takes nothing.
pub struct Unsent {
    /// What they may take together, in bytes.
    limit: usize,
    answers: Mutex<Answers>,
}

/// The connections of the answers, and the lengths of these in bytes, in the order in which they were made.
#[derive(Default)]
struct Answers {
    by_age: BTreeMap<u64, (usize, Arc<Connection>)>,
    next: u64,
    bytes: usize,
}

impl Unsent {
    /// Up to so many bytes.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, answers: Mutex::default() })
    }

    /// An answer that counts until the last of it is sent, or its connection has ended. If all together are too long with it, the
    /// connections of the oldest ones end: a client that takes its answer has done so before.
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

/// The bytes of an answer, until they are sent.
struct Counted {
    answer: Bytes,
    number: u64,
    all: Arc<Unsent>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.answer
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut answers = self.all.answers.lock();
        let counted = answers.by_age.remove(&self.number);
        answers.bytes -= counted.map_or(0, |(length, _)| length);
    }
}
