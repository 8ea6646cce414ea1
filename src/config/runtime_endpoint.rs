//! The socket of a container runtime as a text of the configuration.

use std::path::PathBuf;

use super::formats::formats;

formats! {
    RUNTIME_ENDPOINT = "crownlabs-runtime-endpoint", |text| text.is_empty() || runtime_socket(text).is_some(),
        "the socket of the container runtime such as unix:///run/containerd/containerd.sock, or \"\" for the first \
         usual socket that answers",
        "^((unix://)?/[-A-Za-z0-9/._+@]*[-A-Za-z0-9._+@])?$";
}

/// The maximum length of the path of a Unix socket in bytes: `sun_path` of unix(7) without the terminating zero.
const LONGEST_PATH: usize = 107;

/// Returns the path of the socket that a text names: an absolute path, optionally prefixed with `unix://`. Returns
/// `None` for any other text.
pub fn runtime_socket(text: &str) -> Option<PathBuf> {
    let path = text.strip_prefix("unix://").unwrap_or(text);
    let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-+@".contains(c);
    let is_valid = path.starts_with('/')
        && !path.ends_with('/')
        && path.len() <= LONGEST_PATH
        && path.chars().all(is_path);
    is_valid.then(|| PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_an_absolute_path() {
        let socket = "/run/containerd/containerd.sock";
        assert_eq!(runtime_socket(socket), Some(socket.into()));
        assert_eq!(runtime_socket(&format!("unix://{socket}")), Some(socket.into()));
        let long = format!("/{}", "a".repeat(LONGEST_PATH));
        for wrong in
            ["", "unix://", "run/a.sock", "unix:/run/a.sock", "tcp://127.0.0.1:1", "/run/", "/a b", &long]
        {
            assert_eq!(runtime_socket(wrong), None, "{wrong}");
            assert_eq!((RUNTIME_ENDPOINT.accepts)(wrong), wrong.is_empty(), "{wrong}");
        }
    }
}
