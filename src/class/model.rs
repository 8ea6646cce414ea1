//! The terms of an action on a class.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use ring::digest;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::Value;

use crate::api::Instance;
use crate::api::instance::InstanceKind;
use crate::runtime::ObjectKey;
use crate::runtime::client::{Call, Patch};
use crate::runtime::error::ApiError;
use crate::runtime::plan::KindInfo;

/// How long an action can be continued. A page that is opened later shows its result only.
const LIFE: Duration = Duration::from_hours(24);
/// The letters and digits of identifiers and names (RFC 4648, base32).
const SIGNS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// The length of the random part of an identifier: 80 bits.
const RANDOM: usize = 16;
/// The length of the part of a machine's name that derives from the identifier and the person: 50 bits.
const SUFFIX: usize = 10;

/// What an action does with the machines of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Starts a machine for everyone: creates it, or starts the stopped one.
    Start,
    /// Stops the machines.
    Stop,
    /// Stops the machines and uploads their content.
    Collect,
    /// Deletes the machines.
    Delete,
}

impl Verb {
    /// All verbs.
    pub const ALL: &'static [Self] = &[Self::Start, Self::Stop, Self::Collect, Self::Delete];

    /// Returns the name, as in paths and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Collect => "collect",
            Self::Delete => "delete",
        }
    }

    /// Returns the verb with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|verb| verb.name() == name)
    }
}

/// The identifier of an action: the time of its creation, in seconds, and a random part. A later action is greater.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ActionId {
    seconds: i64,
    random: String,
}

impl ActionId {
    /// Creates an identifier; `None` if the system has no random numbers.
    pub fn new(now: Timestamp) -> Option<Self> {
        let mut bytes = [0; RANDOM];
        SystemRandom::new().fill(&mut bytes).ok()?;
        Some(Self { seconds: now.as_second(), random: signs(bytes) })
    }

    /// Reads an identifier as it is displayed.
    pub fn parse(text: &str) -> Option<Self> {
        let (random, seconds) = text.split_once('-')?;
        let is_random = random.len() == RANDOM && random.bytes().all(|byte| SIGNS.contains(&byte));
        let is_number = seconds.len() <= 11 && seconds.bytes().all(|byte| byte.is_ascii_digit());
        let seconds = seconds.parse().ok().filter(|_| is_random && is_number)?;
        Some(Self { seconds, random: random.to_owned() })
    }

    /// Returns the time of its creation.
    pub fn time(&self) -> Timestamp {
        Timestamp::from_second(self.seconds).unwrap_or(Timestamp::MAX)
    }

    /// Whether the action can be started or continued: it is at most a day old.
    pub fn is_open(&self, now: Timestamp) -> bool {
        let age = now.duration_since(self.time());
        age.unsigned_abs() <= LIFE
    }

    /// Returns the end of the name of a person's new machine.
    pub fn suffix(&self, person: &str) -> String {
        let digest = digest::digest(&digest::SHA256, format!("{self}/{person}").as_bytes());
        signs(digest.as_ref().iter().copied().take(SUFFIX))
    }
}

impl fmt::Display for ActionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.random, self.seconds)
    }
}

fn signs(bytes: impl IntoIterator<Item = u8>) -> String {
    bytes.into_iter().map(|byte| char::from(SIGNS[usize::from(byte % 32)])).collect()
}

/// The people of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum People {
    /// All students of the course.
    All,
    /// The students with these names.
    Named(BTreeSet<String>),
}

/// A student of a course.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The name of the Tenant.
    pub name: String,
    /// The first and last name.
    pub title: String,
    /// The namespace of the machines.
    pub namespace: String,
    /// Whether the namespace exists.
    pub has_namespace: bool,
}

/// The students of a course, and their machines of the course.
#[derive(Debug, Default)]
pub struct Class {
    /// The students, by their titles.
    pub people: Vec<Person>,
    /// The names of selected people who are no students of the course.
    pub strangers: Vec<String>,
    /// The machines of the course, by their namespaces.
    pub machines: BTreeMap<String, Vec<Instance>>,
    /// The namespaces whose machines could not be read, with the errors.
    pub unread: BTreeMap<String, ApiError>,
}

/// A change of a machine.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Creates it, with this body.
    Create(ObjectKey, Value),
    /// Changes it with a merge patch, in the version that was read.
    Patch(ObjectKey, Value),
    /// Deletes it if it has this uid.
    Delete(ObjectKey, String),
}

impl Change {
    /// The kind of the machines.
    pub const KIND: KindInfo = KindInfo::of::<InstanceKind>();

    /// Returns the machine.
    pub const fn key(&self) -> &ObjectKey {
        match self {
            Self::Create(key, _) | Self::Patch(key, _) | Self::Delete(key, _) => key,
        }
    }

    /// Returns the request.
    ///
    /// # Errors
    /// [`ApiError::Invalid`] if the key is invalid.
    pub fn call(&self) -> Result<Call, ApiError> {
        match self {
            Self::Create(key, body) => Call::create(Self::KIND, &key.namespace, body),
            Self::Patch(key, body) => Call::patch(Self::KIND, key, Patch::Merge(body)),
            Self::Delete(key, uid) => Call::delete(Self::KIND, key, uid),
        }
    }
}

/// The state of a row. It is computed from the cluster, and not stored.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// The action has changed the machine.
    Done,
    /// The action has requested the upload of the content, which is not complete.
    Running,
    /// Nothing has to change.
    Unchanged(Unchanged),
    /// The action will change the machine.
    ToDo(Change),
    /// The action cannot change the machine.
    Refused(Refusal),
}

/// Why nothing has to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unchanged {
    /// The machine is in the wanted state already.
    Already,
    /// The person has no machine.
    NoMachine,
    /// The machine was created, or changed by another action, after this action.
    Later,
}

/// Why the action cannot change the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The person is no student of the course.
    NotEnrolled,
    /// The person has no namespace.
    NoNamespace,
    /// The machine is being deleted.
    Leaving,
    /// The machine has no destination for its content.
    NoDestination,
    /// The upload has failed, with this message.
    NotUploaded(String),
    /// The API server or a webhook refuses the change, or the machines cannot be read.
    Api(ApiError),
}

/// The state of a person's machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The name of the person.
    pub person: String,
    /// The first and last name.
    pub title: String,
    /// The machine; `None` without one.
    pub machine: Option<ObjectKey>,
    /// The state.
    pub state: State,
}

/// The number of rows in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Changed by the action.
    pub done: usize,
    /// The upload is not complete.
    pub running: usize,
    /// Nothing has to change.
    pub unchanged: usize,
    /// Not changed yet.
    pub to_do: usize,
    /// Cannot be changed.
    pub refused: usize,
}

impl Totals {
    /// Counts rows.
    pub fn of(rows: &[Row]) -> Self {
        let mut totals = Self::default();
        for row in rows {
            *match row.state {
                State::Done => &mut totals.done,
                State::Running => &mut totals.running,
                State::Unchanged(_) => &mut totals.unchanged,
                State::ToDo(_) => &mut totals.to_do,
                State::Refused(_) => &mut totals.refused,
            } += 1;
        }
        totals
    }
}
