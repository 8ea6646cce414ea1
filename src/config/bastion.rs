//! The keys of the loop of the SSH bastion; see `docs/bastion.md`.

use super::formats::{self, formats};
use super::keys::keys;

keys! {
    /// The loop of the SSH bastion.
    pub struct BastionConfig {
        /// Whether this loop runs, in every replica; if not, it watches nothing and writes no file.
        pub enabled: bool,
        /// The file with the public keys of all Tenants, which the SSH server reads as `AuthorizedKeysFile`.
        pub authorized_keys_file: String as FILE = "/auth-keys/keys".to_owned(),
        /// The options before each key, such as `restrict,port-forwarding,permitopen="*:22"`; empty for none.
        pub key_options: String as KEY_OPTIONS,
        /// The host keys of the SSH server, which are generated once.
        pub host_keys: HostKeys,
        /// The key pair of the web terminal, which is generated once.
        pub web_ssh_key: WebSshKey,
    }

    /// Where the host keys of the SSH server are.
    pub struct HostKeys {
        /// The folder where the keys are written for the SSH server; empty if the server mounts the Secret itself.
        pub folder: String as FOLDER = "/host-keys".to_owned(),
        /// The Secret that stores the keys, created if it does not exist; empty to use no Secret.
        pub secret_name: String as formats::OPTIONAL_NAME = "crownlabs-bastion-operator-ssh-keys".to_owned(),
        /// The namespace of the Secret.
        pub namespace: String as formats::DNS_LABEL = "crownlabs-system".to_owned(),
    }

    /// Where the key pair of the web terminal is.
    pub struct WebSshKey {
        /// The Secret that stores the key pair, created if it does not exist; empty to use no Secret.
        pub secret_name: String as formats::OPTIONAL_NAME = "crownlabs-bastion-operator-web-master-key".to_owned(),
        /// The namespace of the Secret.
        pub namespace: String as formats::DNS_LABEL = "crownlabs-system".to_owned(),
    }
}

formats! {
    FILE = "crownlabs-file", formats::is_path, "the absolute path of a file such as /auth-keys/keys",
        "^/.*[^/]$";
    FOLDER = "crownlabs-folder", |text| text.is_empty() || formats::is_absolute(text),
        "the absolute path of a folder such as /host-keys, or \"\" for none",
        "^(/.*)?$";
    KEY_OPTIONS = "crownlabs-key-options", |text| text.is_empty() || are_options(text),
        "options of an authorized_keys file, separated by commas without blanks, such as \
         restrict,port-forwarding,permitopen=\"*:22\", or \"\" for none",
        concat!("^(", pattern!(options), "(,", pattern!(options), ")*)?$");
}

/// The options of `authorized_keys` (sshd(8)) without a value. A server rejects every key with an unknown option, so
/// this check rejects unknown options, too. `cert-authority` would turn the keys of users into authorities.
const FLAGS: [&str; 14] = [
    "agent-forwarding",
    "no-agent-forwarding",
    "no-port-forwarding",
    "no-pty",
    "no-touch-required",
    "no-user-rc",
    "no-x11-forwarding",
    "port-forwarding",
    "pty",
    "restrict",
    "touch-required",
    "user-rc",
    "verify-required",
    "x11-forwarding",
];
/// The options with a value in quotes.
const VALUED: [&str; 6] = ["command", "environment", "expiry-time", "from", "permitlisten", "permitopen"];

/// Whether a text is a list of options. A value contains no quote, backslash or control character, so it cannot end
/// early.
fn are_options(text: &str) -> bool {
    let mut rest = text;
    loop {
        let end = rest.find([',', '=']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        let after = if let Some(quoted) = after.strip_prefix("=\"") {
            let Some((value, after)) = quoted.split_once('"') else { return false };
            let is_sound = is_value(value) && (!is("permitopen") || is_destination(value));
            if !VALUED.iter().any(|known| is(known)) || !is_sound {
                return false;
            }
            after
        } else if FLAGS.iter().any(|known| is(known)) {
            after
        } else {
            return false;
        };
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => return after.is_empty(),
        }
    }
}

fn is_value(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| (c.is_ascii_graphic() || c == ' ') && c != '\\')
}

/// Whether a text is a host and a port. Each of them may be `*`.
fn is_destination(text: &str) -> bool {
    text.rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && (port == "*" || port.parse::<u16>().is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_a_server_would_refuse_are_refused_here() {
        for right in [
            "restrict",
            "restrict,port-forwarding,permitopen=\"*:22\"",
            "permitopen=\"10.0.0.1:22\",permitopen=\"[fd00::1]:22\"",
            "command=\"echo no shell, sorry\",no-pty",
            "no-X11-forwarding",
            "from=\"10.0.0.0/8,!10.1.0.1\"",
        ] {
            assert!(are_options(right), "{right}");
        }
        for wrong in [
            ",",
            "restrict,",
            ",restrict",
            "restrict, port-forwarding",
            "restricted",
            "permitopen",
            "permitopen=*:22",
            "permitopen=\"*:22",
            "permitopen=\"\"",
            "permitopen=\"22\"",
            "permitopen=\"*:ssh\"",
            "permitopen=\"*:22\"x",
            "restrict=\"yes\"",
            "cert-authority",
            "principals=\"ada\"",
            "command=\"a\\\"b\"",
            "command=\"a\nb\"",
            "restrict ssh-ed25519",
            "restrict\nssh-ed25519 AAAA",
        ] {
            assert!(!are_options(wrong), "{wrong}");
        }
    }

    #[test]
    fn paths_are_absolute() {
        assert!((FILE.accepts)("/auth-keys/keys") && (FOLDER.accepts)("/host-keys"));
        assert!((FOLDER.accepts)(""));
        for wrong in ["", "keys", "/auth-keys/", "/a/../b", "/a\nb"] {
            assert!(!(FILE.accepts)(wrong), "{wrong:?}");
        }
    }
}
