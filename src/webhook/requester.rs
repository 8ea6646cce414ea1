//! Who is not held to the rules.

use super::review::UserInfo;

/// Those who are not held to the rules for Tenants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bypass {
    /// The groups of administrators, compared exactly.
    pub groups: Vec<String>,
    /// The account that this daemon runs as: its loops change Tenants, whatever groups it is in.
    pub own_user: String,
}

/// How the rules look upon whoever asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requester {
    /// The loops of this daemon.
    Ourselves,
    /// An administrator.
    Administrator,
    /// Anybody else.
    Other,
}

impl Bypass {
    /// How the rules look upon a user.
    #[must_use]
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
    fn an_unknown_own_account_is_nobody() {
        let nobody = UserInfo::default();
        assert_eq!(Bypass::default().requester(&nobody), Requester::Other);
    }
}
