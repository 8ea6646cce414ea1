//! The cloud-init document that a virtual machine reads at its first boot.

use std::collections::{BTreeSet, HashSet};
use std::net::Ipv6Addr;

use serde_json::{Value, json};

use super::mounts::{Mount, Source};
use crate::api::public_key::{canonical, within_limits};
use crate::config::VmLogin;

/// The last entry of the list of mounts: a comment for readers of `/etc/fstab`.
const MANAGED: &str = "# The mounts above are managed by CrownLabs: changes made here are lost.";
/// The NFS mount options, after `rw` or `ro`.
const NFS_OPTIONS: &str = "tcp,hard,intr,rsize=8192,wsize=8192,timeo=14,_netdev,user";
/// The virtiofs mount options, after `rw` or `ro`.
const VIRTIOFS_OPTIONS: &str = "_netdev,user";
/// A shell script that runs at the first boot. It creates the folder for `MyDrive`, and makes the user its owner.
pub const SCRIPT: &str = "#!/bin/bash\nmkdir -p \"/media/mydrive\"\nchown 1000:1000 \"/media/mydrive\"\n";

/// The document: the value of the key `userdata` of the Secret.
pub fn user_data(login: &VmLogin, keys: &[String], mounts: &[Mount]) -> String {
    let mut entries: Vec<[String; 6]> = mounts.iter().map(entry).collect();
    entries.push([MANAGED, "", "", "", "", ""].map(str::to_owned));
    let mut user = json!({
        "name": "crownlabs",
        "lock_passwd": false,
        "passwd": login.password_hash,
        "sudo": "ALL=(ALL) NOPASSWD:ALL",
    });
    if !keys.is_empty() {
        user["ssh_authorized_keys"] = json!(keys);
    }
    user["shell"] = "/bin/bash".into();
    let mut document = json!({
        "users": [user],
        "ssh_pwauth": login.ssh_password,
        "network": {"version": 2, "id0": {"dhcp4": true}},
        "mounts": entries,
    });
    if !keys.is_empty() {
        document["ssh_authorized_keys"] = json!(keys);
    }
    // Serialising to a string cannot fail here: all keys are text, and no serialiser returns an error. Long keys stay
    // on one line, so that they can be copied from the Secret.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let yaml = serde_saphyr::to_string_with_options(&document, options).unwrap_or_default();
    format!("#cloud-config\n{yaml}")
}

/// Whether a document from an existing Secret is equivalent to ours. Documents of the Go operators differ in password
/// logins over SSH and in the comment after the mounts. Comments of keys are ignored.
pub fn says_the_same(existing: &str, ours: &str) -> bool {
    let read = |text: &str| serde_saphyr::from_str::<Value>(text).ok();
    let (Some(mut existing), Some(mut ours)) = (read(existing), read(ours)) else { return false };
    // The Go operators leave this to the image of the machine.
    for document in [&mut existing, &mut ours] {
        document.as_object_mut().and_then(|members| members.remove("ssh_pwauth"));
        let users = document["users"].as_array().map_or(0, Vec::len);
        let lists = (0..users).map(|user| format!("/users/{user}/ssh_authorized_keys"));
        for list in lists.chain(["/ssh_authorized_keys".to_owned()]) {
            document.pointer_mut(&list).into_iter().for_each(drop_comments);
        }
    }
    let comment = |document: &Value| document["mounts"].as_array()?.last()?.get(0).cloned();
    let theirs = comment(&existing).filter(|text| text.as_str().is_some_and(|text| text.starts_with('#')));
    if let Some(Value::Array(mounts)) = ours.get_mut("mounts") {
        if let Some(theirs) = theirs {
            if let Some(own) = mounts.last_mut() {
                own[0] = theirs;
            }
        } else {
            // The newest Go operator writes no comment, and no list without a mount.
            mounts.pop();
        }
    }
    for document in [&mut existing, &mut ours] {
        let is_empty = document["mounts"].as_array().is_none_or(Vec::is_empty);
        document.as_object_mut().filter(|_| is_empty).and_then(|members| members.remove("mounts"));
    }
    existing == ours
}

/// Whether two documents mount volumes in different ways, over NFS and through mirrors. A machine cannot mount a mirror
/// that it was created without.
pub fn mounts_otherwise(existing: &str, ours: &str) -> bool {
    let types = |text: &str| -> BTreeSet<String> {
        let document = serde_saphyr::from_str::<Value>(text).unwrap_or_default();
        let mounts = document["mounts"].as_array().into_iter().flatten();
        let types = mounts.filter_map(|mount| mount.get(2)?.as_str().filter(|type_| !type_.is_empty()));
        types.map(str::to_owned).collect()
    };
    let (existing, ours) = (types(existing), types(ours));
    !existing.is_empty() && !ours.is_empty() && existing.is_disjoint(&ours)
}

/// Normalises the keys of a list, and removes duplicates.
fn drop_comments(list: &mut Value) {
    let Some(keys) = list.as_array_mut() else { return };
    let mut known = HashSet::new();
    keys.retain_mut(|key| {
        let Some(text) = key.as_str() else { return true };
        let text = canonical(text).unwrap_or_else(|_| text.to_owned());
        *key = text.as_str().into();
        known.insert(text)
    });
}

fn entry(mount: &Mount) -> [String; 6] {
    let access = if mount.read_only { "ro" } else { "rw" };
    let (source, type_, options) = match &mount.source {
        Source::Nfs { server, export } => {
            // Brackets separate the colons of an IPv6 address from the colon before the path.
            let is_v6 = server.parse::<Ipv6Addr>().is_ok();
            let server = if is_v6 { format!("[{server}]") } else { server.clone() };
            (format!("{server}:{export}"), "nfs", NFS_OPTIONS)
        }
        Source::Mirror => (mount.volume.clone(), "virtiofs", VIRTIOFS_OPTIONS),
    };
    let options = format!("{access},{options}");
    [source, mount.path.clone(), type_.to_owned(), options, "0".to_owned(), "0".to_owned()]
}

/// The SSH keys that may log in, and the number of invalid keys.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Keys {
    /// The valid keys, in order and without duplicates. They have no comments, except for the administrator's key.
    pub accepted: Vec<String>,
    /// The Tenants with invalid keys, each with the number of these keys.
    pub rejected: Vec<(String, usize)>,
}

impl Keys {
    /// Adds the valid keys of a Tenant, within the limits, that are not in the list yet. An invalid key could break the
    /// whole document.
    pub fn add(&mut self, tenant: &str, keys: &[String]) {
        let used = within_limits(keys);
        let mut rejected = keys.len() - used.len();
        for key in used {
            match canonical(key) {
                Err(_) => rejected += 1,
                Ok(key) if self.accepted.contains(&key) => {}
                Ok(key) => self.accepted.push(key),
            }
        }
        if rejected > 0 {
            self.rejected.push((tenant.to_owned(), rejected));
        }
    }

    /// Adds the content of the web terminal's public key file, unchanged, if it is a single public key.
    pub fn add_master(&mut self, content: &str) {
        if canonical(content).is_ok_and(|key| !self.accepted.contains(&key)) {
            self.accepted.push(content.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ1bGxzaGl0a2V5Zm9ydGVzdGluZ29ubHkxMjM0NTY3";

    fn mount(server: &str) -> Mount {
        Mount {
            volume: "nfs0".to_owned(),
            source: Source::Nfs { server: server.to_owned(), export: "/exports/a".to_owned() },
            path: "/mnt/a".to_owned(),
            read_only: true,
        }
    }

    #[test]
    fn an_address_of_ipv6_has_brackets_before_the_path() {
        for (server, source) in [
            ("2001:db8::1", "[2001:db8::1]:/exports/a"),
            ("::ffff:10.0.0.1", "[::ffff:10.0.0.1]:/exports/a"),
            ("nfs.example.org", "nfs.example.org:/exports/a"),
            ("10.0.0.1", "10.0.0.1:/exports/a"),
            ("[2001:db8::1]", "[2001:db8::1]:/exports/a"),
        ] {
            assert_eq!(entry(&mount(server))[0], source);
        }
    }

    #[test]
    fn the_document_parses_to_the_intended_values() {
        let mount = mount("10.0.0.1");
        let keys = [KEY.to_owned(), format!("{KEY} webssh\n")];
        let text = user_data(&VmLogin::default(), &keys, &[mount]);
        assert!(text.starts_with("#cloud-config\n"), "{text}");
        assert!(text.contains(KEY), "a key stays on one line:\n{text}");
        let document: Value = serde_saphyr::from_str(&text).expect("YAML");
        assert_eq!(document["ssh_pwauth"], false);
        assert_eq!(document["ssh_authorized_keys"], json!(keys));
        assert_eq!(document["users"][0]["ssh_authorized_keys"], json!(keys));
        let options = "ro,tcp,hard,intr,rsize=8192,wsize=8192,timeo=14,_netdev,user";
        assert_eq!(document["mounts"][0], json!(["10.0.0.1:/exports/a", "/mnt/a", "nfs", options, "0", "0"]));
        assert_eq!(document["mounts"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn a_document_of_a_go_operator_is_equivalent_and_another_document_is_not() {
        let ours = user_data(&VmLogin::default(), &[KEY.to_owned()], &[]);
        let theirs = ours.replace("ssh_pwauth: false\n", "").replace(MANAGED, "# Here lies the mount list");
        assert_ne!(theirs, ours);
        assert!(says_the_same(&theirs, &ours));
        // Keys with comments, in a document of a Go operator or of an earlier version of the daemon.
        let commented = format!("{KEY} ada@lab");
        let twice = [format!("{} \u{1b}[2J", KEY.replace(' ', "\t")), format!("{KEY} eve@lab")];
        for with_comments in [
            ours.replace(KEY, &commented),
            theirs.replace(KEY, &commented),
            user_data(&VmLogin::default(), &twice, &[]),
        ] {
            assert_ne!(with_comments, ours);
            assert!(says_the_same(&with_comments, &ours), "{with_comments}");
        }
        for other in [
            theirs.replacen("AAAAIGJ1", "AAAAIGJ2", 1),
            theirs.replace("# Here lies", "10.0.0.1:/exports/eve"),
            theirs.replace("lock_passwd: false", "lock_passwd: true"),
            format!("{theirs}runcmd: [reboot]\n"),
            "users: [".to_owned(),
            String::new(),
        ] {
            assert_ne!(other, theirs);
            assert!(!says_the_same(&other, &ours), "{other}");
        }
    }

    #[test]
    fn a_document_without_a_comment_and_a_document_with_other_mounts_are_kept() {
        let mirror = |path: &str| Mount {
            volume: "data-mirror".to_owned(),
            source: Source::Mirror,
            path: path.to_owned(),
            read_only: false,
        };
        let of = |mounts: &[Mount]| user_data(&VmLogin::default(), &[], mounts);
        let ours = of(&[mirror("/mnt/a")]);
        let document: Value = serde_saphyr::from_str(&ours).expect("YAML");
        assert_eq!(
            document["mounts"][0],
            json!(["data-mirror", "/mnt/a", "virtiofs", "rw,_netdev,user", "0", "0"])
        );
        // The newest Go operator writes JSON without the comment here; YAML reads both.
        let theirs = |mounts: Value| {
            let mut document = document.clone();
            document["mounts"] = mounts;
            format!("#cloud-config\n{document}")
        };
        assert!(says_the_same(&theirs(json!([document["mounts"][0]])), &ours));
        assert!(!says_the_same(&theirs(json!([])), &ours) && !says_the_same(&theirs(Value::Null), &ours));
        for nothing in [json!([]), Value::Null] {
            assert!(says_the_same(&theirs(nothing), &of(&[])));
        }
        let nfs = of(&[mount("10.0.0.1")]);
        assert!(mounts_otherwise(&nfs, &ours) && mounts_otherwise(&ours, &nfs));
        assert!(!mounts_otherwise(&ours, &of(&[mirror("/mnt/b")])), "another path");
        assert!(!mounts_otherwise(&ours, &of(&[])) && !mounts_otherwise(&of(&[]), &ours), "no mounts");
    }

    #[test]
    fn only_valid_keys_are_added_and_each_once() {
        let mut keys = Keys::default();
        let injected = format!("{KEY}\nssh-ed25519 AAAA evil");
        let comment = format!("{} \u{1b}[31m\u{7f} ada@lab", KEY.replace(' ', "\t "));
        keys.add("ada", &[comment, "type1 key1 comment".to_owned(), injected]);
        keys.add("grace", &[format!("  {KEY} ")]);
        assert_eq!(keys.accepted, [KEY]);
        assert_eq!(keys.rejected, [("ada".to_owned(), 2)]);
        for no_key in ["\n", "", "no key", &format!("{KEY}\n{KEY}"), &format!("command=\"x\" {KEY}")] {
            keys.add_master(no_key);
        }
        keys.add_master(&format!("{KEY} webssh\n"));
        assert_eq!(keys.accepted.len(), 1, "the same key with another comment");
    }
}
