//! The receipt of an upload: one JSON object with the name, the size and the SHA-256 of the file, which the uploader
//! leaves as its termination message. The message is a text of a container, so its size and its content are checked.

use super::children::CONTAINER;
use crate::api::instance::Receipt;
use crate::api::shown::is_control;
use crate::kinds::PodOfJob;

/// The maximum size of a termination message in bytes, which is the limit of the kubelet.
const LONGEST: usize = 4096;
/// The maximum length of the name of a file in bytes, as in file systems.
const LONGEST_NAME: usize = 255;

/// Returns the receipt in the pods of a Job that have succeeded: the last one, because a Job can start a pod again on
/// another node. `None` if the uploader leaves no valid receipt.
pub fn receipt(succeeded: &[&PodOfJob]) -> Option<Receipt> {
    let containers = succeeded.iter().flat_map(|pod| pod.status.container_statuses.iter());
    let ended = containers.filter(|container| container.name == CONTAINER);
    let ended = ended.filter_map(|container| container.state.terminated.as_ref());
    let last =
        ended.filter(|end| end.exit_code == 0).max_by_key(|end| end.finished_at.as_ref().map(|time| time.0));
    parse(&last?.message)
}

fn parse(message: &str) -> Option<Receipt> {
    if message.len() > LONGEST || !message.trim_start().starts_with('{') {
        return None;
    }
    let receipt: Receipt = serde_json::from_str(message).ok()?;
    let Receipt { name, size, sha256 } = &receipt;
    let is_name = (1..=LONGEST_NAME).contains(&name.len());
    let is_clean = !name.contains(|character: char| character == '/' || is_control(character));
    let is_digest =
        sha256.len() == 64 && sha256.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (is_name && is_clean && *size > 0 && is_digest).then_some(receipt)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::fixtures::object;
    use crate::kinds::PodOfJobKind;

    const DIGEST: &str = "ba27c9bd6b63ef815428da0c0d058a7e4e6c1eb08770f27438b6b441d27db8f5";

    #[test]
    fn a_complete_message_is_a_receipt() {
        let wanted = Receipt { name: "exam.1.zip".to_owned(), size: 3_000_889, sha256: DIGEST.to_owned() };
        let text = format!(r#"{{"name":"exam.1.zip","size":3000889,"sha256":"{DIGEST}"}}"#);
        assert_eq!(parse(&text), Some(wanted.clone()));
        assert_eq!(parse(&format!("{text}\n")), Some(wanted.clone()), "as `echo` writes it");
        let more = text.replace('{', r#"{"version": 2, "#);
        assert_eq!(parse(&more), Some(wanted), "a newer uploader");
    }

    #[test]
    fn any_other_message_is_no_receipt() {
        let with = |name: &str, size: Value, sha256: &str| {
            json!({"name": name, "size": size, "sha256": sha256}).to_string()
        };
        let upper = DIGEST.to_uppercase();
        for message in [
            String::new(),
            "uploaded".to_owned(),
            "{}".to_owned(),
            "[\"a.zip\", 1, \"\"]".to_owned(),
            format!(r#"["a.zip", 1, "{DIGEST}"]"#),
            format!(r#"{{"name":"a.zip","size":1,"sha256":"{DIGEST}""#),
            format!(r#"{{"name":"a.zip","size":1,"sha256":"{DIGEST}"}}{{}}"#),
            format!(r#"{{"size":1,"sha256":"{DIGEST}"}}"#),
            with("", json!(1), DIGEST),
            with(&"a".repeat(256), json!(1), DIGEST),
            with("a\n.zip", json!(1), DIGEST),
            with("a\u{202e}.zip", json!(1), DIGEST),
            with("../a.zip", json!(1), DIGEST),
            with("a.zip", json!(0), DIGEST),
            with("a.zip", json!(-1), DIGEST),
            with("a.zip", json!(u64::MAX), DIGEST),
            with("a.zip", json!("large"), DIGEST),
            with("a.zip", json!(1), ""),
            with("a.zip", json!(1), &upper),
            with("a.zip", json!(1), &DIGEST[1..]),
            format!("{}{}", with("a.zip", json!(1), DIGEST), " ".repeat(LONGEST)),
        ] {
            assert_eq!(parse(&message), None, "{message}");
        }
        assert!(parse(&with("a.zip", json!(1), DIGEST)).is_some());
    }

    fn pod(container: &str, exit_code: i32, finished: &str, size: i64) -> Arc<PodOfJob> {
        let message = json!({"name": "a.zip", "size": size, "sha256": DIGEST}).to_string();
        let end = json!({"exitCode": exit_code, "finishedAt": finished, "message": message});
        object::<PodOfJobKind>(json!({
            "metadata": {"name": "p", "namespace": "exams", "uid": "p1"},
            "status": {"phase": "Succeeded", "containerStatuses": [{"name": container, "state": {"terminated": end}}]},
        }))
    }

    #[test]
    fn the_last_success_of_the_uploader_counts() {
        let (early, late) = ("2026-03-04T04:00:00Z", "2026-03-04T04:30:00Z");
        let pods = [
            pod(CONTAINER, 0, late, 2),
            pod(CONTAINER, 0, early, 1),
            pod("sidecar", 0, "2026-03-04T05:00:00Z", 3),
            pod(CONTAINER, 1, "2026-03-04T05:00:00Z", 4),
        ];
        let of = |range: std::ops::Range<usize>| {
            let pods: Vec<&PodOfJob> = pods[range].iter().map(|pod| &**pod).collect();
            receipt(&pods).map(|receipt| receipt.size)
        };
        assert_eq!(of(0..4), Some(2));
        assert_eq!(of(2..4), None);
        assert_eq!(of(0..0), None);
    }
}
