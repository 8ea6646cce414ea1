//! Tests of the content of the key file, without a cluster.

mod sample;

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::json;

use self::sample::{CERTIFICATE, DSA, ECDSA, ED25519, RSA, SECURITY_KEY, UNKNOWN};
use super::key_file::KeyFile;
use crate::api::tenant::Tenant;

fn tenant(name: &str, keys: &[String]) -> Arc<Tenant> {
    let value = json!({"metadata": {"name": name, "uid": name}, "spec": {"publicKeys": keys}});
    Arc::new(serde_json::from_value(value).expect("a Tenant"))
}

fn owned(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

/// The content of a file and its counters.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rendered {
    content: String,
    keys: usize,
    skipped: usize,
}

impl From<&KeyFile> for Rendered {
    fn from(file: &KeyFile) -> Self {
        Self { content: file.content(), keys: file.keys(), skipped: file.skipped() }
    }
}

/// The file of these Tenants.
fn key_file(tenants: impl IntoIterator<Item = Arc<Tenant>>, options: &str) -> Rendered {
    let mut file = KeyFile::default();
    update(&mut file, tenants, options);
    Rendered::from(&file)
}

/// Updates the file with these Tenants.
fn update(file: &mut KeyFile, tenants: impl IntoIterator<Item = Arc<Tenant>>, options: &str) {
    let tenants: BTreeMap<String, Arc<Tenant>> =
        tenants.into_iter().map(|tenant| (tenant.name().to_owned(), tenant)).collect();
    let names: Vec<_> = tenants.values().map(|tenant| tenant.metadata.name.clone()).collect();
    file.update(names, options, |name| tenants.get(name).cloned());
}

#[test]
fn the_file_matches_the_tenants_after_any_changes() {
    let [ada, grace] = ["ada", "grace"].map(|name| tenant(name, &owned(&[ED25519, "no key"])));
    let mut file = KeyFile::default();
    for tenant in [&ada, &grace, &ada] {
        update(&mut file, [Arc::clone(tenant)], "");
    }
    assert_eq!(Rendered::from(&file), key_file(vec![ada.clone(), grace.clone()], ""));
    let other = tenant("ada", &owned(&[RSA, ECDSA]));
    update(&mut file, [other.clone()], "");
    assert_eq!(Rendered::from(&file), key_file(vec![other, grace.clone()], ""));
    update(&mut file, [tenant("ada", &[])], "");
    assert_eq!(Rendered::from(&file), key_file(vec![grace], ""));
    file.update(["grace".into(), "nobody".into()], "", |_| None);
    assert_eq!(Rendered::from(&file), Rendered::default());
}

/// The order and the parts are the same as with one thread, whatever the number of threads.
#[test]
fn many_threads_write_the_same_file_as_one() {
    let tenants: Vec<_> =
        (0..2_001).map(|n| tenant(&format!("student.{n:04}"), &owned(&[ED25519]))).collect();
    let expected: Vec<String> = (0..2_001).map(|n| format!("{ED25519} student.{n:04}")).collect();
    let file = key_file(tenants, "");
    assert_eq!(file, Rendered { content: expected.join("\n"), keys: 2_001, skipped: 0 });
}

/// The file for one Tenant with one key.
fn file_for(key: &str) -> Rendered {
    key_file(vec![tenant("ada", &owned(&[key]))], "")
}

#[test]
fn lines_are_in_the_order_of_names_and_keys() {
    let grace = tenant("grace", &owned(&[RSA, ED25519, RSA]));
    let ada = tenant("ada", &owned(&[&format!(" {ED25519} ada@home \n"), SECURITY_KEY, ECDSA]));
    let expected =
        format!("{ED25519} ada\n{SECURITY_KEY} ada\n{ECDSA} ada\n{RSA} grace\n{ED25519} grace\n{RSA} grace");
    for tenants in [vec![grace.clone(), ada.clone()], vec![ada, grace]] {
        let file = key_file(tenants, "");
        assert_eq!(file, Rendered { content: expected.clone(), keys: 6, skipped: 0 });
    }
}

#[test]
fn without_a_key_the_file_is_empty() {
    assert_eq!(key_file(Vec::new(), "restrict"), Rendered::default());
    assert_eq!(key_file(vec![tenant("ada", &[]), tenant("grace", &[])], ""), Rendered::default());
}

#[test]
fn options_stand_before_each_key() {
    let file = key_file(vec![tenant("ada", &owned(&[ED25519, RSA]))], "restrict,port-forwarding");
    let line = |key| format!("restrict,port-forwarding {key} ada");
    assert_eq!(file.content, format!("{}\n{}", line(ED25519), line(RSA)));
}

#[test]
fn the_keys_of_a_tenant_that_is_being_deleted_are_gone() {
    let value = json!({
        "metadata": {"name": "ada", "uid": "1", "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"publicKeys": [ED25519]},
    });
    let ada = Arc::new(serde_json::from_value(value).expect("a Tenant"));
    assert_eq!(key_file(vec![ada, tenant("grace", &owned(&[RSA]))], "").content, format!("{RSA} grace"));
}

#[test]
fn keys_that_servers_do_not_accept_are_skipped() {
    for text in [
        "",
        " ",
        "# a comment",
        "ssh-ed25519",
        "ssh-ed25519 AAAA ada",
        "ssh-rsa abcdefghi comment",
        &format!("{ED25519}\n{RSA}"),
        &format!("{ED25519} ada\nssh-rsa AAAA evil"),
        &format!("{ED25519}\r{RSA}"),
        &format!("command=\"sh\" {ED25519}"),
        &format!("restrict,pty {ED25519}"),
        &format!("from=\"*\" {ED25519}"),
        &format!("cert-authority {ED25519}"),
        &format!("@cert-authority {ED25519}"),
        &ED25519.replacen("ed25519", "rsa", 1),
        &ED25519[..ED25519.len() - 8],
        &format!("{ED25519}AAAA"),
        &ED25519.replacen(' ', "\u{a0}", 1),
        &format!("{ED25519} {}", "x".repeat(10_000)),
        CERTIFICATE,
        DSA,
        UNKNOWN,
    ] {
        assert_eq!(file_for(text), Rendered { skipped: 1, ..Rendered::default() }, "{text:?}");
    }
}

#[test]
fn text_after_a_key_is_dropped() {
    for comment in ["ada@lab", "ada\u{2028}ssh-rsa AAAA", "\" command=\"sh", "\t\u{1b}[31m", "\0"] {
        let file = file_for(&format!("{ED25519} {comment}"));
        assert_eq!(file.content, format!("{ED25519} ada"), "{comment:?}");
    }
    assert_eq!(file_for(&format!("{ED25519} ada, her laptop")).content, format!("{ED25519} ada"));
}

#[test]
fn one_tenant_has_at_most_a_hundred_keys() {
    let many = vec![ED25519.to_owned(); 150];
    let file = key_file(vec![tenant("ada", &many), tenant("grace", &owned(&[RSA]))], "");
    assert_eq!((file.keys, file.skipped), (101, 50));
    assert!(file.content.ends_with(&format!("\n{RSA} grace")));
}

/// A text of a hostile user: a key with additions around or inside it, or anything else.
fn hostile() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![ED25519, RSA, ECDSA, SECURITY_KEY, DSA, CERTIFICATE, UNKNOWN]);
    let noise = prop_oneof![
        Just(String::new()),
        "[ \t\r\n,=\"@#\\\\\u{0}\u{85}\u{2028}]{0,4}",
        "(command=\"[a-z \n]{0,9}\"|restrict|cert-authority|environment=\"A=b\")[ ,\n]?",
        "\\PC{0,12}",
        key.clone().prop_map(|key| format!("\n{key}")),
    ];
    let around = (noise.clone(), key.clone(), noise.clone()).prop_map(|(a, key, b)| format!("{a}{key}{b}"));
    let inside = (key, any::<prop::sample::Index>(), noise).prop_map(|(key, at, noise)| {
        let (head, tail) = key.split_at(at.index(key.len()));
        format!("{head}{noise}{tail}")
    });
    prop_oneof![around, inside, "(?s).{0,60}"]
}

/// Whether the data is a key of this type. A server reads only fields with their lengths before them: the type, and the
/// fields of the type (RFC 4253, RFC 5656, RFC 8709, PROTOCOL.u2f of OpenSSH). The bytes of the key itself may have any
/// value.
fn is_key(kind: &str, data: &str) -> bool {
    let data = STANDARD.decode(data).expect("base64");
    let mut rest = data.as_slice();
    let mut fields = Vec::new();
    while let Some((length, tail)) = rest.split_first_chunk() {
        let length = u32::from_be_bytes(*length) as usize;
        let Some((field, tail)) = tail.split_at_checked(length) else { return false };
        fields.push(field);
        rest = tail;
    }
    let number = match kind {
        "ssh-ed25519" => 2,
        "ssh-rsa" | "ecdsa-sha2-nistp256" | "sk-ssh-ed25519@openssh.com" => 3,
        _ => return false,
    };
    rest.is_empty() && fields.len() == number && fields.first() == Some(&kind.as_bytes())
}

proptest! {
    #![proptest_config(crate::properties::cases(2_000))]

    #[test]
    fn every_line_is_a_key_of_its_tenant(
        keys in prop::collection::btree_map("[a-z][a-z0-9.-]{0,6}[a-z0-9]", prop::collection::vec(hostile(), 0..4), 0..4),
    ) {
        let file = key_file(keys.iter().map(|(name, keys)| tenant(name, keys)), "");
        let lines: Vec<&str> = file.content.split('\n').filter(|_| !file.content.is_empty()).collect();
        prop_assert_eq!(lines.len(), file.keys);
        let mut left: BTreeMap<&str, Vec<&String>> =
            keys.iter().map(|(name, keys)| (name.as_str(), keys.iter().collect())).collect();
        for line in lines {
            let [kind, data, name] = line.split(' ').collect::<Vec<_>>()[..] else {
                return Err(TestCaseError::fail(format!("{line:?} has not three parts")));
            };
            prop_assert!(is_key(kind, data), "{:?} is no key", line);
            // Each line comes from one of the Tenant's texts that begins with this key.
            let texts = left.get_mut(name).expect("an existing Tenant");
            let begins = |text: &&String| text.trim().split_ascii_whitespace().take(2).eq([kind, data]);
            let from = texts.iter().position(begins);
            prop_assert!(from.is_some(), "{:?} comes from no text of {}", line, name);
            texts.remove(from.unwrap_or_default());
        }
        let total: usize = keys.values().map(Vec::len).sum();
        prop_assert_eq!(file.keys + file.skipped, total);
    }
}
