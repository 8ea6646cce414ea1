//! The read of a course.

use std::sync::Arc;

use futures::join;

use super::Course;
use crate::api::names::check_dns_label;
use crate::api::why::Event;
use crate::api::workspace::WorkspaceKind;
use crate::controllers::dashboard::history::model::Told;
use crate::controllers::dashboard::history::read::events_of_cluster;
use crate::controllers::dashboard::live::broadcast::Topic;
use crate::controllers::dashboard::student::Known;
use crate::controllers::dashboard::student::read::{Own, Reads, namespace_of};
use crate::runtime::ObjectKey;
use crate::runtime::error::ApiError;
use crate::runtime::plan::KindInfo;

impl Reads<'_> {
    /// Reads a course.
    ///
    /// # Errors
    /// The error of the API server; [`ApiError::NotFound`] also for a name that no course can have.
    pub async fn course(&self, name: &str) -> Result<Course, ApiError> {
        if check_dns_label(name).is_err() {
            return Err(ApiError::NotFound(format!("no course can have the name {name:?}")));
        }
        let key = ObjectKey::new("", name);
        let (client, credential) = (&self.users.client, &self.user.credential);
        let workspace =
            client.get_as::<Told<WorkspaceKind>>(credential, KindInfo::of::<WorkspaceKind>(), &key);
        let (workspace, tenant) = join!(workspace, self.tenant());
        let (Told { object: workspace, recorded }, (tenant, without_tenant)) = (workspace?, tenant?);
        let namespace = namespace_of(name, std::slice::from_ref(&workspace));
        let rules = self.rules(&namespace).await?;
        let topics = vec![Topic::Tenant(self.user.name.clone()), Topic::Workspaces];
        let known = Known::new(tenant, Vec::new(), Vec::new(), vec![workspace.clone()], Vec::new());
        let own = Own { known, without_tenant, rules: rules.clone(), topics };
        Ok(Course { own, workspace: Arc::new(workspace), namespace, rules, recorded })
    }

    /// Reads the events about a course; empty if the user may not list them.
    ///
    /// # Errors
    /// The message of the API server's error.
    pub async fn events_of(&self, course: &Course) -> Result<Vec<Event>, String> {
        events_of_cluster(self.users, self.user, &course.rules.rules, course.workspace.uid()).await
    }
}
