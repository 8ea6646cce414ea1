//! The security contexts of the pods that the loops create.

use serde_json::{Value, json};

/// The user and group of the environments, which own the files of their volumes.
pub const USER: u32 = 1010;

/// The security context of a pod whose processes run as this user and group, which also own the files of its volumes.
pub fn pod(user: u32) -> Value {
    json!({
        "runAsUser": user,
        "runAsGroup": user,
        "fsGroup": user,
        "runAsNonRoot": true,
        "seccompProfile": seccomp_profile(),
    })
}

/// The security context of a container without privileges.
pub fn container() -> Value {
    json!({"capabilities": no_capabilities(), "privileged": false, "allowPrivilegeEscalation": false})
}

/// The system calls of a container: the default profile of its runtime.
pub fn seccomp_profile() -> Value {
    json!({"type": "RuntimeDefault"})
}

/// The capabilities of a container that needs none.
pub fn no_capabilities() -> Value {
    json!({"drop": ["ALL"]})
}
