//! The process of a container or sandbox. The runtime reports it only in `info` of a verbose status.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::messages::{ByIdRequest, CONTAINER_RUNNING, SANDBOX_READY, StatusResponse};
use super::{Cri, CriError};

/// The fields that are read of the JSON that containerd and CRI-O write to `info`.
#[derive(Deserialize)]
struct Info {
    pid: i64,
}

impl Cri {
    /// The ID of the first process of a running container, in the process namespace of the runtime.
    ///
    /// # Errors
    /// When the container is not running, or the runtime does not answer or does not report the process.
    pub async fn container_process(&self, id: &str) -> Result<u32, CriError> {
        self.process("ContainerStatus", "container", id, CONTAINER_RUNNING).await
    }

    /// The ID of the first process of a ready sandbox, in the process namespace of the runtime. Its network namespace
    /// is the network namespace of the pod.
    ///
    /// # Errors
    /// When the sandbox is not ready, or the runtime does not answer or does not report the process.
    pub async fn sandbox_process(&self, id: &str) -> Result<u32, CriError> {
        self.process("PodSandboxStatus", "sandbox", id, SANDBOX_READY).await
    }

    /// Returns the process of a container or sandbox in the given state. `what` names the kind in errors.
    async fn process(&self, method: &'static str, what: &str, id: &str, state: i32) -> Result<u32, CriError> {
        let (name, request) = (format!("{what} {id}"), ByIdRequest { id: id.to_owned(), verbose: true });
        let StatusResponse { status, info } = self.call(method, request).await?;
        if status.is_none_or(|status| status.state != state) {
            return Err(CriError::NotRunning(name));
        }
        process(&info).ok_or(CriError::NoProcess(name))
    }
}

/// Returns the process that `info` names. Process 1 belongs to the node and is never the process of a container.
fn process(info: &BTreeMap<String, String>) -> Option<u32> {
    let info: Info = serde_json::from_str(info.get("info")?).ok()?;
    u32::try_from(info.pid).ok().filter(|pid| *pid > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_is_read_from_the_json_of_the_runtime() {
        let table = [
            (r#"{"sandboxID":"a","pid":4711,"removing":false}"#, Some(4_711)),
            (r#"{"pid":2}"#, Some(2)),
            (r#"{"pid":1}"#, None),
            (r#"{"pid":0}"#, None),
            (r#"{"pid":-1}"#, None),
            (r#"{"pid":4294967296}"#, None),
            (r#"{"pid":"12"}"#, None),
            (r#"{"pid":1.5}"#, None),
            ("{}", None),
            ("12", None),
            ("", None),
        ];
        for (json, expected) in table {
            let info = BTreeMap::from([("info".to_owned(), json.to_owned())]);
            assert_eq!(process(&info), expected, "{json}");
        }
        assert_eq!(process(&BTreeMap::new()), None);
    }
}
