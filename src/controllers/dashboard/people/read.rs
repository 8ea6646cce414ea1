//! The reads of the pages about people.

use futures::join;

use crate::api::instance::InstanceKind;
use crate::api::names::{CanonicalName, check_dns_label};
use crate::api::template::TemplateKind;
use crate::api::tenant::TenantKind;
use crate::api::why::Event;
use crate::api::{Instance, Template, Tenant, labels};
use crate::controllers::dashboard::course::Course;
use crate::controllers::dashboard::history::model::{Recorded, Told};
use crate::controllers::dashboard::history::read::events_of_cluster;
use crate::controllers::dashboard::live::broadcast::Topic;
use crate::controllers::dashboard::student::read::Reads;
use crate::runtime::ObjectKey;
use crate::runtime::error::ApiError;
use crate::runtime::plan::KindInfo;

/// A person, with the objects that their page needs.
pub struct OnePerson {
    /// The course.
    pub course: Course,
    /// The person.
    pub tenant: Tenant,
    /// The Instances of their namespace; `None` if the user may not list them.
    pub instances: Option<Vec<Instance>>,
    /// The Templates of the course.
    pub templates: Vec<Template>,
    /// The fields that tell the history of the person.
    pub recorded: Recorded,
    /// The events about the person, or why they are unknown; empty if the user may not read them.
    pub events: Result<Vec<Event>, String>,
}

impl Reads<'_> {
    /// Reads the people of a course: the Tenants with the label of their role, which the daemon sets. Their spec decides the
    /// role.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn people(&self, name: &str) -> Result<(Course, Vec<Tenant>), ApiError> {
        let mut course = self.course(name).await?;
        let key = labels::workspace_role(name).ok_or_else(|| {
            ApiError::NotFound(format!(
                "the name of the course {name:?} is too long for a label of its people"
            ))
        })?;
        let query = format!("&labelSelector={}", key.replace('/', "%2F"));
        let listed = self.users.client.list::<TenantKind>(&self.user.credential, "", &query);
        let tenants = Box::pin(listed).await?;
        course.own.topics.push(Topic::Class(name.to_owned()));
        Ok((course, tenants))
    }

    /// Reads a person.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn person(&self, course: &str, user: &str) -> Result<OnePerson, ApiError> {
        let mut course = self.course(course).await?;
        let key = ObjectKey::new("", user);
        let namespace = CanonicalName::of(user).tenant_namespace();
        let (client, credential) = (&self.users.client, &self.user.credential);
        let tenant = client.get_as::<Told<TenantKind>>(credential, KindInfo::of::<TenantKind>(), &key);
        let (tenant, instances, templates) =
            join!(tenant, self.instances_of(&namespace), self.list::<TemplateKind>(&course.namespace));
        let Told { object: tenant, recorded } = tenant?;
        let events = events_of_cluster(self.users, self.user, &course.rules.rules, tenant.uid()).await;
        course.own.topics.extend([Topic::Tenant(user.to_owned()), Topic::Instances(namespace)]);
        let (instances, templates) = (instances?, templates?);
        Ok(OnePerson { course, tenant, instances, templates, recorded, events })
    }

    /// Lists the Instances of a namespace; `None` if the user may not list them. A name that no namespace can have has none.
    async fn instances_of(&self, namespace: &str) -> Result<Option<Vec<Instance>>, ApiError> {
        if check_dns_label(namespace).is_err() {
            return Ok(Some(Vec::new()));
        }
        match self.users.client.list::<InstanceKind>(&self.user.credential, namespace, "").await {
            Ok(instances) => Ok(Some(instances)),
            Err(ApiError::Forbidden(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
