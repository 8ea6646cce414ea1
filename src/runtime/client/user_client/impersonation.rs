//! Whether the account of the daemon may impersonate users, and no more than that.

use super::{Credential, Right, UserClient};
use crate::api::names::GROUP_PREFIX;
use crate::runtime::ObjectKey;
use crate::runtime::error::ApiError;
use crate::runtime::plan::KindInfo;

/// Who is impersonated for a trial. A colon is in no name of people.
const NOBODY: &str = "crownlabs:trial";
/// The verb that gives the impersonated user all his rights.
const PLAIN: &str = "impersonate";
/// What it is about.
const IDENTITIES: [(&str, &str); 3] =
    [("User", "users"), ("Group", "groups"), ("ServiceAccount", "serviceaccounts")];

/// Why users are not impersonated.
#[derive(Debug, thiserror::Error)]
pub enum ImpersonationError {
    /// The account may impersonate without a constraint.
    #[error(
        "the account of the dashboard has the verb {PLAIN} for {0}, with which it could do whatever they may do: take it away; \
         expected impersonate:user-info, and impersonate-on:user-info:<verb> for the kinds of the pages"
    )]
    Unconstrained(&'static str),
    /// The account may not impersonate, or the API server does not know how to constrain it.
    #[error(
        "the API server does not let the account of the dashboard impersonate users: {0}; that takes Kubernetes 1.36, and the \
         rights that the chart gives with controllers.dashboard.identity: impersonate"
    )]
    Refused(String),
    /// The trial was answered as if nobody was impersonated.
    #[error("the API server, or a proxy before it, ignores impersonation: it takes {NOBODY} for {0}")]
    Ignored(String),
    /// The API server does not answer.
    #[error(transparent)]
    Api(#[from] ApiError),
}

impl UserClient {
    /// Proves that the API server knows constrained impersonation, and that the account of the daemon has no other one.
    ///
    /// # Errors
    /// See [`ImpersonationError`].
    pub async fn check_impersonation(&self) -> Result<(), ImpersonationError> {
        let account = Credential::of_account("", []);
        let all = ObjectKey::new("", "");
        // All rules of the account, also about single users, and the decision of authorizers that cannot list their rules.
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
