//! The users who are exempt from the rules for Tenants.

use super::review::UserInfo;

/// The users who are exempt from the rules for Tenants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bypass {
    /// The groups of administrators (`server.webhook.bypassGroups`), case-sensitive.
    pub groups: Vec<String>,
    /// The user name of this daemon, whose loops change Tenants themselves.
    pub own_user: String,
}

/// The role of the user who sent a request, as far as the rules distinguish roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requester {
    /// This daemon.
    Ourselves,
    /// A member of a group of administrators.
    Administrator,
    /// Any other user.
    Other,
}

impl Bypass {
    /// The role of a user.
    pub fn requester(&self, user: &UserInfo) -> Requester {
        if !self.own_user.is_empty() && user.username == self.own_user {
            Requester::Ourselves
        } else if user.groups.iter().any(|group| self.groups.contains(group)) {
            Requester::Administrator
        } else {
            Requester::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_the_own_account_are_compared_exactly() {
        let bypass = Bypass {
            groups: vec!["system:masters".to_owned(), "kubernetes:admin".to_owned()],
            own_user: "system:serviceaccount:crownlabs-system:crownlabs".to_owned(),
        };
        let requester = |username: &str, groups: &[&str]| {
            bypass.requester(&UserInfo {
                username: username.to_owned(),
                groups: groups.iter().map(|&group| group.to_owned()).collect(),
            })
        };
        let authenticated = "system:authenticated";
        for (username, groups, expected) in [
            ("ada", &["system:masters"][..], Requester::Administrator),
            ("ada", &[authenticated, "kubernetes:admin"], Requester::Administrator),
            ("ada", &[authenticated], Requester::Other),
            ("ada", &["System:Masters"], Requester::Other),
            ("ada", &["system:masters "], Requester::Other),
            ("ada", &["system"], Requester::Other),
            ("system:masters", &[], Requester::Other),
            (
                "system:serviceaccount:crownlabs-system:crownlabs",
                &["system:serviceaccounts"],
                Requester::Ourselves,
            ),
            ("system:serviceaccount:crownlabs-system:other", &["system:serviceaccounts"], Requester::Other),
            ("", &[], Requester::Other),
        ] {
            assert_eq!(requester(username, groups), expected, "{username} {groups:?}");
        }
    }

    #[test]
    fn an_empty_own_user_matches_no_request() {
        let nobody = UserInfo::default();
        assert_eq!(Bypass::default().requester(&nobody), Requester::Other);
    }
}
