//! The last content of each home page, which is shown again while the API server does not respond.

use std::sync::Arc;

use hashlink::LruCache;
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::controllers::dashboard::student::read::Own;

/// The maximum number of objects for all users together. Above it, the content of the user with the oldest page is dropped.
pub const MOST_OBJECTS: usize = 50_000;
/// The maximum number of users.
const MOST_USERS: usize = 5_000;

/// The time of a page, its content, and the number of its objects.
type Shown = (Timestamp, Arc<Own>, usize);

/// The last content of each home page, by the number of its user.
pub struct LastSeen {
    pages: Mutex<Pages>,
    limit: usize,
}

struct Pages {
    by_user: LruCache<u64, Shown>,
    objects: usize,
}

impl LastSeen {
    /// Creates an empty cache with a maximum number of objects.
    pub fn new(limit: usize) -> Self {
        Self { pages: Mutex::new(Pages { by_user: LruCache::new(MOST_USERS), objects: 0 }), limit }
    }

    /// Replaces the last content of a user.
    pub fn keep(&self, user: u64, now: Timestamp, own: &Arc<Own>) {
        let objects = own.known.objects();
        let mut pages = self.pages.lock();
        let before = pages.by_user.remove(&user);
        pages.forget(before);
        if objects > self.limit {
            return;
        }
        while pages.objects + objects > self.limit || pages.by_user.len() == MOST_USERS {
            let oldest = pages.by_user.remove_lru().map(|(_, shown)| shown);
            pages.forget(oldest);
        }
        pages.objects += objects;
        pages.by_user.insert(user, (now, Arc::clone(own), objects));
    }

    /// Returns the last content of a user, and its time.
    pub fn get(&self, user: u64) -> Option<(Timestamp, Arc<Own>)> {
        self.pages.lock().by_user.get(&user).map(|(at, own, _)| (*at, Arc::clone(own)))
    }
}

impl Pages {
    fn forget(&mut self, shown: Option<Shown>) {
        self.objects -= shown.map_or(0, |(_, _, objects)| objects);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::template::TemplateSpec;
    use crate::api::tenant::TenantSpec;
    use crate::api::{Template, Tenant};
    use crate::controllers::dashboard::student::Known;
    use crate::controllers::dashboard::student::read::NamespaceRules;
    use crate::runtime::client::Rules;

    /// A user with a number of Templates.
    fn own(templates: usize) -> Arc<Own> {
        let templates = (0..templates).map(|number| {
            Template::new(Some("workspace-tea"), &format!("vm-{number}"), TemplateSpec::default())
        });
        let tenant = Tenant::new(None, "ada", TenantSpec::default());
        let known = Known::new(tenant, Vec::new(), templates.collect(), Vec::new(), Vec::new());
        let rules = NamespaceRules { namespace: "tenant-ada".to_owned(), rules: Arc::new(Rules::default()) };
        Arc::new(Own { known, without_tenant: None, rules, topics: Vec::new() })
    }

    #[test]
    fn the_oldest_content_is_dropped_first() {
        let kept = LastSeen::new(10);
        let (at, four) = (Timestamp::UNIX_EPOCH, own(3));
        for user in [1, 2, 1, 3] {
            kept.keep(user, at, &four);
        }
        assert_eq!([1, 2, 3].map(|user| kept.get(user).is_some()), [true, false, true]);
        // Content above the limit is dropped, and so is the previous content of that user. Other users lose nothing.
        kept.keep(1, at, &own(10));
        assert_eq!([1, 3].map(|user| kept.get(user).is_some()), [false, true]);
        assert_eq!(kept.pages.lock().objects, 4);
    }
}
