//! The reads of Announcements: those of courses with the token of the user, those for everyone from the watch.

use std::sync::Arc;

use futures::future::join_all;

use super::model::sorted;
use crate::api::Announcement;
use crate::api::announcement::AnnouncementKind;
use crate::controllers::dashboard::live::broadcast::Topic;
use crate::controllers::dashboard::live::watches::Announced;
use crate::controllers::dashboard::student::read::{Own, Reads};
use crate::runtime::error::ApiError;
use crate::runtime::plan::KindInfo;

/// The maximum number of Announcements of a namespace that are read.
const MOST_READ: usize = 50;

impl Reads<'_> {
    /// Reads the Announcements of a namespace, the newest one first.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn announcements(&self, namespace: &str) -> Result<Vec<Arc<Announcement>>, ApiError> {
        let kind = KindInfo::of::<AnnouncementKind>();
        let page = self
            .users
            .client
            .page_as::<Announcement>(&self.user.credential, kind, namespace, "", MOST_READ)
            .await?;
        Ok(sorted(page.objects.into_iter().map(Arc::new)))
    }

    /// Adds the Announcements of the first page to the objects of a user: those for everyone, and those of the namespaces
    /// whose Templates the page shows. Only namespaces with Announcements are read.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn announce(&self, announced: &Announced, own: &mut Own) -> Result<(), ApiError> {
        let namespace_of = |topic: &Topic| {
            let Topic::Templates(namespace) = topic else { return None };
            Some(namespace.clone())
        };
        let namespaces: Vec<String> = own.topics.iter().filter_map(namespace_of).collect();
        let told = namespaces.iter().filter(|namespace| announced.is_in(namespace));
        let lists = join_all(told.map(|namespace| self.announcements(namespace))).await;
        let mut of_courses = Vec::new();
        for list in lists {
            match list {
                Ok(list) => of_courses.extend(list),
                // The user has a role in the course, and no binding yet.
                Err(ApiError::NotFound(_) | ApiError::Forbidden(_)) => {}
                Err(error) => return Err(error),
            }
        }
        own.topics.extend(namespaces.into_iter().map(Topic::Announcements));
        own.topics.push(Topic::ForEveryone);
        own.known.announce([sorted(announced.for_everyone.objects()), sorted(of_courses)].concat());
        Ok(())
    }
}
