//! Kubeconfig files: server, certificate authority and credentials.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::certificates::ClientFiles;

/// The credentials in a kubeconfig.
pub enum Credentials<'a> {
    /// A client certificate.
    Certificate(&'a ClientFiles),
    /// A bearer token, for example a service account's.
    Token(&'a str),
}

/// Writes a kubeconfig to `path`. For an `http` server (the fault proxy) the CA is unused, but without it every client
/// would load the CAs of the system.
pub fn write(path: &Path, server: &str, ca: &Path, credentials: &Credentials) -> Result<()> {
    let user: Value = match credentials {
        Credentials::Certificate(files) => {
            json!({"client-certificate": files.certificate, "client-key": files.key})
        }
        Credentials::Token(token) => json!({"token": token}),
    };
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority": ca}}],
        "users": [{"name": "test", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    });
    // JSON is YAML, and every reader of kubeconfigs accepts it. Another test may read the same file at the
    // same time, so it is replaced atomically.
    let mut new = NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    new.write_all(&serde_json::to_vec_pretty(&kubeconfig)?)?;
    new.persist(path).with_context(|| format!("writing the kubeconfig {}", path.display())).map(drop)
}
