//! What the first pages have shown last, to be shown again while the API server does not answer.

use std::sync::Arc;

use hashlink::LruCache;
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::controllers::dashboard::read::Own;

/// The most objects that are kept for all users together. Of more, those of the user who has looked longest ago are not.
const MOST_OBJECTS: usize = 50_000;
/// The most users, who may have nothing.
const MOST_USERS: usize = 5_000;

/// When something was shown, what it was, and how many objects it has.
type Shown = (Timestamp, Arc<Own>, usize);

/// What was shown last, by the number of its user.
pub struct Kept {
    pages: Mutex<Pages>,
    limit: usize,
}

struct Pages {
    by_user: LruCache<u64, Shown>,
    objects: usize,
}

impl Default for Kept {
    fn default() -> Self {
        Self::up_to(MOST_OBJECTS)
    }
}

impl Kept {
    /// Up to so many objects.
    fn up_to(limit: usize) -> Self {
        Self { pages: Mutex::new(Pages { by_user: LruCache::new(MOST_USERS), objects: 0 }), limit }
    }

    /// Keeps what a user was shown, in place of what he was shown before.
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

    /// What a user was shown, and when.
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
    use crate::controllers::dashboard::page::Known;
    use crate::controllers::dashboard::read::NamespaceRules;
    use crate::runtime::client::Rules;

    /// A user with so many Templates and a Tenant.
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
    fn those_who_have_looked_longest_ago_make_room() {
        let kept = Kept::up_to(10);
        let (at, four) = (Timestamp::UNIX_EPOCH, own(3));
        for user in [1, 2, 1, 3] {
            kept.keep(user, at, &four);
        }
        assert_eq!([1, 2, 3].map(|user| kept.get(user).is_some()), [true, false, true]);
        // What is too much for all is not kept, nor what was shown before it; others lose nothing by it.
        kept.keep(1, at, &own(10));
        assert_eq!([1, 3].map(|user| kept.get(user).is_some()), [false, true]);
        assert_eq!(kept.pages.lock().objects, 4);
    }
}
