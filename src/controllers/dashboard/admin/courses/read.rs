//! The reads of the pages of courses.

use futures::join;

use super::{Course, Courses};
use crate::api::instance::InstanceKind;
use crate::api::labels;
use crate::api::shared_volume::SharedVolumeKind;
use crate::api::template::TemplateKind;
use crate::api::tenant::TenantKind;
use crate::api::workspace::{Workspace, WorkspaceKind};
use crate::controllers::dashboard::admin::listed::{ROWS, continued, is_expired};
use crate::controllers::dashboard::admin::read::{Count, part};
use crate::controllers::dashboard::student::read::{Own, Reads, namespace_of};
use crate::controllers::dashboard::ui::links::encoded;
use crate::runtime::ObjectKey;
use crate::runtime::error::ApiError;
use crate::runtime::plan::KindInfo;

impl Reads<'_> {
    /// Reads a page of the courses. An expired token leads to the first page.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn all_courses(&self, namespace: &str, next: &str) -> Result<(Own, Courses), ApiError> {
        let kind = KindInfo::of::<WorkspaceKind>();
        let query = continued(next);
        let page = self.one_page::<Workspace>(kind, "", &query, ROWS);
        let (own, page) = join!(self.administrator(namespace), page);
        let page = match page {
            Err(error) if is_expired(&error, next) => self.one_page(kind, "", "", ROWS).await?,
            page => page?,
        };
        Ok((own?, Courses { rows: page.objects, next: page.next }))
    }

    /// Reads a course, and counts what its deletion would lose.
    ///
    /// # Errors
    /// The error of the API server; [`ApiError::NotFound`] also for a name that no course can have.
    pub async fn one_course(&self, namespace: &str, name: &str) -> Result<(Own, Course), ApiError> {
        let key = ObjectKey::new("", name);
        key.check().map_err(|error| ApiError::NotFound(error.to_string()))?;
        let workspace = self.users.client.get::<WorkspaceKind>(&self.user.credential, &key);
        let (own, workspace) = join!(self.administrator(namespace), workspace);
        let (own, workspace) = (own?, workspace?);
        let of_course = namespace_of(name, std::slice::from_ref(&workspace));
        let selected = |label: &str| format!("labelSelector={}", encoded(label));
        let people = async {
            match labels::workspace_role(name) {
                Some(role) => self.count_selected(KindInfo::of::<TenantKind>(), "", &selected(&role)).await,
                // Such a name has no label, so there are no enrolments to select.
                None => Ok(Count { count: 0, is_more: true }),
            }
        };
        let of_machines = selected(&format!("{}={name}", labels::WORKSPACE));
        let (people, templates, volumes, machines) = join!(
            people,
            self.count_selected(KindInfo::of::<TemplateKind>(), &of_course, ""),
            self.count_selected(KindInfo::of::<SharedVolumeKind>(), &of_course, ""),
            self.count_selected(KindInfo::of::<InstanceKind>(), "", &of_machines),
        );
        let (people, templates) = (part(people)?, part(templates)?);
        let (volumes, machines) = (part(volumes)?, part(machines)?);
        Ok((own, Course { workspace, people, templates, volumes, machines }))
    }
}
