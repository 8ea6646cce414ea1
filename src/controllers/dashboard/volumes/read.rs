//! The reads of the page.

use futures::join;

use crate::api::Template;
use crate::api::shared_volume::{SharedVolume, SharedVolumeKind};
use crate::api::template::TemplateKind;
use crate::controllers::dashboard::course::Course;
use crate::controllers::dashboard::live::broadcast::Topic;
use crate::controllers::dashboard::student::read::Reads;
use crate::runtime::error::ApiError;

/// A course with its shared volumes.
pub struct OfCourse {
    /// The course.
    pub course: Course,
    /// Its volumes.
    pub volumes: Vec<SharedVolume>,
    /// Its Templates.
    pub templates: Vec<Template>,
}

impl Reads<'_> {
    /// Reads the shared volumes of a course.
    ///
    /// # Errors
    /// The error of the API server: [`ApiError::Forbidden`] also if the user may not list the volumes.
    pub async fn volumes(&self, name: &str) -> Result<OfCourse, ApiError> {
        let mut course = self.course(name).await?;
        let (client, credential) = (&self.users.client, &self.user.credential);
        let volumes = client.list::<SharedVolumeKind>(credential, &course.namespace, "");
        let (volumes, templates) = join!(volumes, self.list::<TemplateKind>(&course.namespace));
        let (volumes, templates) = (volumes?, templates?);
        let namespace = &course.namespace;
        let topics = [Topic::Volumes(namespace.clone()), Topic::Templates(namespace.clone())];
        course.own.topics.extend(topics);
        Ok(OfCourse { course, volumes, templates })
    }
}
