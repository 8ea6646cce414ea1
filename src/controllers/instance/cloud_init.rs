//! The cloud-init document that a virtual machine reads at its first boot (02 §5.1).

use serde::Serialize;
use ssh_key::PublicKey;

use super::mounts::Mount;
use crate::config::VmLogin;

/// Lists of NFS mounts end with this sentence, for whoever looks into `/etc/fstab` (00 decision 23).
const MANAGED: &str = "# The mounts above are managed by CrownLabs: changes made here are lost.";
/// How an NFS export is mounted, after `rw` or `ro`.
const NFS_OPTIONS: &str = "tcp,hard,intr,rsize=8192,wsize=8192,timeo=14,_netdev,user";
/// The first script: the folder for `MyDrive` belongs to the user.
pub const SCRIPT: &str = "#!/bin/bash\nmkdir -p \"/media/mydrive\"\nchown 1000:1000 \"/media/mydrive\"\n";

#[derive(Serialize)]
struct Document<'a> {
    users: [User<'a>; 1],
    ssh_pwauth: bool,
    network: Network,
    mounts: Vec<[String; 6]>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    ssh_authorized_keys: &'a [String],
}

#[derive(Serialize)]
struct User<'a> {
    name: &'static str,
    lock_passwd: bool,
    passwd: &'a str,
    sudo: &'static str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    ssh_authorized_keys: &'a [String],
    shell: &'static str,
}

#[derive(Serialize)]
struct Network {
    version: u8,
    id0: Interface,
}

#[derive(Serialize)]
struct Interface {
    dhcp4: bool,
}

/// The document, ready for the Secret's `userdata`.
pub fn user_data(login: &VmLogin, keys: &[String], mounts: &[Mount]) -> String {
    let mut entries: Vec<[String; 6]> = mounts.iter().map(entry).collect();
    entries.push([MANAGED, "", "", "", "", ""].map(str::to_owned));
    let document = Document {
        users: [User {
            name: "crownlabs",
            lock_passwd: false,
            passwd: &login.password_hash,
            sudo: "ALL=(ALL) NOPASSWD:ALL",
            ssh_authorized_keys: keys,
            shell: "/bin/bash",
        }],
        ssh_pwauth: login.ssh_password,
        network: Network { version: 2, id0: Interface { dhcp4: true } },
        mounts: entries,
        ssh_authorized_keys: keys,
    };
    // Only text keys and no fallible serialisers: writing YAML into a string cannot fail.
    let yaml = serde_saphyr::to_string(&document).unwrap_or_default();
    format!("#cloud-config\n{yaml}")
}

fn entry(mount: &Mount) -> [String; 6] {
    let access = if mount.read_only { "ro" } else { "rw" };
    [
        format!("{}:{}", mount.server, mount.export),
        mount.path.clone(),
        "nfs".to_owned(),
        format!("{access},{NFS_OPTIONS}"),
        "0".to_owned(),
        "0".to_owned(),
    ]
}

/// The keys that may log in, and those that were left out because they are none.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Keys {
    /// In order, each once.
    pub accepted: Vec<String>,
    /// Whose keys do not parse: the tenant's name and the number of keys.
    pub rejected: Vec<(String, usize)>,
}

impl Keys {
    /// Adds the keys of a tenant: those that parse, and only once (00 decision 24).
    pub fn add(&mut self, tenant: &str, keys: &[String]) {
        let mut rejected = 0;
        for key in keys {
            let key = key.trim();
            // One line, or it could carry options or further keys past the parser.
            if key.lines().count() != 1 || PublicKey::from_openssh(key).is_err() {
                rejected += 1;
            } else if !self.accepted.iter().any(|known| known == key) {
                self.accepted.push(key.to_owned());
            }
        }
        if rejected > 0 {
            self.rejected.push((tenant.to_owned(), rejected));
        }
    }

    /// Adds the content of the web terminal's public key file, as it is (02 §5.1).
    pub fn add_master(&mut self, content: &str) {
        if !content.trim().is_empty() && !self.accepted.iter().any(|known| known.trim() == content.trim()) {
            self.accepted.push(content.to_owned());
        }
    }
}
