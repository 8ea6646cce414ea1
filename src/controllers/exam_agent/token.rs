//! The tokens that let a browser open a desktop without a login.
//!
//! A token is derived from the uid of its Instance, which is random and is shown only to clients that see URLs. So all
//! replicas know it, and nothing is stored.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};

use super::route;
use crate::api::Instance;

/// The parameter of the query with a token.
pub const PARAMETER: &str = "token";
/// The first part of the digested text, so that the digest has no other use.
const PURPOSE: &str = "crownlabs exam agent, token of ";

/// The token of an Instance.
pub fn of(instance: &Instance) -> String {
    let text = format!("{PURPOSE}{}", instance.uid());
    URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes()))
}

/// Whether the query of a request has the token of an Instance. The digests are compared, so the time of the comparison
/// reveals nothing about the token.
pub fn is_in(query: &str, instance: &Instance) -> bool {
    let given = route::labels(query).and_then(|mut parameters| parameters.remove(PARAMETER));
    let digested = |text: &str| digest(&SHA256, text.as_bytes());
    given.is_some_and(|given| digested(&given).as_ref() == digested(&of(instance)).as_ref())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::instance::InstanceKind;
    use crate::fixtures::object;

    #[test]
    fn only_the_token_of_the_instance_opens_it() {
        let [one, other] = ["u1", "u2"].map(|uid| object::<InstanceKind>(json!({"metadata": {"uid": uid}})));
        let token = of(&one);
        assert_eq!(token.len(), 43, "256 bits");
        for query in
            [format!("token={token}"), format!("a=b&token={token}"), format!("token={token}&token=x")]
        {
            assert!(is_in(&query, &one), "{query}");
            assert!(!is_in(&query, &other), "{query}");
        }
        for query in ["", "token", "token=", "token=true", "token=u1", "Token=x", "token=%ff"] {
            assert!(!is_in(query, &one), "{query}");
        }
        assert!(!is_in(&format!("token={token}="), &one));
        assert!(!is_in(&format!("TOKEN={token}"), &one));
    }
}
