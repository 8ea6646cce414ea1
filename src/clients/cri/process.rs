//! The process of a container or sandbox, which the runtime has only in `info` of a verbose status.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::messages::{ByIdRequest, CONTAINER_RUNNING, SANDBOX_READY, StatusResponse};
use super::{Cri, CriError};

/// What containerd and CRI-O write as JSON under `info`, as far as it is read.
#[derive(Deserialize)]
struct Info {
    pid: i64,
}

impl Cri {
    /// The id of the first process of a running container, in the process namespace of the runtime.
    ///
    /// # Errors
    /// When the container does not run, or the runtime does not answer or does not say it.
    pub async fn container_process(&self, id: &str) -> Result<u32, CriError> {
        self.process("ContainerStatus", id, format!("container {id}"), CONTAINER_RUNNING).await
    }

    /// The id of the first process of a sandbox that is ready, in the process namespace of the runtime. Its network
    /// namespace is that of the pod.
    ///
    /// # Errors
    /// When the sandbox is not ready, or the runtime does not answer or does not say it.
    pub async fn sandbox_process(&self, id: &str) -> Result<u32, CriError> {
        self.process("PodSandboxStatus", id, format!("sandbox {id}"), SANDBOX_READY).await
    }

    /// The process of what is called `name` in an error, while it is in this state.
    async fn process(
        &self,
        method: &'static str,
        id: &str,
        name: String,
        state: i32,
    ) -> Result<u32, CriError> {
        let request = ByIdRequest { id: id.to_owned(), verbose: true };
        let StatusResponse { status, info } = self.call(method, request).await?;
        if status.is_none_or(|status| status.state != state) {
            return Err(CriError::NotRunning(name));
        }
        process(&info).ok_or(CriError::NoProcess(name))
    }
}

/// The process that `info` names. Process 1 is the node's own, and never that of a container.
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
