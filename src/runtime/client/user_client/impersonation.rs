//! Checks that the daemon's account may impersonate users, but only with constraints.

use super::{Credential, Right, UserClient};
use crate::api::names::GROUP_PREFIX;
use crate::runtime::ObjectKey;
use crate::runtime::error::ApiError;
use crate::runtime::plan::KindInfo;

/// The user that is impersonated to test it. Names of people never contain a colon.
const NOBODY: &str = "crownlabs:trial";
/// The verb that gives all permissions of the impersonated user.
const PLAIN: &str = "impersonate";
/// The kinds and resources that it applies to.
const IDENTITIES: [(&str, &str); 3] =
    [("User", "users"), ("Group", "groups"), ("ServiceAccount", "serviceaccounts")];

/// The reason why impersonation is not used.
#[derive(Debug, thiserror::Error)]
pub enum ImpersonationError {
    /// The account may impersonate without constraints.
    #[error(
        "the account of the dashboard has the verb {PLAIN} for {0}, which grants all of their permissions: remove it; \
         expected impersonate:user-info, and impersonate-on:user-info:<verb> for the kinds that the pages show"
    )]
    Unconstrained(&'static str),
    /// The account may not impersonate, or the API server does not support constrained impersonation.
    #[error(
        "the API server does not let the account of the dashboard impersonate users: {0}; it requires Kubernetes 1.36 and the \
         permissions that the chart grants with controllers.dashboard.identity: impersonate"
    )]
    Refused(String),
    /// The API server ignored the impersonation headers of the test request.
    #[error(
        "the API server, or a proxy in front of it, ignores impersonation: it identified {NOBODY} as {0}"
    )]
    Ignored(String),
    /// The API server returned another error or did not respond.
    #[error(transparent)]
    Api(#[from] ApiError),
}

impl UserClient {
    /// Checks that the API server supports constrained impersonation, and that the daemon's account may not impersonate
    /// without constraints.
    ///
    /// # Errors
    /// See [`ImpersonationError`].
    pub async fn check_impersonation(&self) -> Result<(), ImpersonationError> {
        let account = Credential::of_account("", []);
        let all = ObjectKey::new("", "");
        // The check covers all rules of the account, including rules for single users, and the decision of authorizers
        // that cannot list their rules.
        let rules = self.rules(&account, "default").await?;
        for (kind, plural) in IDENTITIES {
            let kind = KindInfo { group: "", version: "v1", kind, plural };
            let right = Right { verb: PLAIN, kind, subresource: "", object: &all };
            if rules.mention(PLAIN, "", plural) || self.may(&account, right).await? {
                return Err(ImpersonationError::Unconstrained(plural));
            }
        }
        let group = format!("{GROUP_PREFIX}trial");
        match self.name(&Credential::of_account(NOBODY, [group.as_str()])).await {
            Ok(name) if name == NOBODY => Ok(()),
            Ok(name) => Err(ImpersonationError::Ignored(name)),
            Err(ApiError::Forbidden(why)) => Err(ImpersonationError::Refused(why)),
            Err(error) => Err(error.into()),
        }
    }
}
