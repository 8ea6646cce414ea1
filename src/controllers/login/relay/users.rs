//! The number of requests of each user that the relay serves at the same time.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The maximum number of requests of a user, with open `WebSockets`. A page loads about ten things at a time.
const MOST: usize = 64;

/// The users with requests. Clones share them.
#[derive(Clone, Default)]
pub struct Users(Arc<Mutex<HashMap<String, usize>>>);

impl Users {
    /// Counts a request until the result is dropped; `None` if there are too many.
    pub fn enter(&self, user: &str) -> Option<Entered> {
        let mut users = self.0.lock();
        let number = users.entry(user.to_owned()).or_default();
        if *number >= MOST {
            return None;
        }
        *number += 1;
        Some(Entered { users: self.clone(), user: user.to_owned() })
    }
}

/// A request of a user.
pub struct Entered {
    users: Users,
    user: String,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut users = self.users.0.lock();
        if let Some(number) = users.get_mut(&self.user) {
            *number -= 1;
            if *number == 0 {
                users.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_a_limit_that_others_do_not_share() {
        let users = Users::default();
        let mut kim: Vec<Entered> = (0..MOST).filter_map(|_| users.enter("kim")).collect();
        assert_eq!(kim.len(), MOST);
        assert!(users.enter("kim").is_none());
        let lee = users.enter("lee");
        assert!(lee.is_some());
        kim.pop();
        assert!(users.enter("kim").is_some_and(|again| {
            drop(again);
            true
        }));
        drop((kim, lee));
        assert!(users.0.lock().is_empty(), "no user is left");
    }
}
