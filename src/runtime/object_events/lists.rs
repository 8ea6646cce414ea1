//! The lists of events: at most one list per namespace in two minutes, for all loops together.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{debug, warn};

use super::{About, EVENTS, Event, Involved, Newest, Told};
use crate::runtime::ObjectKey;
use crate::runtime::client::Writer;
use crate::runtime::error::ApiError;
use crate::runtime::pieces::Piece;

/// The minimum time between the starts of two lists of one namespace's events.
const EVERY: Duration = Duration::from_mins(2);
/// The time limit of a list.
const DEADLINE: Duration = Duration::from_secs(15);
/// The time within which a question is answered, unless the events cannot be read.
pub const LONGEST_WAIT: Duration = EVERY.saturating_add(DEADLINE);
/// The maximum number of namespaces that are listed at the same time.
const MOST_AT_ONCE: usize = 4;
/// The maximum number of events that are read from a namespace.
const MOST_EVENTS: usize = 500;
/// The maximum number of bytes of events that are read from a namespace.
const MOST_BYTES: usize = 1 << 20;

/// The loop and the object that ask.
pub(super) type Asker = (&'static str, ObjectKey);

/// Takes the events about an object of a loop.
pub(super) type Deliver = Arc<dyn Fn(&ObjectKey, Vec<Told>) + Send + Sync>;

/// A question to the lists of a namespace, until it is withdrawn.
#[derive(Clone)]
pub(super) struct Question {
    /// The hashes of the objects that the events are about, and the earliest second of the events: ten thousand
    /// Instances may wait at the same time.
    pub about: Arc<[(u64, i64)]>,
    /// Takes the events.
    pub deliver: Deliver,
}

impl Question {
    /// Creates a question about these objects.
    pub fn new(about: &About, deliver: &Deliver) -> Self {
        let uids = about.uids.iter().map(|uid| (hash("uid", uid), i64::MIN));
        let claims = about.claims.iter().map(|(name, since)| (hash("claim", name), since.as_second()));
        let jobs = about.jobs.iter().map(|(name, since)| (hash("job", name), since.as_second()));
        Self { about: uids.chain(claims).chain(jobs).collect(), deliver: Arc::clone(deliver) }
    }
}

/// Returns the hashes with which a question can mean an object. The name of a pod is the name of its Job and a suffix.
fn hashes(object: &Involved) -> impl Iterator<Item = u64> {
    let by_name = match &*object.kind {
        "PersistentVolumeClaim" => Some(hash("claim", &object.name)),
        "Pod" => object.name.rsplit_once('-').map(|(job, _)| hash("job", job)),
        _ => None,
    };
    std::iter::once(hash("uid", &object.uid)).chain(by_name)
}

fn hash(means: &str, text: &str) -> u64 {
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEYS.hash_one((means, text))
}

/// Lists events. Clones share their state.
#[derive(Clone)]
pub struct EventLists {
    /// `None` if nothing is listed, as in `crownlabs plan`.
    writer: Option<Writer>,
    shared: Arc<Shared>,
}

struct Shared {
    namespaces: Mutex<HashMap<String, Namespace>>,
    slots: Semaphore,
    /// Whether the last list failed. An outage is reported once.
    is_failing: AtomicBool,
}

/// The lists of one namespace.
#[derive(Default)]
struct Namespace {
    /// When the last list began.
    begun: Option<Instant>,
    /// Whether a task waits for the next list, or reads it.
    is_busy: bool,
    /// The questions, at most one of each object.
    questions: HashMap<Asker, Question>,
}

impl EventLists {
    /// Lists events with this client.
    pub fn new(writer: Option<Writer>) -> Self {
        let shared = Shared {
            namespaces: Mutex::default(),
            slots: Semaphore::new(MOST_AT_ONCE),
            is_failing: AtomicBool::new(false),
        };
        Self { writer, shared: Arc::new(shared) }
    }

    /// Asks the lists of a namespace, from the next one on, until the question is withdrawn. It replaces the former question of the
    /// same object.
    pub(super) fn ask(&self, namespace: &str, asker: Asker, question: Question) {
        let Some(writer) = &self.writer else { return };
        let now = Instant::now();
        let mut namespaces = self.shared.namespaces.lock();
        namespaces.retain(|_, known| known.is_busy || known.next().is_some_and(|next| next > now));
        let known = namespaces.entry(namespace.to_owned()).or_default();
        known.questions.insert(asker, question);
        if std::mem::replace(&mut known.is_busy, true) {
            return;
        }
        let at = known.next().unwrap_or(now);
        drop(namespaces);
        let (shared, writer, namespace) = (Arc::clone(&self.shared), writer.clone(), namespace.to_owned());
        tokio::spawn(async move { shared.serve(&namespace, at, &writer).await });
    }

    /// Withdraws the question of an object to the lists of a namespace.
    pub(super) fn withdraw(&self, namespace: &str, asker: &Asker) {
        let mut namespaces = self.shared.namespaces.lock();
        namespaces.get_mut(namespace).map(|known| known.questions.remove(asker));
    }
}

impl Namespace {
    /// The earliest time of the next list; `None` before the first one.
    fn next(&self) -> Option<Instant> {
        self.begun.map(|begun| begun + EVERY)
    }
}

impl Shared {
    /// Lists the events of a namespace from this time on, until no questions are left.
    async fn serve(&self, namespace: &str, mut at: Instant, writer: &Writer) {
        loop {
            sleep_until(at).await;
            // The semaphore is never closed.
            let slot = self.slots.acquire().await;
            let Some((questions, next)) = self.begin(namespace) else { return };
            at = next;
            // On the heap, because most of the time the task of a namespace sleeps.
            let read = timeout(DEADLINE, Box::pin(read(writer, namespace, &questions))).await;
            drop(slot);
            let read = read.unwrap_or_else(|_| Err(ApiError::transient("the events did not arrive in time")));
            self.note(namespace, read.as_ref().err());
            let Ok(mut newest) = read else { continue };
            for (position, (asker, question)) in questions.into_iter().enumerate() {
                let told = newest.remove(&position).map(Newest::told).unwrap_or_default();
                (question.deliver)(&asker.1, told);
            }
        }
    }

    /// Begins a list. Returns the questions and the time of the next list; `None` without a question.
    fn begin(&self, namespace: &str) -> Option<(Vec<(Asker, Question)>, Instant)> {
        let mut namespaces = self.namespaces.lock();
        let known = namespaces.get_mut(namespace)?;
        known.is_busy = !known.questions.is_empty();
        if !known.is_busy {
            return None;
        }
        let now = Instant::now();
        known.begun = Some(now);
        let questions = known.questions.iter().map(|(asker, question)| (asker.clone(), question.clone()));
        Some((questions.collect(), now + EVERY))
    }

    /// Reports once that events cannot be read, until they can be read again.
    fn note(&self, namespace: &str, error: Option<&ApiError>) {
        let was_failing = self.is_failing.swap(error.is_some(), Ordering::Relaxed);
        match error {
            Some(error) if was_failing => debug!(namespace, %error, "events cannot be read"),
            Some(error) => warn!(
                namespace, %error,
                "events cannot be read: causes that only events show, such as a volume that cannot be mounted, are not reported"
            ),
            None => {}
        }
    }
}

/// Reads a page of the events of a namespace. Returns the newest ones by the position of their question.
async fn read(
    writer: &Writer,
    namespace: &str,
    questions: &[(Asker, Question)],
) -> Result<HashMap<usize, Newest>, ApiError> {
    let mut found = Found::new(questions);
    let (mut bytes, path) = (0, EVENTS.path(namespace));
    let listed = writer.first_page(&path, MOST_EVENTS, DEADLINE, |piece| {
        let Piece::Whole(item) = piece else { return Ok(()) };
        bytes += item.len();
        if bytes > MOST_BYTES {
            return Err(ApiError::Invalid(format!("the events have more than {MOST_BYTES} bytes")));
        }
        // An item that is not an event is skipped.
        if let Ok(event) = serde_json::from_slice::<Event>(item) {
            found.take(&event);
        }
        Ok(())
    });
    let listed = listed.await;
    // The events before the limit count.
    if bytes > MOST_BYTES { Ok(found.newest) } else { listed.map(|()| found.newest) }
}

/// The events of a list for each question. Thousands of objects may wait in the namespace of personal volumes.
struct Found {
    /// The hashes of all questions, the earliest second of the events and the positions of the questions, in order.
    positions: Vec<(u64, i64, usize)>,
    newest: HashMap<usize, Newest>,
}

impl Found {
    fn new(questions: &[(Asker, Question)]) -> Self {
        let all = questions.iter().enumerate();
        let mut positions: Vec<(u64, i64, usize)> = all
            .flat_map(|(at, (_, question))| {
                question.about.iter().map(move |(hash, since)| (*hash, *since, at))
            })
            .collect();
        positions.sort_unstable();
        Self { positions, newest: HashMap::new() }
    }

    fn take(&mut self, event: &Event) {
        let at = event.at();
        let second = if at == Timestamp::MIN { i64::MAX } else { at.as_second() };
        let asked = |hash: u64| {
            let from = self.positions.partition_point(|(known, ..)| *known < hash);
            let same = self.positions[from..].iter().take_while(move |(known, ..)| *known == hash);
            // An older event is about a deleted object of the same name.
            same.filter(move |(_, since, _)| *since <= second).map(|(.., at)| *at)
        };
        let positions: BTreeSet<usize> = hashes(&event.involved_object).flat_map(asked).collect();
        for at in positions {
            self.newest.entry(at).or_default().take(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::fixtures::time;

    fn question(name: &str, about: &About) -> (Asker, Question) {
        let asker = ("instance", ObjectKey::new("tenant-ada", name));
        let deliver: Deliver = Arc::new(|_, _| {});
        (asker, Question::new(about, &deliver))
    }

    #[test]
    fn an_event_counts_for_every_wait_for_its_object() {
        let since = |name: &str| BTreeMap::from([(name.to_owned(), time("2026-01-01T00:00:30Z"))]);
        let questions = [
            question("a", &About { uids: BTreeSet::from(["u1".to_owned()]), ..About::default() }),
            question("b", &About { claims: since("disk"), ..About::default() }),
            question("c", &About { jobs: since("copy"), ..About::default() }),
        ];
        let heard_at = |second: u32, kind: &str, name: &str, uid: &str| {
            let mut found = Found::new(&questions);
            let event = json!({"involvedObject": {"kind": kind, "name": name, "uid": uid}, "type": "Warning",
                "reason": "FailedMount", "message": "no", "lastTimestamp": format!("2026-01-01T00:00:{second}Z")});
            found.take(&serde_json::from_value(event).expect("an event"));
            [0, 1, 2].map(|at| found.newest.contains_key(&at))
        };
        let heard = |kind: &str, name: &str, uid: &str| heard_at(30, kind, name, uid);
        assert_eq!(heard("Pod", "x", "u1"), [true, false, false]);
        assert_eq!(heard("Pod", "x", "u2"), [false, false, false], "of another uid");
        assert_eq!(heard("PersistentVolumeClaim", "disk", "u3"), [false, true, false]);
        assert_eq!(heard("Pod", "disk", "u3"), [false, false, false], "of another kind");
        assert_eq!(heard("Pod", "copy-x7f", "u3"), [false, false, true]);
        assert_eq!(heard("Pod", "copyist-x7f", "u3"), [false, false, false]);
        assert_eq!(heard("Pod", "u1", "u1-x"), [false, false, false], "a name is no uid");
        // These events are about deleted objects of the same names.
        assert_eq!(heard_at(29, "PersistentVolumeClaim", "disk", "u3"), [false, false, false]);
        assert_eq!(heard_at(29, "Pod", "copy-x7f", "u3"), [false, false, false]);
        assert_eq!(heard_at(29, "Pod", "x", "u1"), [true, false, false], "clocks may differ");
    }

    #[tokio::test(start_paused = true)]
    async fn a_namespace_is_listed_every_two_minutes_until_all_questions_are_withdrawn() {
        let lists = EventLists::new(None);
        let shared = &lists.shared;
        let [(a, first), (b, second)] = ["a", "b"].map(|name| question(name, &About::default()));
        let known = Namespace { is_busy: true, questions: HashMap::from([(a.clone(), first)]), begun: None };
        shared.namespaces.lock().insert("ns".to_owned(), known);
        let began = Instant::now();
        let (questions, next) = shared.begin("ns").expect("a question");
        assert_eq!((questions.len(), next), (1, began + EVERY));
        // Another object asks while the list arrives.
        shared.namespaces.lock().get_mut("ns").expect("known").questions.insert(b.clone(), second);
        lists.withdraw("ns", &a);
        assert_eq!(shared.begin("ns").map(|(questions, _)| questions.len()), Some(1));
        lists.withdraw("ns", &b);
        assert!(shared.begin("ns").is_none());
        assert!(!shared.namespaces.lock()["ns"].is_busy);
    }
}
