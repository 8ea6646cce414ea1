//! The reads of a class with the token of its reader: lists the first time, and then only the objects that have changed.

use std::sync::Arc;
use std::time::Duration;

use futures::join;
use futures::stream::{self, StreamExt};
use jiff::Timestamp;
use tokio::time::{Instant, timeout_at};

use super::filter::Filter;
use super::memory::{Class, Memory, Seen, Unread};
use super::model::Table;
use super::objects::{Found, Member};
use crate::api::instance::InstanceKind;
use crate::api::labels;
use crate::api::template::TemplateKind;
use crate::api::tenant::TenantKind;
use crate::api::text::Text;
use crate::controllers::dashboard::live::broadcast::{Broadcast, Topic};
use crate::controllers::dashboard::student::read::{Reads, or_none};
use crate::runtime::ObjectKey;
use crate::runtime::error::ApiError;
use crate::runtime::plan::KindInfo;

const TENANT: KindInfo = KindInfo::of::<TenantKind>();
const INSTANCE: KindInfo = KindInfo::of::<InstanceKind>();
/// The maximum number of concurrent requests of a page.
const AT_ONCE: usize = 32;
/// The maximum number of changed objects that are read one by one. Above it, the class is listed again.
const MOST_CHANGED: usize = 128;
/// The maximum time for the lists of namespaces in one request. The page then shows what is known, and its next update
/// continues.
const MOST_TIME: Duration = Duration::from_secs(3);

/// A request for a class.
pub struct Asked<'a> {
    /// The name of the course.
    pub course: &'a str,
    /// The part of the class that is shown.
    pub filter: &'a Filter,
    /// The time of the request.
    pub now: Timestamp,
    /// Whether an open page asks for an update.
    pub is_update: bool,
    /// Whether all machines are needed, and not only those that are shown first.
    pub is_whole: bool,
    /// The classes as they were last read.
    pub memory: &'a Memory,
    /// The changes since then.
    pub broadcast: &'a Broadcast,
}

impl Reads<'_> {
    /// Reads a class.
    ///
    /// # Errors
    /// The error of the API server: [`ApiError::Forbidden`] also if the user may not list Tenants.
    pub async fn class(&self, asked: &Asked<'_>) -> Result<Arc<Seen>, ApiError> {
        let mut course = self.course(asked.course).await?;
        let (templates, class) =
            join!(self.list::<TemplateKind>(&course.namespace), Box::pin(self.people_and_machines(asked)));
        let (templates, class) = (templates?, class?);
        let topics = [Topic::Class(asked.course.to_owned()), Topic::Templates(course.namespace.clone())];
        course.own.topics.extend(topics);
        let mut seen = Seen { at: asked.now, course, templates, class };
        Box::pin(self.count(&mut seen, asked)).await?;
        let seen = Arc::new(seen);
        asked.memory.keep(self.user.number, &seen);
        if seen.class.missing().next().is_some() {
            // The page updates at once, which reads more of it.
            asked.broadcast.changed(Topic::Tenant(self.user.name.clone()));
        }
        Ok(seen)
    }

    async fn people_and_machines(&self, asked: &Asked<'_>) -> Result<Class, ApiError> {
        let Asked { course, broadcast, .. } = asked;
        let position = broadcast.position(course);
        let known = asked.memory.get(self.user.number, course);
        let recent = known.as_ref().filter(|seen| asked.is_update && seen.class.is_recent());
        if let Some(seen) = recent
            && let Some(keys) = broadcast.changed_after(course, seen.class.position)
            && keys.len() <= MOST_CHANGED
        {
            return self.changed(course, Class { position, ..seen.class.clone() }, keys).await;
        }
        let is_wide = known.is_none_or(|seen| seen.class.is_wide);
        self.listed(course, position, is_wide).await
    }

    /// Lists the people of a course, and the machines if the user may list those of all namespaces at once.
    async fn listed(&self, course: &str, position: u64, is_wide: bool) -> Result<Class, ApiError> {
        let mut class = Class::new(position);
        // No Tenant can have a role in a course whose name is too long.
        let Some(role) = labels::workspace_role(course) else { return Ok(class) };
        let query = format!("labelSelector={}%3Duser", role.replace('/', "%2F"));
        let people = self.users.client.list_as::<Member>(&self.user.credential, TENANT, "", &query);
        let (people, machines) = join!(people, self.machines(course, is_wide));
        let (people, machines) = (people?, machines?);
        let students = people.into_iter().filter(|member| member.is_student_of(course));
        class.people = students.map(|member| (member.name, member.person)).collect();
        class.is_wide = machines.is_some();
        match machines {
            Some(found) => class.add(course, found),
            None => {
                class.unread =
                    class.people.values().map(|one| (one.namespace.clone(), Unread::NotYet)).collect();
            }
        }
        Ok(class)
    }

    /// Lists the machines of all namespaces; `None` if the user may not, or if they are too many.
    async fn machines(&self, course: &str, is_wide: bool) -> Result<Option<Vec<Found>>, ApiError> {
        if !is_wide {
            return Ok(None);
        }
        let query = machines_of(course);
        match self.users.client.list_as::<Found>(&self.user.credential, INSTANCE, "", &query).await {
            Ok(found) => Ok(Some(found)),
            Err(ApiError::Forbidden(_) | ApiError::TooLong(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the objects of a class that have changed.
    async fn changed(&self, course: &str, mut class: Class, keys: Vec<ObjectKey>) -> Result<Class, ApiError> {
        let (client, credential) = (&self.users.client, &self.user.credential);
        let (people, machines): (Vec<_>, Vec<_>) = keys.into_iter().partition(|key| key.namespace.is_empty());
        let reads = people.into_iter().map(|key| async move {
            let found = client.get_as::<Member>(credential, TENANT, &key).await;
            (key, found)
        });
        let mut reads = stream::iter(reads).buffer_unordered(AT_ONCE);
        while let Some((key, found)) = reads.next().await {
            match found {
                Ok(member) if member.is_student_of(course) => class.join(member),
                Ok(_) | Err(ApiError::NotFound(_)) => class.leave(&key.name),
                Err(error) => return Err(error),
            }
        }
        let machines: Vec<ObjectKey> =
            machines.into_iter().filter(|key| class.reads(&key.namespace)).collect();
        let reads = machines.into_iter().map(|key| async move {
            let found = client.get_as::<Found>(credential, INSTANCE, &key).await;
            (key, found)
        });
        let mut reads = stream::iter(reads).buffer_unordered(AT_ONCE);
        while let Some((key, found)) = reads.next().await {
            class.machines.remove(&key);
            class.add(course, or_none(found)?);
        }
        Ok(class)
    }

    /// Lists the machines of the namespaces that were not read yet: those of the shown rows, and the others if the page
    /// needs them.
    async fn count(&self, seen: &mut Seen, asked: &Asked<'_>) -> Result<(), ApiError> {
        if seen.class.missing().next().is_none() {
            return Ok(());
        }
        let until = Instant::now() + MOST_TIME;
        let table = Table::of(seen, asked.filter);
        let shown = table.rows.iter().map(|row| row.person.namespace.clone());
        let shown: Vec<Text> = shown.filter(|namespace| seen.class.is_missing(namespace)).collect();
        self.read_namespaces(&mut seen.class, asked.course, shown, until).await?;
        if asked.is_whole || asked.is_update || asked.filter.needs_all() {
            let others: Vec<Text> = seen.class.missing().cloned().collect();
            self.read_namespaces(&mut seen.class, asked.course, others, until).await?;
        }
        Ok(())
    }

    async fn read_namespaces(
        &self,
        class: &mut Class,
        course: &str,
        namespaces: Vec<Text>,
        until: Instant,
    ) -> Result<(), ApiError> {
        let (client, credential, query) = (&self.users.client, &self.user.credential, machines_of(course));
        let query = query.as_str();
        let reads = namespaces.into_iter().map(|namespace| async move {
            let found = client.list_as::<Found>(credential, INSTANCE, &namespace, query).await;
            (namespace, found)
        });
        let mut reads = stream::iter(reads).buffer_unordered(AT_ONCE);
        while let Ok(Some((namespace, found))) = timeout_at(until, reads.next()).await {
            let unread = match found {
                Ok(found) => {
                    class.add(course, found);
                    None
                }
                Err(ApiError::TooLong(_)) => Some(Unread::TooMany),
                // No namespace can have the name, or it does not exist, or the user may not read it.
                Err(ApiError::Forbidden(_) | ApiError::NotFound(_) | ApiError::Invalid(_)) => {
                    Some(Unread::Forbidden)
                }
                Err(error) => return Err(error),
            };
            match unread {
                Some(why) => class.unread.insert(namespace, why),
                None => class.unread.remove(&namespace),
            };
        }
        Ok(())
    }
}

/// Returns the query for the Instances that count against a course.
fn machines_of(course: &str) -> String {
    format!("labelSelector={}%3D{course}", labels::WORKSPACE.replace('/', "%2F"))
}
