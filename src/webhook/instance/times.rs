//! The annotations of an Instance that hold the time of a request.

use jiff::Timestamp;

use crate::api::labels::{KEPT_AT, RESTARTED_AT};
use crate::api::shown::{MOST, cut};
use crate::webhook::decision::Denial;
use crate::webhook::review::Request;

/// Refuses to set an annotation to a text that is not a time. A stored one may stay.
pub fn check(request: &Request) -> Result<(), Denial> {
    if !request.is_write() {
        return Ok(());
    }
    for key in [KEPT_AT, RESTARTED_AT] {
        let [old, new] = [&request.old_object, &request.object]
            .map(|object| object["metadata"]["annotations"][key].as_str().unwrap_or_default());
        if new != old && !new.is_empty() && new.parse::<Timestamp>().is_err() {
            return Err(Denial::malformed(format!(
                "the annotation {key} must be a time such as 2026-11-20T10:00:00Z, not {:?}",
                cut(new, MOST)
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::webhook::fixture::{instance, merged, request};

    #[test]
    fn an_annotation_that_holds_a_time_has_a_valid_one() {
        let with = |key: &str, text: Option<&str>| {
            let object = instance("tenant-ada", "vm", "workspace-tea/small", true);
            merged(object, &json!({"metadata": {"annotations": {key: text}}}))
        };
        let refused = |old: Value, new: Value| check(&request("ada", "instances", old, new)).is_err();
        for key in [KEPT_AT, RESTARTED_AT] {
            for (old, new, is_refused) in [
                (None, Some("2026-11-20T10:00:00Z"), false),
                (None, Some("2026-11-20T10:00:00+01:00"), false),
                (None, Some("now"), true),
                (None, Some("2026-11-20"), true),
                (None, Some(""), false),
                (Some("now"), Some("now"), false),
                (Some("now"), Some("soon"), true),
                (Some("now"), None, false),
            ] {
                assert_eq!(refused(with(key, old), with(key, new)), is_refused, "{key}: {old:?}, {new:?}");
            }
            assert!(refused(Value::Null, with(key, Some("now"))), "{key}");
        }
        assert!(!refused(with("another", None), with("another", Some("now"))));
    }
}
