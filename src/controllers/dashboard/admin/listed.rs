//! The pages of long lists: pure functions.

use crate::controllers::dashboard::ui::links::encoded;
use crate::runtime::error::ApiError;

/// The number of rows of a page.
pub const ROWS: usize = 100;

/// Returns the query of the page of a list with this token; the first page if it is empty.
pub fn continued(next: &str) -> String {
    if next.is_empty() { String::new() } else { format!("continue={}", encoded(next)) }
}

/// Whether a page could not be read because its token has expired: the API server keeps lists for five minutes.
pub fn is_expired(error: &ApiError, next: &str) -> bool {
    let is_about_it = |message: &str| message.contains("continue");
    !next.is_empty()
        && match error {
            ApiError::Transient { message, .. } | ApiError::Invalid(message) => is_about_it(message),
            _ => false,
        }
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn only_an_expired_token_leads_to_the_first_page() {
        let expired = ApiError::transient("The provided continue parameter is too old");
        assert!(is_expired(&expired, "t0") && !is_expired(&expired, ""));
        assert!(is_expired(&ApiError::Invalid("continue key is not valid".to_owned()), "t0"));
        assert!(!is_expired(&ApiError::transient("the API server is overloaded"), "t0"));
        assert!(!is_expired(&ApiError::Forbidden("continue".to_owned()), "t0"));
        assert_eq!([continued(""), continued("a=&b")], ["", "continue=a%3D%26b"]);
    }
}
